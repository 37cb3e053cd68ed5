"""Several server processes on one listening socket: started, replaced, ended.

They share the socket, the home's stores and files, and a folder in which they count; so any of them
may be killed at any time, and one that stands still is. uvicorn's own supervisor is not used: it
keeps both ends of a pipe to each process open in that process, which so cannot tell when the
supervisor is gone, and nobody can limit how long the end takes.
"""

import logging
import os
import signal
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from api.server.log_setup import logging_to_stderr
from api.server.stopping import Terminal, end_of
from api.server.worker import Beat, Serving, run_worker
from catalog.storage.own_folder import own_folder
from catalog.storage.spill_folder import user_folder

_LOG = logging.getLogger(__name__)

_SHORT_S = 5.0
"""A process that lives shorter died of its start: the next one waits."""

_LONGEST_PAUSE_S = 30.0
_GRACE_S = 3.0

_SIGNALS = 4096
"""Most that are taken at once from the socket that wakes the supervisor."""

_LOOK_S = 0.5
_START_S = 120.0
"""Longest time of a process until its first beat [s]."""


def supervise(serving: Serving, listener: socket.socket) -> None:
    """Have ``serving.workers`` processes serve on the socket until a signal; ends as `end_of`."""
    with (
        own_folder(user_folder() / "metrics") as folder,
        logging_to_stderr(serving.log_format, serving.log_level),
    ):
        sig = _Workers(replace(serving, folder=str(folder)), listener).run()
    end_of([sig])


@dataclass
class _Worker:
    """A process, and what was last seen of it."""

    process: SpawnProcess
    beat: Beat
    since: float
    count: int = 0
    still_s: float = 0.0

    def looked_at(self, allowed_s: float) -> bool:
        """Return whether it stands still for longer than is allowed; to be called every _LOOK_S.

        Time is counted by looks and read off no clock: where the machine or all of the processes
        were suspended, nobody has looked.
        """
        count = self.beat.value
        self.still_s = 0.0 if count != self.count else self.still_s + _LOOK_S
        self.count = count
        return self.still_s > (allowed_s if count else max(allowed_s, _START_S))


class _Workers:
    def __init__(self, serving: Serving, listener: socket.socket) -> None:
        self._serving, self._listener = serving, listener
        self._running: dict[int, _Worker] = {}
        self._hung: set[int] = set()
        self._lost: list[str] = []
        self._pause_s = 0.0
        self._next_look = time.monotonic() + _LOOK_S

    def run(self) -> int:
        """Start them, keep them, end them; the signal that ended them."""
        wake, woken = socket.socketpair()
        wake.setblocking(False)
        woken.setblocking(False)
        signals: list[int] = []
        terminal = Terminal()

        def hang_up(number: int, _: FrameType | None) -> None:
            if terminal.is_gone:
                signals.append(number)
            else:
                self._hang_up()

        signal.set_wakeup_fd(woken.fileno())
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, lambda number, _: signals.append(number))
        signal.signal(signal.SIGHUP, hang_up)
        while not signals:
            with suppress(BlockingIOError):
                wake.recv(_SIGNALS)
            while len(self._running) < self._serving.workers and not signals:
                self._start()
            wait([*self._running, wake], _LOOK_S)
            self._look()
            if self._bury() and self._pause_s and not signals:
                wait([wake], self._pause_s)
        self._listener.close()  # new connections are refused when the last process has closed it
        self._end()
        return signals[0]

    def _start(self) -> None:
        context = get_context("spawn")
        beat: Beat = context.RawValue("Q", 0)
        process = context.Process(
            target=run_worker,
            args=(self._serving, self._listener, beat, self._lost.pop() if self._lost else ""),
            name="worker",
        )
        process.start()
        self._running[process.sentinel] = _Worker(process, beat, time.monotonic())

    def _look(self) -> None:
        """Kill whoever stands still: a deadlock, or a process that was stopped."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + _LOOK_S
        for sentinel, worker in self._running.items():
            if worker.looked_at(self._serving.settings.worker_timeout_s) and (
                sentinel not in self._hung
            ):
                _LOG.error(
                    "worker %s has stood still for %g s: killing it",
                    worker.process.pid, worker.still_s,
                )  # fmt: skip
                self._hung.add(sentinel)
                worker.process.kill()

    def _bury(self) -> bool:
        """Take out whoever has died, if anybody; after deaths at the start the next ones wait."""
        from prometheus_client.multiprocess import mark_process_dead

        before = len(self._running)
        for sentinel, worker in list(self._running.items()):
            process = worker.process
            if process.is_alive():
                continue
            del self._running[sentinel]
            process.join()
            self._lost.append("hung" if sentinel in self._hung else "ended")
            self._hung.discard(sentinel)
            _LOG.error("worker %s ended with %s: starting another", process.pid, process.exitcode)
            mark_process_dead(process.pid, self._serving.folder)  # type: ignore[no-untyped-call]
            short = time.monotonic() - worker.since < _SHORT_S
            self._pause_s = min(2 * self._pause_s or 0.5, _LONGEST_PAUSE_S) if short else 0.0
        return len(self._running) < before

    def _hang_up(self) -> None:
        """Have those that serve read their files again; who starts reads them anyhow."""
        for worker in self._running.values():
            pid = worker.process.pid
            if pid is not None and worker.beat.value:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGHUP)

    def _end(self) -> None:
        processes = [worker.process for worker in self._running.values()]
        for process in processes:
            process.terminate()
        until = time.monotonic() + self._serving.drain_s + self._serving.shutdown_s + _GRACE_S
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
