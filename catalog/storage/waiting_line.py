"""The line of processes that wait for a lock file, in the order in which they came.

A process that asks for an flock in a loop overtakes those that sleep between two tries: beside
three writers a compaction waited 34 s for one lock. So a waiting process puts a file, its ticket,
into the folder ``<lock>.waiting`` and holds the ticket's flock. It tries only while no ticket of a
living process is before its own. The kernel frees a killed process's ticket, and the next in line
removes it.
"""

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from catalog.storage.file_lock import is_locked, lock

_PART = ".part"
_numbers = itertools.count()


class WaitingLine:
    """The line of one lock file."""

    def __init__(self, lock: Path) -> None:
        """The line of ``lock``."""
        self._folder = lock.with_name(f"{lock.name}.waiting")

    def is_empty(self) -> bool:
        """Return whether no living process waits."""
        return self._first() is None

    @contextmanager
    def ticket(self) -> Iterator[str]:
        """A place at the line's end, for the block.

        Where the folder takes no file, on a full disk, the ticket is before all others: its holder
        tries without order.
        """
        name = f"{time.time_ns():020}-{os.getpid()}-{next(_numbers)}"
        partial = self._folder / f"{name}{_PART}"
        try:
            self._folder.mkdir(exist_ok=True)
            handle = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError:
            yield ""
            return
        try:
            # Locked before others see it: a free ticket is a dead one.
            lock(handle, wait_s=0)
            partial.rename(self._folder / name)
            yield name
        finally:
            for path in (self._folder / name, partial):
                path.unlink(missing_ok=True)
            os.close(handle)

    def is_turn(self, ticket: str) -> bool:
        """Return whether no living ticket is before this one."""
        first = self._first()
        return first is None or ticket <= first

    def before(self, ticket: str) -> int:
        """Number of living tickets before this one."""
        return sum(1 for name in self._living() if name < ticket)

    def _first(self) -> str | None:
        return next(self._living(), None)

    def _living(self) -> Iterator[str]:
        """The living tickets in their order; dead ones before them are cleared."""
        try:
            names = sorted(path.name for path in self._folder.iterdir())
        except OSError:
            return
        for name in names:
            if name.endswith(_PART):
                continue
            if is_locked(self._folder / name):
                yield name
            else:
                with suppress(OSError):
                    (self._folder / name).unlink()
