"""Locks on files: other processes wait, a replaced file is no lock, programs do not inherit it."""

import errno
import fcntl
import os
import subprocess
import threading
from pathlib import Path

import pytest

from catalog.storage.file_lock import is_locked, lock, locked, open_locked, unlock


def test_one_holder_or_several_that_share(tmp_path: Path) -> None:
    """Another open file gets it neither at once nor after a wait; readers share it."""
    path = tmp_path / "lock"
    assert not is_locked(path)
    held = open_locked(path, mode=0o600)
    assert path.stat().st_mode & 0o777 == 0o600
    assert is_locked(path)
    assert open_locked(path, wait_s=0) is None
    assert open_locked(path, wait_s=0.05) is None
    unlock(held)
    assert not is_locked(path)
    with path.open("rb") as one, path.open("rb") as two, path.open("rb") as writer:
        assert lock(one, shared=True)
        assert lock(two, shared=True, wait_s=0)
        assert not lock(writer, wait_s=0)
    assert [open_locked(path, wait_s=0) is None for _ in range(2)] == [False, True]


def test_a_file_that_was_replaced_is_no_lock(tmp_path: Path) -> None:
    """A process that waited for a removed file holds the one that is there now."""
    path = tmp_path / "lock"
    first = open_locked(path)
    waiting = threading.Event()
    holders: list[int | None] = []

    def wait() -> None:
        waiting.set()
        holders.append(open_locked(path, wait_s=60))

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    path.unlink()
    unlock(first)
    thread.join()
    (holder,) = holders
    assert holder is not None
    assert os.path.samestat(os.fstat(holder), path.stat())
    assert open_locked(path, wait_s=0) is None
    os.close(holder)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        open_locked(path, os.O_RDWR)


def test_programs_do_not_inherit_it_and_forks_do_not_keep_it(tmp_path: Path) -> None:
    """A program that was started goes on; a fork has the file open until it ends."""
    path = tmp_path / "lock"
    with locked(path):
        program = subprocess.Popen(["sleep", "600"], close_fds=False)
        reads, writes = os.pipe()
        fork = os.fork()
        if fork == 0:
            os.close(writes)
            os.read(reads, 1)
            os._exit(0)
    assert not is_locked(path)
    os.close(writes)
    os.waitpid(fork, 0)
    program.kill()
    program.wait()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error, or the file without a lock where that does."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(OSError, match="not implemented"):
        open_locked(tmp_path / "lock")
    assert not is_locked(tmp_path / "lock")
    file = open_locked(tmp_path / "lock", is_optional=True)
    assert file is not None
    os.close(file)
