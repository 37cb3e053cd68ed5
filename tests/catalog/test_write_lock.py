"""The lock that keeps writers apart."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, StorageError
from catalog.storage.waiting_line import WaitingLine
from catalog.storage.write_lock import write_lock
from tests.api.servers import wait_until
from tests.zygote import Forked

REPOSITORY = Path(__file__).parent.parent.parent
_HOLDER = """
import sys
from pathlib import Path
from catalog.storage.write_lock import write_lock
with write_lock(Path(sys.argv[1]), 0):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock until its standard input has a line."""
    pipe = subprocess.PIPE
    with Forked(["-c", _HOLDER, str(lock)], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_busy_names_the_holder_in_time(tmp_path: Path) -> None:
    """The second process waits as long as it was told, then says who holds the lock."""
    lock = tmp_path / "lock"
    with holder(lock) as other:
        began = time.monotonic()
        with pytest.raises(CatalogBusy) as error, write_lock(lock, 0.3):
            pass
        assert 0.3 <= time.monotonic() - began < 60
    assert f"process {other.pid} on {socket.gethostname()} since" in str(error.value)
    assert "waited 0.3 s" in str(error.value)


def test_a_wait_ends_when_the_holder_does(tmp_path: Path) -> None:
    """A waiting writer goes on as soon as the other is done."""
    lock = tmp_path / "lock"
    with holder(lock) as other:
        assert other.stdin is not None
        threading.Timer(0.1, lambda: other.stdin and other.stdin.close()).start()
        with write_lock(lock, 120):
            assert other.wait(120) == 0


def test_the_kernel_frees_the_lock_of_a_killed_process(tmp_path: Path) -> None:
    """After SIGKILL the lock is free at once, though the note of its holder is still there."""
    lock = tmp_path / "lock"
    with holder(lock) as other:
        other.send_signal(signal.SIGKILL)
        other.wait(120)
        assert str(other.pid) in lock.read_text()
        with write_lock(lock, 0):
            assert str(os.getpid()) in lock.read_text()


def test_threads_exclude_each_other_and_errors_free_the_lock(tmp_path: Path) -> None:
    """The lock holds within a process too, and is free after a block that raised."""
    lock = tmp_path / "lock"
    busy = pytest.raises(CatalogBusy, match=f"process {os.getpid()}")
    with write_lock(lock, 0), busy, write_lock(lock, 0):
        pass
    with pytest.raises(ZeroDivisionError), write_lock(lock, 0):
        raise ZeroDivisionError
    with write_lock(lock, 0):
        pass


@pytest.mark.parametrize("note", [b"", b"\xff\xfe", b"[]", b'{"pid": 1}'])
def test_an_unreadable_note_is_no_obstacle(tmp_path: Path, note: bytes) -> None:
    """Where the note of the holder cannot be read, the message does without it."""
    lock = tmp_path / "lock"
    with write_lock(lock, 0):
        lock.write_bytes(note)
        with pytest.raises(CatalogBusy, match="another process"), write_lock(lock, 0):
            pass


def test_a_longer_note_of_an_earlier_holder_is_gone(tmp_path: Path) -> None:
    """The message names the holder, whatever length of note was there before."""
    lock = tmp_path / "lock"
    lock.write_text("x" * 1000)
    busy = pytest.raises(CatalogBusy, match=f"process {os.getpid()} on")
    with write_lock(lock, 0), busy, write_lock(lock, 0):
        pass


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """A lock file that cannot be opened is StorageError with its path."""
    with pytest.raises(StorageError) as error, write_lock(tmp_path / "gone" / "lock", 0):
        pass
    assert error.value.path == str(tmp_path / "gone" / "lock")


def test_who_waits_gets_the_lock_in_the_order_of_coming(tmp_path: Path) -> None:
    """Each of five waiters is served in turn, though their tries come when they will."""
    lock = tmp_path / "lock"
    served: list[str] = []

    def wait(name: str) -> None:
        with write_lock(lock, 120):
            served.append(name)
            time.sleep(0.05)  # so long the others would have for a try out of order

    names = [f"w{number}" for number in range(5)]
    waiting = [threading.Thread(target=wait, args=(name,)) for name in names]
    with write_lock(lock, 0):
        for position, thread in enumerate(waiting, start=1):
            thread.start()
            wait_until(partial(has_tickets, lock, position))
    for thread in waiting:
        thread.join(120)
    assert served == names
    assert not tickets(lock)


def test_a_newcomer_overtakes_nobody(tmp_path: Path) -> None:
    """The lock is free and one waits for it: a later one stands in line, whatever the moment.

    One that would not wait makes its only try nevertheless.
    """
    lock = tmp_path / "lock"
    served: list[str] = []

    def come() -> None:
        with write_lock(lock, 120):
            served.append("newcomer")

    newcomer = threading.Thread(target=come)
    with WaitingLine(lock).ticket():  # of one that is between two tries
        newcomer.start()
        wait_until(lambda: bool(served) or has_tickets(lock, 2))
        assert not served
        with write_lock(lock, 0):
            pass
    newcomer.join(120)
    assert served == ["newcomer"]


def test_a_killed_waiter_holds_nobody_up(tmp_path: Path) -> None:
    """The place in line of a process that was killed is cleared by those behind it."""
    lock = tmp_path / "lock"
    program = _HOLDER.replace(", 0)", ", 120)")
    with write_lock(lock, 0):
        waiter = Forked(["-c", program, str(lock)])
        wait_until(partial(has_tickets, lock, 1))
        waiter.kill()
        waiter.wait(120)
        assert len(tickets(lock)) == 1
    with write_lock(lock, 120):
        assert not tickets(lock)


def has_tickets(lock: Path, number: int) -> bool:
    """Whether so many wait for the lock."""
    return len(tickets(lock)) == number


def tickets(lock: Path) -> list[Path]:
    """Places in the lock's line."""
    return [path for path in lock.with_name(f"{lock.name}.waiting").glob("*") if not path.suffix]
