"""A catalog in a folder whose path is also a pattern: only its own files are read and deleted."""

from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.frames.frames import register
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.store import CatalogStore
from tests.catalog.histories import AT_ONCE, held
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names
from tests.templates import Templates

ODD = ["run[12]", "run?", "*", "{run1,run2}[[] %j a=1 $HOME '\" ;#"]
OTHERS = ["run1", "run2", "run12", "run", "run[[]12]"]


def make_two_commits(folder: Path) -> None:
    """A catalog of two commits, the second with a row in place of another."""
    store = open_store(folder)
    for keys in ("ab", "bc"):
        with store.writing("written") as connection:
            files = [file(key + end) for key in keys for end in ("", "-label")]
            register(connection, source_names(), files, [frame(keys[0])], 1)
    store.close()


def make_two_commits_and_orphan(folder: Path) -> None:
    """The same, and a file that no commit knows."""
    make_two_commits(folder)
    add_orphan(folder)


def make_damaged(folder: Path) -> None:
    """The same, with its newest file damaged."""
    make_two_commits_and_orphan(folder)
    damage(open_store(folder))


def add_orphan(home: Path) -> Path:
    """A file that no commit knows, as a killed writer leaves it."""
    orphan = home / "catalog" / "data" / "main" / "files" / "orphan.parquet"
    orphan.write_bytes(b"PAR1")
    return orphan


@pytest.mark.wide
@pytest.mark.parametrize("odd", ODD)
def test_only_its_own_files_go(templates: Templates, tmp_path: Path, odd: str) -> None:
    """Compaction deletes its orphan; other homes keep all, and so does a folder behind a link."""
    others: dict[Path, bytes] = {}
    for name in OTHERS:
        templates.copy(make_two_commits_and_orphan, tmp_path / name / "home")
        others |= {path: path.read_bytes() for path in (tmp_path / name).rglob("*.parquet")}
    templates.copy(make_two_commits, tmp_path / odd / "home")
    store = open_store(tmp_path / odd / "home")
    before, orphan = held(store), add_orphan(tmp_path / odd / "home")
    local_places(store)[1].joinpath("link").symlink_to(tmp_path / "run1", target_is_directory=True)
    done = compact(store, tuple, keep=AT_ONCE, in_use=AT_ONCE)
    assert (done.orphans, done.deleted > 0, orphan.exists()) == (1, True, False)
    assert {path: path.read_bytes() for path in others} == others
    assert held(store) == before
    store.close()


@pytest.mark.wide
@pytest.mark.parametrize("odd", ODD)
def test_only_its_own_files_are_checked(templates: Templates, tmp_path: Path, odd: str) -> None:
    """Nothing is wrong with a whole one beside damaged ones; its own damage and orphan show."""
    for name in OTHERS:
        templates.copy(make_damaged, tmp_path / name / "home")
    templates.copy(make_two_commits, tmp_path / odd / "home")
    store = open_store(tmp_path / odd / "home")
    assert check(store, {}) == []
    orphan = add_orphan(tmp_path / odd / "home")
    (repaired,) = check(store, {}, repair=True)
    assert (repaired.kind, orphan.exists()) == ("orphan_file", False)
    assert "1 files that belong to no commit: main/files/orphan.parquet" in repaired.what
    damaged = damage(store)
    (finding,) = [one for one in check(store, {}) if one.kind == "damaged_file"]
    assert damaged.name in finding.what
    store.close()


def damage(store: CatalogStore) -> Path:
    """Zeros in place of the pages of the newest file of `files`, whose size stays; the file."""
    path = max((local_places(store)[1] / "main" / "files").glob("ducklake*.parquet"))
    content = bytearray(path.read_bytes())
    content[4:400] = bytes(396)
    path.write_bytes(content)
    store.close()
    return path


def test_a_path_that_is_changed(tmp_path: Path) -> None:
    """A backslash, which DuckLake takes for a slash, is refused before anything is made."""
    with pytest.raises(InvalidInput, match="its path has a backslash"):
        open_store(tmp_path / "a\\b")
    assert list(tmp_path.iterdir()) == []
