"""A home that nobody may write: on a read-only file system, or of another user."""

import gc
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, StorageError
from catalog.storage.location import CatalogLocation
from catalog.storage.write_lock import quiescing_lock, write_lock
from catalog.store import CatalogStore
from tests.api.servers import framesift
from tests.disks import mount, small_disk, unmount

WITHOUT = "-dac_override,-dac_read_search"
PERMISSIONS_COUNT = ("setpriv", f"--inh-caps={WITHOUT}", f"--bounding-set={WITHOUT}")
"""Before a command: files' permissions hold for root, too."""


@pytest.fixture
def homes(catalogued: Path, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """A home on a disk, and the same where the disk is mounted a second time, read-only."""
    with small_disk(tmp_path / "disk", "size=60m") as disk:
        shutil.copytree(catalogued, disk / "home")
        mounted = tmp_path / "mounted"
        mount(mounted, "--bind", str(disk))
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(mounted)], check=True)
            yield disk / "home", mounted / "home"
        finally:
            unmount(mounted)


def harm(home: Path) -> None:
    """Leave a stray data file, and no view of a tag."""
    data = home / "catalog" / "data" / "main" / "files"
    (data / "orphan.parquet").write_bytes(b"PAR1")
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    with store.writing("harm") as connection:
        connection.execute("DROP VIEW lake.bluadmin.t_front")
    store.close()


@pytest.mark.wide
def test_checked_and_backed_up(homes: tuple[Path, Path], tmp_path: Path) -> None:
    """On a read-only file system; the backup is whole. A fault is found there, not repaired."""
    written, home = homes
    checked = framesift(home, "catalog", "check")
    assert (checked.returncode, checked.stdout) == (0, "nothing is wrong\n"), checked.stderr
    for name in ("backup", "backup.tar"):
        backed_up = framesift(home, "catalog", "backup", tmp_path / name)
        assert backed_up.returncode == 0, backed_up.stderr
        assert "the home does not record this backup" in backed_up.stderr
        restored = framesift(tmp_path / f"of-{name}", "catalog", "restore", tmp_path / name)
        assert restored.returncode == 0, restored.stderr
        again = framesift(tmp_path / f"of-{name}", "catalog", "check")
        assert again.stdout == "nothing is wrong\n", again.stderr
    harm(written)
    gc.collect()  # its last handle on the metadata takes SQLite's log with it
    found = framesift(home, "catalog", "check")
    assert found.returncode == 1, found.stderr
    assert found.stderr == ""
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == ["orphan_file", "view"]
    repaired = framesift(home, "catalog", "check", "--repair")
    assert repaired.returncode == 1
    assert "read-only" in repaired.stderr.lower()
    assert framesift(written, "catalog", "check", "--repair").returncode == 0
    assert framesift(home, "catalog", "check").stdout == "nothing is wrong\n"


def test_writers_are_kept_out(homes: tuple[Path, Path]) -> None:
    """Who may write it, at its other place, waits for who looks, and the other way round."""
    written, home = (each / "catalog" / "catalog.lock" for each in homes)
    busy = pytest.raises(CatalogBusy, match="looked at by process")
    with write_lock(written, 0.0), busy, quiescing_lock(home, 0.1, "looked at"):
        pass
    with quiescing_lock(home, 0.0, "looked at"), quiescing_lock(home, 0.0, "looked at"):
        with pytest.raises(CatalogBusy), write_lock(written, 0.1):
            pass
        with pytest.raises(StorageError, match="Read-only file system"), write_lock(home, 0.0):
            pass
    written.unlink()
    with quiescing_lock(home, 0.0, "looked at"):
        assert not written.exists()


@pytest.mark.wide
def test_of_another_user(catalogued: Path, tmp_path: Path) -> None:
    """Who may read it alone checks it and backs it up, and leaves nothing there."""
    home = tmp_path / "home"
    shutil.copytree(catalogued, home)
    before = sorted(home.rglob("*"))
    for path in (home, *before):
        path.chmod(0o555 if path.is_dir() else 0o444)
    checked = framesift(home, "catalog", "check", prefix=PERMISSIONS_COUNT)
    assert (checked.returncode, checked.stdout) == (0, "nothing is wrong\n"), checked.stderr
    backed_up = framesift(home, "catalog", "backup", tmp_path / "backup", prefix=PERMISSIONS_COUNT)
    assert backed_up.returncode == 0, backed_up.stderr
    (line,) = backed_up.stderr.splitlines()
    assert "the home does not record this backup" in line
    assert sorted(home.rglob("*")) == before
    for path in (home, *before):
        path.chmod(0o755)
