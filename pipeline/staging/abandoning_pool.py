"""Threads that a program may leave behind: a transfer that hangs holds up no end."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class AbandoningPool(Generic[_Work, _Result]):
    """Runs one function in threads, which end with the process, whatever they wait for.

    To be used from one thread.
    """

    def __init__(self, run: Callable[[_Work], _Result], threads: int, name: str) -> None:
        """Start no thread yet.

        Args:
            name: What their names begin with.
        """
        self._run, self._most, self._name = run, threads, name
        self._waiting = queue.SimpleQueue[_Work | None]()
        # No futures: to wait for any of some fifty takes longer than what else is done for a file.
        self._ended = queue.SimpleQueue[tuple[_Work, _Result | None, BaseException | None]]()
        self._threads = self._pending = 0

    @property
    def pending(self) -> int:
        """Pieces of work whose results were not taken."""
        return self._pending

    def submit(self, work: _Work) -> None:
        """Have a thread do a piece of work."""
        self._waiting.put(work)
        self._pending += 1
        if self._threads < self._most:
            self._threads += 1
            name = f"{self._name}_{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def result(self, within_s: float) -> tuple[_Work, _Result] | None:
        """The next piece of work that has ended, and its result; None where none does so in time.

        Raises:
            BaseException: What the function raised.
        """
        try:
            work, result, error = self._ended.get(timeout=within_s)
        except queue.Empty:
            return None
        self._pending -= 1
        if error is not None:
            raise error
        return work, result  # type: ignore[return-value]  # a result where there is no error

    def end(self, within_s: float) -> None:
        """Start no more work; wait for what is under way, but not for long [s]."""
        while self._waiting.qsize():
            try:
                self._waiting.get_nowait()
                self._pending -= 1
            except queue.Empty:
                break
        for _ in range(self._threads):
            self._waiting.put(None)
        ends_s = time.monotonic() + within_s
        while self._pending:
            try:
                self._ended.get(timeout=max(0.0, ends_s - time.monotonic()))
            except queue.Empty:
                return
            self._pending -= 1

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            result, failure = None, None
            try:
                result = self._run(work)
            except BaseException as error:
                failure = error
            self._ended.put((work, result, failure))
