"""Nothing outside a source's folder is read, whatever is put into it and whenever."""

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Generator
from itertools import count
from pathlib import Path

import pytest

from catalog.errors import BadFile, StorageError, UnreadableFile
from catalog.records.scans import recorded_problems
from catalog.storage.beneath import open_beneath
from ingest.scan.scan import ScanResult
from ingest.sources.local_folder import LocalFolder
from ingest.sources.schemes import open_source
from ingest.sources.source_options import SourceOptions
from tests.ingest.scene_folders import Home, frame_key, make_tree

SECRET = b"SECRET-of-another-folder"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A source's folder beside a secret."""
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "f").write_bytes(SECRET)
    folder = tmp_path / "root"
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "f").write_bytes(b"mine")
    return folder


def opened(root: Path) -> int:
    """How many descriptors of this process are of the folder or of what lies in it."""
    count = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # another thread has closed it
            count += descriptor.readlink().is_relative_to(root.resolve())
    return count


def links_out(root: Path) -> dict[str, str]:
    """Keys of a folder below which everything leads elsewhere, and where."""
    targets = {
        "absolute": str(root.parent / "secret"), "relative": "../secret", "proc": "/proc/self/maps",
        "chain": "relative", "device": "/dev/zero", "terminal": "/dev/tty", "folder": "../hidden",
        "dots": "a/../../secret", "twin": f"{root}2/f", "twins": "../root2",
    }  # fmt: skip
    (root.parent / "root2").mkdir()
    (root.parent / "root2" / "f").write_bytes(SECRET)
    for name, target in targets.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    os.mkfifo(root.parent / "pipe_out")
    (root / "to_pipe").symlink_to("../pipe_out")
    keys = [*targets, "pipe", "to_pipe", "folder/f", "twins/f"]
    return {key: targets.get(key, "") for key in keys}


def test_links_that_lead_out_are_not_read(root: Path) -> None:
    """Files, devices, pipes: refused without waiting, by whole and by part; no foreign status."""
    source = LocalFolder(root)

    def opened_whole(key: str) -> bytes:
        with source.open_file(key) as file:
            return b"".join(file.pieces)

    for key in links_out(root):
        for read in (source.read, lambda key: source.read_range(key, 0, 8), opened_whole):
            with pytest.raises(BadFile) as refused:
                read(key)
            assert SECRET.decode() not in str(refused.value), key
        for entry in source.list(key):
            assert entry.permissions.startswith("l"), key
            assert entry.size != len(SECRET) or key == "absolute", key
    assert [*source.list("folder/"), *source.list("twins/")] == []
    listed = {entry.key: entry.permissions[0] for entry in source.list()}
    assert listed.pop("a/f") == "-"
    assert set(listed.values()) == {"l"}
    assert set(listed) == {"absolute", "relative", "proc", "chain", "dots", "twin"}


def test_links_that_stay_are_read(root: Path) -> None:
    """Relative and absolute ones, through others, and the folder itself reached by a link."""
    (root / "near").symlink_to("a/f")
    (root / "absolute").symlink_to(root / "a" / "f")
    (root / "again").symlink_to("near")
    (root.parent / "link").symlink_to(root)
    for folder in (root, root.parent / "link"):
        source = LocalFolder(folder)
        assert {source.read(key) for key in ("near", "absolute", "again")} == {b"mine"}
        assert [entry.permissions[0] for entry in source.list()] == ["-"] * 4


def test_a_file_and_its_folder_are_swapped_while_they_are_read(root: Path) -> None:
    """However the race ends, it is one's own content or an error."""
    source, stop = LocalFolder(root), threading.Event()
    (root / "b").mkdir()
    (root / "b" / "f").write_bytes(b"mine")

    def swap() -> None:
        while not stop.is_set():
            (root / "new").symlink_to("../../secret")
            (root / "new").replace(root / "a" / "f")
            (root / "new").write_bytes(b"mine")
            (root / "new").replace(root / "a" / "f")
            (root / "b").rename(root / "kept")
            (root / "b").symlink_to("../hidden")
            (root / "b").unlink()
            (root / "kept").rename(root / "b")

    swapping = threading.Thread(target=swap)
    swapping.start()
    contents: set[bytes] = set()
    until = time.monotonic() + 60
    try:
        for number in count():
            # On a busy machine the other thread may have been at work in none of them.
            if number >= 300 and (contents == {b"mine", b""} or time.monotonic() > until):
                break
            for key in ("a/f", "b/f"):
                try:
                    contents.add(source.read(key))
                except UnreadableFile:
                    contents.add(b"")
            contents.update(b"listed" for entry in source.list("b/") if entry.size == len(SECRET))
    finally:
        stop.set()
        swapping.join()
    assert contents == {b"mine", b""}


