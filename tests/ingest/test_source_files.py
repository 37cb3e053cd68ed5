"""Listing and reading a folder of files."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

import pytest

from catalog.errors import BadFile, InvalidInput, StorageError
from ingest.sources import local_folder
from ingest.sources.local_folder import LocalFolder
from ingest.sources.schemes import open_source

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
REPOSITORY = Path(__file__).parent.parent.parent


def keys(root: Path) -> list[str]:
    return [file.key for file in LocalFolder(root).list()]


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_listing_is_sorted_and_keeps_folders_together(tmp_path: Path) -> None:
    """Every folder in sorted order, its files together, the same each time."""
    names = ["b/2", "b/10", "a/z/1", "a.txt", "a/b", "b/1", "Z", "a-b/1"]
    touch(tmp_path, *names)
    listed = keys(tmp_path)
    assert listed == keys(tmp_path)
    assert sorted(listed) == sorted(names)
    folders = [key.rpartition("/")[0] for key in listed if key.startswith("b/")]
    assert folders == ["b"] * 3
    assert listed.index("b/1") + 2 == listed.index("b/2")


def test_a_row_says_what_the_file_system_says(tmp_path: Path) -> None:
    """Size, times, numbers, names and permissions are the file's own."""
    touch(tmp_path, "f")
    (tmp_path / "f").chmod(0o640)
    os.utime(tmp_path / "f", ns=(1_500_000_000_123_456_789, 1_600_000_000_654_321_987))
    (file,) = LocalFolder(tmp_path).list()
    status = (tmp_path / "f").stat()
    assert file.mtime == datetime(2020, 9, 13, 12, 26, 40, 654321)  # noqa: DTZ001
    assert (file.size, file.inode, file.uid, file.gid) == (
        1,
        status.st_ino,
        os.getuid(),
        os.getgid(),
    )
    assert file.permissions == "-rw-r-----"
    assert file.owner


def test_numbers_that_other_file_systems_give(tmp_path: Path) -> None:
    """64-bit inode numbers and impossible times fit the catalog's columns."""
    touch(tmp_path, "f")
    fields = list((tmp_path / "f").stat())
    fields[stat.ST_INO] = 2**64 - 5
    nanoseconds = {"st_mtime_ns": 10**30, "st_atime_ns": -(10**30), "st_ctime_ns": 0}
    file = local_folder._file("f", os.stat_result(fields, {**nanoseconds, "st_blocks": 1}))
    assert file.inode == -5
    assert (file.mtime.year, file.atime and file.atime.year) == (9999, 1)
    assert file.ctime == datetime(1970, 1, 1)  # noqa: DTZ001


