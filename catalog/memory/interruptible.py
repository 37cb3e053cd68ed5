"""Statements of a thread in the background, which another thread can end."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb


class Interruptible:
    """Statements of one thread, which another thread can end, for good.

    Attributes:
        ended: Whether it has been.
    """

    def __init__(self) -> None:
        self.ended = False
        self._using: list[duckdb.DuckDBPyConnection] = []
        self._lock = threading.Lock()

    @contextmanager
    def using(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Let `interrupt` end what the block runs on a connection; it may be closed afterwards.

        Raises:
            duckdb.InterruptException: It has been ended already.
        """
        with self._lock:
            if self.ended:
                raise duckdb.InterruptException("Interrupted!")
            self._using.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._using.remove(connection)

    def interrupt(self) -> None:
        """End what runs; to be called until the thread has ended, as it may be between two."""
        with self._lock:
            self.ended = True
            for connection in self._using:
                with suppress(duckdb.Error):  # closed with the store
                    connection.interrupt()
