"""Several server processes on one listening socket: started, replaced, ended.

They share the socket, the home's stores and files, and a folder in which they count; so any of them
may be killed at any time. uvicorn's own supervisor is not used: it keeps both ends of a pipe to
each process open in that process, which so cannot tell when the supervisor is gone, and nobody can
limit how long the end takes.
"""

import logging
import signal
import socket
import tempfile
import time
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

from api.log_setup import logging_to_stderr
from api.worker import Serving, run_worker

_LOG = logging.getLogger(__name__)

_SHORT_S = 5.0
"""A process that lives shorter died of its start: the next one waits."""

_LONGEST_PAUSE_S = 30.0
_GRACE_S = 3.0


def supervise(serving: Serving, listener: socket.socket) -> None:
    """Have ``serving.workers`` processes serve on the socket until a signal ends this one."""
    with (
        tempfile.TemporaryDirectory(prefix="framesift-metrics-") as folder,
        logging_to_stderr(serving.log_format, serving.log_level),
    ):
        sig = _Workers(replace(serving, folder=folder), listener).run()
    signal.signal(sig, signal.SIG_DFL)
    signal.raise_signal(sig)


class _Workers:
    def __init__(self, serving: Serving, listener: socket.socket) -> None:
        self._serving, self._listener = serving, listener
        self._running: dict[int, tuple[SpawnProcess, float]] = {}
        self._pause_s = 0.0

    def run(self) -> int:
        """Start them, keep them, end them; the signal that ended them."""
        told, woken = socket.socketpair()
        woken.setblocking(False)
        signals: list[int] = []
        signal.set_wakeup_fd(woken.fileno())
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, lambda number, _: signals.append(number))
        while not signals:
            while len(self._running) < self._serving.workers and not signals:
                self._start()
            wait([*self._running, told])
            self._bury()
            if self._pause_s and not signals:
                wait([told], self._pause_s)
        self._listener.close()  # new connections are refused when the last process has closed it
        self._end()
        return signals[0]

    def _start(self) -> None:
        process = get_context("spawn").Process(
            target=run_worker, args=(self._serving, self._listener), name="worker"
        )
        process.start()
        self._running[process.sentinel] = process, time.monotonic()

    def _bury(self) -> None:
        """Take out whoever has died; after deaths at the start the next ones wait."""
        from prometheus_client.multiprocess import mark_process_dead

        for sentinel, (process, since) in list(self._running.items()):
            if process.is_alive():
                continue
            del self._running[sentinel]
            process.join()
            _LOG.error("worker %s ended with %s: starting another", process.pid, process.exitcode)
            mark_process_dead(process.pid, self._serving.folder)  # type: ignore[no-untyped-call]
            short = time.monotonic() - since < _SHORT_S
            self._pause_s = min(2 * self._pause_s or 0.5, _LONGEST_PAUSE_S) if short else 0.0

    def _end(self) -> None:
        for process, _ in self._running.values():
            process.terminate()
        until = time.monotonic() + self._serving.drain_s + self._serving.shutdown_s + _GRACE_S
        for process, _ in self._running.values():
            process.join(max(0.0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