def test_links(tmp_path: Path) -> None:
    """Links to files count; links to folders, to nothing, in circles and special files do not."""
    touch(tmp_path, "folder/file")
    (tmp_path / "to_file").symlink_to("folder/file")
    (tmp_path / "to_folder").symlink_to("folder")
    (tmp_path / "to_nothing").symlink_to("gone")
    (tmp_path / "to_itself").symlink_to("to_itself")
    (tmp_path / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")
    assert keys(tmp_path) == ["folder/file", "to_file"]


def test_files_and_folders_that_vanish_while_listed(tmp_path: Path) -> None:
    """What is removed while the listing runs is left out; the rest is listed."""
    touch(tmp_path, "a", "b", "c/1", "d/1", "e")
    listing = LocalFolder(tmp_path).list()
    assert next(listing).key == "a"
    (tmp_path / "b").unlink()
    shutil.rmtree(tmp_path / "c")
    assert [file.key for file in listing] == ["d/1", "e"]


def test_a_root_that_vanishes_is_an_error(tmp_path: Path) -> None:
    """An unmounted source must not look empty: a scan would take every file for removed."""
    (tmp_path / "root").mkdir()
    source = LocalFolder(tmp_path / "root")
    (tmp_path / "root").rmdir()
    with pytest.raises(StorageError, match="cannot be listed"):
        list(source.list())


@pytest.mark.parametrize("replaced", [False, True])
def test_a_root_that_vanishes_while_listed_is_an_error(tmp_path: Path, replaced: bool) -> None:
    """Gone, or an empty mount point in its place: the rest must not pass for removed."""
    root = tmp_path / "root"
    touch(root, "a", "b/1", "c/1")
    listing = LocalFolder(root).list()
    assert next(listing).key == "a"
    root.rename(tmp_path / "away")
    if replaced:
        root.mkdir()
    with pytest.raises(StorageError, match=r"unmounted|cannot be listed"):
        list(listing)


def test_very_deep_folders(tmp_path: Path) -> None:
    """Folders deeper than Python recurses are listed."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    listed = keys(tmp_path)
    subprocess.run(["rm", "-r", str(tmp_path / "d")], check=True)  # pytest itself would recurse
    assert listed == ["d/" * 1200 + "f"]


def test_reading(tmp_path: Path) -> None:
    """A whole file and any part of it; parts beyond the end are shorter."""
    (tmp_path / "f").write_bytes(b"0123456789")
    source = LocalFolder(tmp_path)
    assert source.read("f") == b"0123456789"
    assert [source.read_range("f", *span) for span in ((0, 3), (8, 5), (20, 1))] == [
        b"012",
        b"89",
        b"",
    ]


@pytest.mark.parametrize("key", ["gone", "folder", "file/below", "x" * 300])
def test_files_that_cannot_be_read(tmp_path: Path, key: str) -> None:
    """A vanished file, a folder, a path through a file, a name too long: BadFile with its key."""
    touch(tmp_path, "file", "folder/file")
    source = LocalFolder(tmp_path)
    with pytest.raises(BadFile) as whole:
        source.read(key)
    with pytest.raises(BadFile) as error:
        source.read_range(key, 0, 1)
    assert whole.value.file == error.value.file == key
    assert str(whole.value).startswith(key)


def test_too_large_files_are_refused_unread(tmp_path: Path) -> None:
    """A file of a terabyte (sparse) is BadFile at once, and is still listed."""
    touch(tmp_path, "huge")
    os.truncate(tmp_path / "huge", 2**40)
    source = LocalFolder(tmp_path)
    with pytest.raises(BadFile, match="at most"):
        source.read("huge")
    assert next(source.list()).size == 2**40


_AS_NOBODY = """
import sys
from catalog.errors import BadFile, StorageError
from ingest.sources.local_folder import LocalFolder
from pathlib import Path
root = Path(sys.argv[1])
for work in (
    lambda: LocalFolder(root / "closed"),
    lambda: list(LocalFolder(root / "holds_closed").list()),
    lambda: list(LocalFolder(root / "names_only").list()),
    lambda: LocalFolder(root / "open").read("secret"),
):
    try:
        print("no error:", work())
    except (BadFile, StorageError) as error:
        print(type(error).__name__, error)
print([file.key for file in LocalFolder(root / "open").list()])
"""


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own are closed to others."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.getuid() != 0 or not which("setpriv"), reason="needs root and setpriv")
def test_permission_denied(public_folder: Path) -> None:
    """As nobody: folders that may not be listed are StorageError naming them, files unreadable."""
    tmp = public_folder
    touch(tmp, "closed/f", "holds_closed/a", "holds_closed/b/f", "names_only/f")
    touch(tmp, "open/secret", "hidden/f")
    (tmp / "open/link").symlink_to(tmp / "hidden" / "f")
    for folder in ("closed", "holds_closed/b", "hidden"):
        (tmp / folder).chmod(0)
    (tmp / "names_only").chmod(0o744)
    (tmp / "open/secret").chmod(0o600)
    done = subprocess.run(
        [*NOBODY, sys.executable, "-c", _AS_NOBODY, str(tmp)],
        cwd=REPOSITORY,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if "ermission denied" in done.stderr:
        pytest.skip(f"another user cannot run this Python: {done.stderr.splitlines()[-1]}")
    assert done.stdout.splitlines() == [
        f"StorageError {tmp}/closed: permission denied",
        f"StorageError {tmp}/holds_closed/b: cannot be listed: Permission denied",
        f"StorageError {tmp}/names_only: permission denied",
        "UnreadableFile secret: cannot be read: Permission denied",
        "['secret']",
    ], done.stderr


def test_uris(tmp_path: Path) -> None:
    """A path and its file: URIs name the same folder, odd characters included."""
    folder = tmp_path / "a #?%41;[b] ä"
    touch(folder, "f")
    for uri in (
        str(folder),
        folder.as_uri(),
        folder.as_uri().replace("file://", "file://localhost"),
        folder.as_uri().replace("file://", "FILE:"),
    ):
        source = open_source(uri)
        assert isinstance(source, LocalFolder)
        assert source.root == str(folder)
        assert [file.key for file in source.list()] == ["f"]


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gs://bucket/a", "'gs' is not supported"),
        ("http://[broken/a", "'http' is not supported"),
        ("file://data/a2d2", "'data' is taken for another host"),
        ("", "empty"),
    ],
)
def test_uris_that_are_refused(uri: str, words: str) -> None:
    """Other schemes, other hosts and nothing at all say what was expected."""
    with pytest.raises(InvalidInput, match=words):
        open_source(uri)


def test_a_missing_folder(tmp_path: Path) -> None:
    """A folder that is not there is StorageError with its path."""
    with pytest.raises(StorageError) as error:
        open_source(str(tmp_path / "gone"))
    assert error.value.path == str(tmp_path / "gone")
