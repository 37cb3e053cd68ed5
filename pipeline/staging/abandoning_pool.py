"""Threads that a program may leave behind: a transfer that hangs holds up no end."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class AbandoningPool(Generic[_Work, _Result]):
    """Runs one function in threads, which end with the process, whatever they wait for."""

    def __init__(self, run: Callable[[_Work], _Result], threads: int, name: str) -> None:
        """Start no thread yet.

        Args:
            run: What each thread does with a piece of work.
            threads: How many there are at most.
            name: What their names begin with.
        """
        self._run, self._most, self._name = run, threads, name
        self._waiting = queue.SimpleQueue[tuple[Future[_Result], _Work] | None]()
        self._threads = 0

    def submit(self, work: _Work) -> Future[_Result]:
        """Have a thread do some work; to be called from one thread."""
        future = Future[_Result]()
        self._waiting.put((future, work))
        if self._threads < self._most:
            self._threads += 1
            name = f"{self._name}_{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return future

    def end(self, pending: list[Future[_Result]], within_s: float) -> None:
        """Have no more work done; wait for what is under way, but not for long.

        Args:
            pending: All that was submitted and has not ended.
            within_s: How long to wait at most [s].
        """
        wait([future for future in pending if not future.cancel()], within_s)
        for _ in range(self._threads):
            self._waiting.put(None)

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            future, work = waiting
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._run(work))
            except BaseException as error:
                future.set_exception(error)
