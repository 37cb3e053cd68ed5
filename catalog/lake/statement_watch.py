"""Statements end when their time is over or somebody cancels them: one thread watches them all."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

import duckdb

from catalog.errors import SqlError
from catalog.traces.spans import Span, begin, queue_wait_s

if TYPE_CHECKING:
    import pyarrow as pa

_AGAIN_S = 0.02
"""Interval at which a statement is interrupted again until it ends [s]: an interrupt before it
begins is lost."""


class Cancellation:
    """Ends a statement from another thread, also if it has not begun, and those that follow.

    Attributes:
        cancelled: Whether somebody asked for it.
    """

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Let the statement fail with SQL0952N."""
        self.cancelled = True
        _WATCHER.look()


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Have it end what the block asks, in threads that the block starts by anyio, too."""
    before = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(before)


def current() -> Cancellation:
    """The cancellation of the questions asked here: of `cancelled_by`, or one never used."""
    return _CURRENT.get() or Cancellation()


_WITHIN: ContextVar[float | None] = ContextVar("seconds that a statement may take", default=None)


@contextmanager
def within(timeout_s: float | None) -> Iterator[None]:
    """Have each statement of a question asked in the block end in that time [s].

    Args:
        timeout_s: The time, in place of the catalog's own; as outside of the block when None.
    """
    before = _WITHIN.set(_WITHIN.get() if timeout_s is None else timeout_s)
    try:
        yield
    finally:
        _WITHIN.reset(before)


def allowed_s(of_catalog: float) -> float:
    """The time that a statement may take: as `within` says, or else as the catalog does [s]."""
    limit = _WITHIN.get()
    return of_catalog if limit is None else limit


class Interrupted(Protocol):
    """Interface of what runs statements, and can be interrupted."""

    def interrupt(self) -> None:
        """End what runs."""


class StatementWatch:
    """Interrupts what a cursor runs within its block, when the time is over or on request.

    Attributes:
        look_at: When that is, or when to interrupt once more [s of time.monotonic].
    """

    def __init__(
        self,
        cursor: Interrupted,
        timeout_s: float,
        cancellation: Cancellation,
        began: float | None = None,
    ) -> None:
        """Watch nothing yet.

        Args:
            timeout_s: How long it may take.
            began: From when that counts [s of time.monotonic]; from the block's beginning when
                None.
        """
        self._cursor, self._timeout_s, self._cancellation = cursor, timeout_s, cancellation
        self._began, self.look_at = began, 0.0
        self._over = False
        self._span = Span()

    def __enter__(self) -> "StatementWatch":
        if self._cancellation.cancelled:
            raise self._ended()
        began = time.monotonic() if self._began is None else self._began
        self.look_at = began + self._timeout_s
        waited_s = round(queue_wait_s.get(), 6)
        self._span = begin(
            "statement", {"db.system.name": "duckdb", "framesift.queue_wait_s": waited_s}
        )
        _WATCHER.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _WATCHER.remove(self)
        if kind is not None and kind is not GeneratorExit:  # who reads no further is done
            self._span.fail(kind.__name__)
        self._span.end()

    def look(self, now: float) -> float:
        """Interrupt where it is time to; ``look_at`` then."""
        if now >= self.look_at or self._cancellation.cancelled:
            self._over = True
            self._cursor.interrupt()
            self.look_at = now + _AGAIN_S
        return self.look_at

    def read(self, reader: "pa.RecordBatchReader") -> "Iterator[pa.RecordBatch]":
        """The reader's batches, as long as there is time.

        Raises:
            SqlError: There is none left.
            duckdb.Error: The statement fails on the data.
        """
        while True:
            with self.errors():
                batch = next(reader, None)
            if batch is None:
                return
            if self._over:  # what was computed before may be read after an interrupt
                raise self._ended()
            yield batch

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the engine's errors, also where it is Arrow that reads its rows.

        Raises:
            SqlError: The statement was interrupted.
            duckdb.Error: It failed.
        """
        try:
            yield
        except _errors_of_reading() as error:
            cause = _of_engine(error)
            if isinstance(cause, duckdb.InterruptException):
                raise self._ended() from error
            if cause is error:
                raise
            raise cause from error

    def _ended(self) -> SqlError:
        return SqlError.ended(
            "on request" if self._cancellation.cancelled else f"after {self._timeout_s:g} s"
        )


class _Watcher:
    """The thread. A thread for each statement took 0.3 ms of those that take 3."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watches: set[StatementWatch] = set()
        self._next_look: float | None = None
        self._thread: threading.Thread | None = None

    def add(self, watch: StatementWatch) -> None:
        with self._changed:
            self._watches.add(watch)
            if self._thread is None or not self._thread.is_alive():  # a fork has no threads
                self._thread = threading.Thread(target=self._run, name="sql-watch", daemon=True)
                self._thread.start()
            elif self._next_look is None or watch.look_at < self._next_look:
                self._changed.notify()

    def remove(self, watch: StatementWatch) -> None:
        """Once it has returned, nothing of that watch is interrupted any more."""
        with self._changed:
            self._watches.remove(watch)

    def look(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                self._next_look = min((watch.look(now) for watch in self._watches), default=None)
                self._changed.wait(None if self._next_look is None else self._next_look - now)


_WATCHER = _Watcher()


_BY_NAME: dict[str, type[duckdb.Error]] = {
    "Binder": duckdb.BinderException,
    "Conversion": duckdb.ConversionException,
    "INTERRUPT": duckdb.InterruptException,
    "IO": duckdb.IOException,
    "Out of Memory": duckdb.OutOfMemoryException,
    "Out of Range": duckdb.OutOfRangeException,
}
"""Error class for each word with which DuckDB begins an error's text."""


def _errors_of_reading() -> tuple[type[Exception], ...]:
    """What reading rows raises; asked where it does, as statements without Arrow do without it."""
    import pyarrow as pa

    return duckdb.Error, pa.ArrowException, OSError


def _of_engine(error: Exception) -> duckdb.Error:
    """DuckDB's error; while Arrow reads the rows only its text comes through."""
    if isinstance(error, duckdb.Error):
        return error
    name = str(error).partition(" Error:")[0]
    return _BY_NAME.get(name, duckdb.Error)(str(error))
