"""Disks that are full or may not be written, and an S3 that is away: named rightly."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import StorageError
from catalog.frames.frames import register
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.storage.location import CatalogLocation
from catalog.storage.s3_prefix import S3Access, S3Prefix
from catalog.store import CatalogStore
from tests.catalog.backends import new_location
from tests.catalog.some_rows import file, source_names
from tests.disks import small_disk
from tests.ingest.s3_server import moto


def commit(store: CatalogStore, keys: int) -> None:
    with store.writing("made") as connection:
        files = [file(f"{keys}-{number}") for number in range(keys)]
        register(connection, source_names(), files, [], 1)


def fill(disk: Path) -> None:
    status = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(status.f_bavail * status.f_frsize))


def take_inodes(disk: Path) -> None:
    number = 0
    try:
        while True:
            (disk / f"filler{number}").touch()
            number += 1
    except OSError:
        pass


def mount_read_only(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


@contextmanager
def told(disk: Path, words: str) -> Iterator[None]:
    """StorageError that names the disk and what is wrong, in one line."""
    with pytest.raises(StorageError, match=words) as error:
        yield
    assert str(error.value).startswith(str(disk))
    assert "\n" not in str(error.value)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("options", "harm", "words"),
    [
        (["size=2m"], fill, "the disk is full; free some space"),
        (["size=20m", "nr_inodes=24"], take_inodes, "no inodes left"),
        (["size=20m"], mount_read_only, "is mounted read-only"),
    ],
)
def test_the_metadatas_and_the_records_disk(
    tmp_path: Path,
    options: list[str],
    harm: Callable[[Path], None],
    words: str,
) -> None:
    """The data lies on another disk that is well, and is not blamed; a SELECT says it, too."""
    with small_disk(tmp_path / "disk", *options) as disk:
        location = CatalogLocation(disk / "lake" / "catalog.sqlite", tmp_path / "data")
        store = CatalogStore(location, threads=1)
        commit(store, 20)
        store.close()
        RecordStore(disk / "lake" / "records.sqlite").engine.dispose()
        harm(disk)
        with told(disk, words), CatalogStore(location, threads=1).reading() as cursor:
            cursor.execute("SELECT count(*) FROM metaocean")
        with told(disk, words):
            commit(CatalogStore(location, threads=1), 300)
        if harm is not fill:  # the pages that it reads are there
            with told(disk, words):
                recorded_sources(RecordStore(disk / "lake" / "records.sqlite"))


@pytest.mark.wide
def test_s3_that_is_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With metadata in PostgreSQL, which answers: the prefix is named."""
    moto().sign_in(monkeypatch, tmp_path)
    there = new_location("postgres-s3", tmp_path)
    CatalogStore(there).close()
    assert isinstance(there.data, S3Prefix)
    away = replace(there, data=replace(there.data, access=S3Access("http://127.0.0.1:9")))
    with pytest.raises(StorageError, match="no answer") as error:
        CatalogStore(away)
    assert str(error.value).startswith(f"{away.data}: no answer")
    assert "postgresql" not in str(error.value)


_LIMITED = """
import resource, sys
from pathlib import Path
from catalog.errors import StorageError
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
resource.setrlimit(resource.RLIMIT_AS, (1000 << 20, 1000 << 20))
try:
    CatalogStore(CatalogLocation.in_folder(Path(sys.argv[1])), threads=2)
except StorageError as error:
    print(error)
"""


def test_too_little_address_space(folder: Path) -> None:
    """One line that says how much is needed, and no abort."""
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(folder / "catalog")],
        capture_output=True, text=True, check=True, timeout=600,
        cwd=Path(__file__).parent.parent.parent,
    )  # fmt: skip
    assert done.stdout.startswith("this process may take 1,000 MB of address space, and the ")
    assert "ulimit -v" in done.stdout
