"""Parts of one version of a file, from every kind of source."""

import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest

from catalog.errors import OtherVersion, UnreadableFile
from catalog.storage.beneath import open_beneath
from catalog.storage.file_version import listed_version
from ingest.sources import local_folder
from ingest.sources.local_folder import LocalFolder
from ingest.sources.opened_file import open_file
from ingest.sources.schemes import open_source
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions
from tests.ingest.s3_server import moto

CONTENT = bytes(range(256)) * 8


class Ranges:
    """A source without a way of its own to open a version."""

    def __init__(self, files: SourceFiles) -> None:
        self.root, self.list, self.read_range = files.root, files.list, files.read_range
        self.read, self.problems, self.spans = files.read, files.problems, files.spans


def source(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> SourceFiles:
    """A source of that kind with one file."""
    (folder / "files" / "a").mkdir(parents=True)
    file = folder / "files" / "a" / "x"
    file.write_bytes(CONTENT)
    if kind == "tar":
        with tarfile.open(folder / "a.tar", "w") as archive:
            archive.add(file, "a/x")
            archive.add(file, "a/xy")
        return open_source(str(folder / "a.tar"))
    if not kind.startswith("s3"):
        files = LocalFolder(folder / "files")
        return Ranges(files) if kind == "ranges" else files
    s3 = moto()
    s3.sign_in(monkeypatch, folder)
    bucket = s3.new_bucket(f"parts-{kind}")
    # obstore can name the one and not the other.
    s3.client().put_object(Bucket=bucket, Key="a/x" if kind == "s3" else "a//x", Body=CONTENT)
    return open_source(f"s3://{bucket}", SourceOptions(endpoint_url=s3.endpoint))


@pytest.mark.parametrize("kind", ["folder", "ranges", "tar", "s3", "s3-odd"])
def test_a_part_of_a_version(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly the bytes that were asked for, with size and version of the whole."""
    files = source(kind, tmp_path, monkeypatch)
    (entry,) = files.list("a//x" if kind == "s3-odd" else "a/x")
    version = listed_version(entry.etag, entry.mtime)
    for start, length in ((0, 3), (5, 1), (200, 700), (2000, 9000), (0, None), (2047, None)):
        with open_file(files, entry.key, version, start, length) as opened:
            end = None if length is None else start + length
            assert b"".join(opened.pieces) == CONTENT[start:end], (start, length)
            assert (opened.size, opened.version) == (len(CONTENT), version)
    with pytest.raises(OtherVersion), open_file(files, entry.key, f"{version}1", 5, 3):
        pass


@pytest.mark.parametrize("other", [b"other", b"y" * len(CONTENT)], ids=["shorter", "as-long"])
def test_a_folder_s_file_that_is_written_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: bytes
) -> None:
    """Whole or in part, with another size or the same: an error that is tried again, no mixture."""
    (tmp_path / "x").write_bytes(CONTENT)
    os.utime(tmp_path / "x", (1e9, 1e9))

    class Written(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            content = super().read(size)
            (tmp_path / "x").write_bytes(other)
            return content

    def opened(folder: str, key: str) -> io.BufferedReader:
        with open_beneath(folder, key) as file:
            return Written(io.FileIO(os.dup(file.fileno())))

    files = LocalFolder(tmp_path)
    monkeypatch.setattr(local_folder, "open_beneath", opened)
    with pytest.raises(UnreadableFile, match="was written while it was read"):
        files.read("x")
    (tmp_path / "x").write_bytes(CONTENT)
    os.utime(tmp_path / "x", (1e9, 1e9))
    with (
        pytest.raises(UnreadableFile, match="was written while it was read"),
        open_file(files, "x", length=9) as part,
    ):
        list(part.pieces)


def test_a_file_of_a_year_that_datetime_has_not() -> None:
    """Its version is that of its listing, so that it can be read."""
    memory = Path("/dev/shm")  # whose file system has such times
    if not memory.is_dir():
        pytest.skip("there is no file system in memory here")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        file = Path(folder, "x")
        file.write_bytes(CONTENT)
        os.utime(file, (3e11, 3e11))
        files = LocalFolder(Path(folder))
        (entry,) = files.list("x")
        with open_file(files, "x", listed_version(entry.etag, entry.mtime)) as opened:
            assert b"".join(opened.pieces) == CONTENT


def test_one_member_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing of one file walks no archive of a million."""
    files = source("tar", tmp_path, monkeypatch)
    assert [entry.key for entry in files.list()] == ["a/x", "a/xy"]
    monkeypatch.setattr(files.index, "members", pytest.fail)  # type: ignore[attr-defined]
    assert [entry.key for entry in files.list("a/x")] == ["a/x"]
    assert list(files.list("a/z")) == []
