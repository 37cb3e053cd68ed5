"""A server and a watcher compact the catalog once commits left many files."""

import threading
from pathlib import Path

import httpx
import pytest

from api.server.compacting import compact_if_due
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import StorageError
from catalog.lake.snapshots import log
from catalog.maintenance.automatic import uncompacted
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families
from tests.api.servers import _started, environment, serving, wait_until
from tests.pipeline.homes import copy_home

pytestmark = pytest.mark.wide


def many_commits(home: Path, count: int) -> None:
    """Commits that each give a tag to some frames."""
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    with store.reading() as snapshot:
        fkeys = [row[0] for row in snapshot.execute("SELECT fkey FROM metaocean").fetchall()]
    families.write(store, "own", {"turn": "VARCHAR"})
    for number in range(count):
        with store.writing("a tag") as connection:
            connection.execute(
                "INSERT INTO tags_own BY NAME SELECT ? AS fkey, 'left' AS turn", [fkeys[number]]
            )
    store.close()


def test_it_is_compacted_when_due(catalogued: Path, tmp_path: Path) -> None:
    """By a process of its own, with every snapshot kept; not again, and not below the limit."""
    home = copy_home(catalogued, tmp_path)
    many_commits(home, 6)
    workspace = Workspace(Settings(home=home, compact_files=7))
    ends = threading.Event()
    assert not compact_if_due(workspace, ends)  # nothing has asked the catalog yet
    before = log(workspace.whole_catalog)
    assert not compact_if_due(workspace, ends)
    workspace = Workspace(Settings(home=home, compact_files=6))
    assert uncompacted(workspace.whole_catalog).files == 6
    assert compact_if_due(workspace, ends)
    assert uncompacted(workspace.whole_catalog).files == 0
    assert log(workspace.whole_catalog)[-len(before) :] == before
    assert not compact_if_due(workspace, ends)


def test_a_compaction_that_fails_says_why(
    catalogued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is the command's own."""
    monkeypatch.setenv("FRAMESIFT_LOCK_WAIT_S", "0.1")
    home = copy_home(catalogued, tmp_path)
    many_commits(home, 3)
    workspace = Workspace(Settings(home=home, compact_files=3))
    store = workspace.whole_catalog
    with (
        store.lock("catalog", "the catalog is being written", 1.0),
        pytest.raises(StorageError, match="is being written by"),
    ):
        compact_if_due(workspace, threading.Event())


def test_a_server_and_a_watcher(catalogued: Path, tmp_path: Path) -> None:
    """Both by themselves; the server's figures and `info` show it."""
    home = copy_home(catalogued, tmp_path)
    many_commits(home, 5)
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    with serving(home, variables={"FRAMESIFT_COMPACT_FILES": "5"}) as (url, _):
        assert httpx.get(f"{url}/v1/info").json()["uncompacted_files"] == 5
        done = 'framesift_compactions_total{end="done"} 1.0'
        wait_until(lambda: done in httpx.get(f"{url}/metrics").text, 90)
        info = httpx.get(f"{url}/v1/info").json()
        assert (info["uncompacted_files"], info["compacted"] is None) == (0, False)
    for number in range(3):
        with store.writing("more") as connection:
            connection.execute(
                "INSERT INTO tags_own BY NAME SELECT fkey, 'right' AS turn FROM files "
                f"ORDER BY fkey DESC LIMIT 1 OFFSET {number}"
            )
    variables = {"FRAMESIFT_COMPACT_FILES": "3"}
    watcher = _started(["watch", "a2d2"], environment(home, variables))
    try:
        wait_until(lambda: uncompacted(store).files == 0)
    finally:
        watcher.terminate()
        watcher.communicate(timeout=300)
    assert watcher.returncode == 0
