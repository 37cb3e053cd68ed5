"""Whose turn it is: jobs wait for a slot in the order in which they came.

A slot is a lock on a file. The job's runner and its commands hold it together, so it is free when
the last of them has ended, however they end. Who waits holds a lock on a ticket, a file whose name
says since when; a ticket that nobody holds is of a process that was killed. Who looks holds the
gate.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.jobs.queue import Slots


class Turn:
    """A job's turn, until `release`."""

    def __init__(self, slots: Slots) -> None:
        """Draw a ticket.

        Raises:
            OSError: The folder cannot be written, or has no locks.
        """
        self._slots = slots
        slots.folder.mkdir(parents=True, exist_ok=True)
        self._path = slots.folder / f"ticket-{time.time_ns():020d}-{os.getpid()}"
        with self._gate():
            self._ticket = locked(self._path)
        self._slot: int | None = None
        self.before = 0
        """Jobs that came earlier and waited, too, when `come` was last asked."""

    def come(self) -> int | None:
        """The number of the open file that is the slot; None as long as there is none.

        Raises:
            OSError: The folder cannot be written, or has no locks.
        """
        with self._gate():
            self.before = self._waiting_before()
            if self._slot is None and self.before == 0:
                self._slot = self._free_slot()
                if self._slot is not None:
                    self._drop_ticket()
        return self._slot

    def _waiting_before(self) -> int:
        found = 0
        for ticket in self._slots.folder.glob("ticket-*"):
            if ticket.name < self._path.name:
                lock = locked(ticket)
                if lock is None:
                    found += 1
                else:
                    ticket.unlink(missing_ok=True)
                    os.close(lock)
        return found

    def release(self) -> None:
        """Let go of ticket and slot; what has the slot's file still holds it."""
        self._drop_ticket()
        if self._slot is not None:
            os.close(self._slot)
            self._slot = None

    def _drop_ticket(self) -> None:
        if self._ticket is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._ticket)
            self._ticket = None

    def _free_slot(self) -> int | None:
        """A slot, unless so many are taken; there are more files where there were more slots."""
        taken, free = 0, None
        names = [file.name for file in self._slots.folder.glob("slot-*")]
        names += [f"slot-{len(names)}"] if len(names) < self._slots.number else []
        for name in names:
            lock = locked(self._slots.folder / name)
            if lock is None:
                taken += 1
            elif free is None:
                free = lock
            else:
                os.close(lock)
        if free is not None and taken >= self._slots.number:
            os.close(free)
            return None
        return free

    @contextmanager
    def _gate(self) -> Iterator[None]:
        gate = os.open(self._slots.folder / "gate", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield
        finally:
            os.close(gate)


def locked(path: Path) -> int | None:
    """An open file that is locked by it, made where there is none; None where others lock it.

    Raises:
        OSError: It cannot be opened, or has no locks.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError:
        os.close(file)
        raise
    return file
