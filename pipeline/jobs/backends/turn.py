"""Queues jobs: each waits for a slot in the order in which they came.

A slot is a lock on a file. The job's runner and its commands hold it together, so it is free when
the last of them has ended, however they end.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.file_lock import open_locked, unlock
from catalog.storage.waiting_line import WaitingLine
from pipeline.jobs.queue import Slots


@dataclass(frozen=True)
class Turn:
    """A place in the line of those that wait for a slot."""

    slots: Slots
    """Those that are waited for."""
    line: WaitingLine
    """Of all that wait for them."""
    ticket: str
    """The place."""

    @property
    def before(self) -> int:
        """Jobs that came earlier, and wait, too."""
        return self.line.before(self.ticket)

    def slot(self) -> int | None:
        """An open file that is a slot, to be held; None as long as there is none for this place.

        Raises:
            OSError: The folder cannot be written, or has no locks.
        """
        return _free(self.slots) if self.line.is_turn(self.ticket) else None


@contextmanager
def turn(slots: Slots) -> Iterator[Turn]:
    """A place at the end of the line, for the block.

    Raises:
        OSError: The folder cannot be written.
    """
    slots.folder.mkdir(parents=True, exist_ok=True)
    line = WaitingLine(slots.folder / "slot")
    with line.ticket() as ticket:
        yield Turn(slots, line, ticket)


def _free(slots: Slots) -> int | None:
    """A slot, unless so many are taken; there are more files where there were more slots."""
    busy, free = 0, None
    names = [file.name for file in slots.folder.glob("slot-*")]
    names += [f"slot-{len(names)}"] if len(names) < slots.number else []
    for name in names:
        lock = locked(slots.folder / name)
        if lock is None:
            busy += 1
        elif free is None:
            free = lock
        else:
            os.close(lock)
    if free is not None and busy >= slots.number:
        os.close(free)
        return None
    return free


@contextmanager
def exclusive(path: Path, wait_s: float = 0.0) -> Iterator[bool]:
    """Hold a lock file for the block; gives whether it is held.

    Args:
        path: Of the lock; its folder is made where it is missing.
        wait_s: How long to wait for another process that holds it [s].

    Raises:
        StorageError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open_locked(path, mode=0o600, wait_s=wait_s)
    except OSError as error:
        raise StorageError(f"{path}: cannot be locked: {error.strerror}", str(path)) from error
    try:
        yield lock is not None
    finally:
        unlock(lock)


def locked(path: Path) -> int | None:
    """An open file that is locked by it, made where there is none; None where others lock it.

    Raises:
        OSError: It cannot be opened, or has no locks.
    """
    return open_locked(path, mode=0o600, wait_s=0)