def test_a_folder_is_swapped_while_it_is_listed(root: Path) -> None:
    """What was not listed yet is asked of the folder that was opened, not of its path."""
    (root / "a" / "sub").mkdir()
    for name in ("g", "sub/h"):
        (root / "a" / name).write_bytes(b"mine")
        (root.parent / "hidden" / name).parent.mkdir(exist_ok=True)
        (root.parent / "hidden" / name).write_bytes(SECRET)
    listing = LocalFolder(root).list()
    assert next(listing).key == "a/f"
    (root / "a").rename(root.parent / "kept")
    (root / "a").symlink_to("../hidden")
    assert [(file.key, file.size) for file in listing] == [("a/g", len(b"mine"))]


def test_nothing_stays_open(root: Path) -> None:
    """However far a listing went, and however deep."""
    deep = root
    for _ in range(30):
        deep = deep / "deep"
        deep.mkdir()
        (deep / "a").write_bytes(b"")
        (deep / "z").write_bytes(b"")
    listing = LocalFolder(root).list()
    assert next(listing).key == "a/f"
    assert opened(root) == 1
    assert len(list(listing)) == 60
    half = LocalFolder(root).list("deep/")
    assert isinstance(half, Generator)
    assert [next(half).key for _ in range(3)][2] == "deep/deep/deep/a"
    assert opened(root) == 1
    half.close()
    assert opened(root) == 0


def test_a_root_that_is_swapped(root: Path, tmp_path: Path) -> None:
    """A source that lies below an allowed folder does not leave it; a folder nor an archive."""
    within = SourceOptions(within=str(tmp_path))
    assert open_source(str(root), within).read("a/f") == b"mine"
    opened = LocalFolder(root, within)
    shutil.rmtree(root)
    root.symlink_to("/etc")
    with pytest.raises(StorageError, match="leads out"):
        open_source(str(root), within)
    with pytest.raises(BadFile):
        opened.read("hostname")
    archive = tmp_path / "x.tar"
    archive.symlink_to("/etc/hostname")
    with pytest.raises(StorageError, match="leads out"):
        open_source(str(archive), within)


def test_a_disk_that_fails() -> None:
    """Reading the first byte of a process's memory is EIO: the source's fault, not the file's."""
    with pytest.raises(StorageError, match="the source fails"):
        LocalFolder(Path("/proc/self")).read("mem")


@pytest.mark.wide
def test_a_scan_of_what_leads_out(home: Home, tmp_path: Path) -> None:
    """A label that is a link to another folder is a problem of the scan, without its content."""
    tree = make_tree(tmp_path / "tree")
    label = tree / frame_key("label", 2)
    (tmp_path / "elsewhere.png").write_bytes(label.read_bytes())
    source = home.add(tree)
    label.unlink()
    label.symlink_to(tmp_path / "elsewhere.png")
    result: ScanResult = home.scan(source)
    assert (result.counts.frames, result.counts.bad_files) == (2, 1)
    assert home.problems(result.scan) == [("unreadable", frame_key("label", 2))]
    label.unlink()
    label.write_bytes(SECRET)
    home.scan(source)
    (problem,) = recorded_problems(home.records, source_id=source.id)
    assert SECRET[:6].decode() not in problem.reason


def test_a_file_is_closed_and_complete(root: Path) -> None:
    """Nothing of the way to it stays open."""
    for _ in range(100):
        with open_beneath(os.path.realpath(root), "a/f") as file:
            assert file.read() == b"mine"
        with pytest.raises(OSError, match="no regular file"):
            open_beneath(os.path.realpath(root), "a")
    assert opened(root) == 0
