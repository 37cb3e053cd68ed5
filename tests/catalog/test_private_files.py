"""Who else of the machine may read a home."""

import os
import stat
from pathlib import Path

import pytest

from api.settings import Settings
from api.workspace import Workspace
from catalog.records.sources import add_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.private_files import tighten


def mode(path: Path) -> int:
    """Its permissions."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def _usual_umask() -> object:
    before = os.umask(0o022)
    yield
    os.umask(before)


def source(records: RecordStore, name: str) -> None:
    """Write something."""
    add_source(
        records,
        Source(name=name, uri="/x", platform="NFS", cluster="c", datasource=name, options={}),
    )


def test_a_new_home_is_its_owners_alone(tmp_path: Path) -> None:
    """The folder, and each file of the records while they are written."""
    home = tmp_path / "above" / "home"
    workspace = Workspace(Settings(home=home, cache=None))
    source(workspace.records, "a")
    files = [home / "records" / f"records.sqlite{end}" for end in ("", "-wal", "-shm")]
    assert [mode(file) for file in files] == [0o600] * 3
    assert mode(home) == mode(home.parent) == mode(home / "records") == 0o700
    assert workspace.catalog.snapshot() >= 0
    assert mode(home / "catalog") == 0o700
    workspace.close()
    assert mode(tmp_path) != 0  # what was there before is not looked at


def test_an_old_home_is_tightened(tmp_path: Path) -> None:
    """What version 0.1 made by umask 022; nothing is lost by it."""
    home = tmp_path / "home"
    records = RecordStore(home / "records" / "records.sqlite")
    source(records, "a")
    records.engine.dispose()
    home.chmod(0o755)
    (home / "records" / "records.sqlite").chmod(0o644)
    tightened = Workspace(Settings(home=home, cache=None)).records
    assert [one.name for one in recorded_sources(tightened)] == ["a"]
    assert (mode(home), mode(home / "records" / "records.sqlite")) == (0o700, 0o600)


def test_a_team_s_home_stays_the_team_s(tmp_path: Path) -> None:
    """Of what the group may write only others lose what they may; new files beside follow."""
    home = tmp_path / "home"
    RecordStore(home / "records" / "records.sqlite").engine.dispose()
    for folder in (home, home / "records"):
        folder.chmod(0o2775)
    (home / "records" / "records.sqlite").chmod(0o664)
    records = Workspace(Settings(home=home, cache=None)).records
    source(records, "a")
    files = [home / "records" / f"records.sqlite{end}" for end in ("", "-wal", "-shm")]
    assert [mode(file) for file in files] == [0o660] * 3
    assert (mode(home), mode(home / "records")) == (0o2770, 0o2775)


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    """Another's file, one with an access control list, and a folder that is no home yet."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    RecordStore(shared / "records" / "records.sqlite").engine.dispose()
    assert mode(shared) == 0o755
    listed = tmp_path / "listed"
    listed.write_text("x")
    listed.chmod(0o644)
    # One entry for user 12345 (r--), in the kernel's own form.
    entries = [(1, 6, 0xFFFFFFFF), (2, 4, 12345), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF),
               (32, 0, 0xFFFFFFFF)]  # fmt: skip
    packed = b"\x02\0\0\0" + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(listed, "system.posix_acl_access", packed)
    except OSError as error:
        pytest.skip(f"no access control lists here: {error}")
    before = mode(listed)
    tighten(listed)
    assert mode(listed) == before
    if os.geteuid() == 0:
        other = tmp_path / "other"
        other.write_text("x")
        other.chmod(0o644)
        os.chown(other, 12345, 12345)
        tighten(other)
        assert mode(other) == 0o644
