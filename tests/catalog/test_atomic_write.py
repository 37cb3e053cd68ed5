"""Files that are written aside: whole or not there, and no killed writer's part stays."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from catalog.errors import StorageError
from catalog.storage.atomic_write import atomic_path, atomic_write, clear_parts, part_of

REPOSITORY = Path(__file__).resolve().parents[2]

_WRITES = """
import sys
from pathlib import Path
from catalog.storage.atomic_write import part_of
with part_of(Path(sys.argv[1]), is_folder=sys.argv[2] == "folder") as part:
    written = part / "file" if part.is_dir() else part
    written.write_text("half")
    print(part, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_is_cleared_by_the_next(tmp_path: Path, kind: str) -> None:
    """A living one's part stays, one of another target too, and a file that only looks alike."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITES, str(tmp_path / name), kind], cwd=REPOSITORY,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("out[1].csv", "out[1].csv", "other.csv")
    ]  # fmt: skip
    parts = [Path(process.stdout.readline().strip()) for process in started if process.stdout]
    assert [file.is_dir() for file in parts] == [kind == "folder"] * 3
    (mine := tmp_path / "out[1].csv.part").touch()
    for killed in (started[0], started[2]):
        killed.kill()
        killed.communicate()
    with part_of(tmp_path / "out[1].csv") as partial:
        assert [path.exists() for path in (*parts, mine, partial)] == [
            False,
            True,
            True,
            True,
            True,
        ]
    assert not partial.exists()
    clear_parts(tmp_path.glob("*.part"))
    assert [path.exists() for path in (*parts, mine)] == [False, True, False, False]
    started[1].communicate()
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_whole_with_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    """Text and bytes; folders above are made where that is wanted, and nothing is left beside."""
    private, shared = tmp_path / "a" / "b" / "key", tmp_path / "list.csv"
    previous = os.umask(0o022)
    try:
        atomic_write(private, "Straße", mode=0o600, parents=True)
        for content in (b"one", b"two"):
            atomic_write(shared, content)
    finally:
        os.umask(previous)
    assert (private.read_text(encoding="utf-8"), shared.read_bytes()) == ("Straße", b"two")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (private, shared)] == [0o600, 0o644]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "key", "list.csv"]
    with pytest.raises(StorageError, match=r"missing/x: cannot be written: No such file"):
        atomic_write(tmp_path / "missing" / "x", b"")


@pytest.mark.parametrize("is_folder", [False, True])
def test_the_block_and_the_disk_decide_together(
    tmp_path: Path, is_folder: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Synced before it is renamed, its folder after; a block that fails leaves what was there."""
    target = tmp_path / "out"
    synced: list[Path] = []
    real = os.fsync

    def noted(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())
        real(handle)

    monkeypatch.setattr(os, "fsync", noted)
    with atomic_path(target, is_folder=is_folder) as partial:
        written = partial / "file" if is_folder else partial
        written.write_text("whole")
        assert not target.exists()
    assert synced == [*([written] if is_folder else []), partial, tmp_path]
    assert (target / "file" if is_folder else target).read_text() == "whole"
    synced.clear()
    for failed in (OSError(errno.ENOSPC, "No space left on device"), ValueError("wrong")):
        expected = StorageError if isinstance(failed, OSError) else ValueError
        with pytest.raises(expected, match=r"No space left|wrong"), atomic_path(target):
            raise failed
    with (
        pytest.raises(StorageError, match=r"out: cannot be written: /nowhere/at/all: No such file"),
        atomic_path(target),
    ):
        Path("/nowhere/at/all").read_bytes()
    assert ([path.name for path in tmp_path.iterdir()], synced) == (["out"], [])


def test_a_file_system_without_locks_takes_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lustre mounted without flock: a model is written there; nobody takes it for a leftover."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with atomic_path(tmp_path / "model") as partial:
        partial.write_bytes(b"weights")
        clear_parts(tmp_path.glob("*.part"))
    assert (tmp_path / "model").read_bytes() == b"weights"
