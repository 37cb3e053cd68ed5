"""A watcher killed in the middle and started again misses nothing."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.records.tables import Scan
from tests.ingest.scene_folders import Home, make_tree
from tests.ingest.test_killed_scan import REPOSITORY
from tests.ingest.watch.killed_watchers import change
from tests.ingest.watch.watching import undisturbed, wait_until_equal, watching_here

pytestmark = pytest.mark.wide

PROGRAM = "tests.ingest.watch.killed_watchers"
KILLS = 6


def test_killed_watchers_miss_nothing(home: Home, empty_home: Path, tmp_path: Path) -> None:
    """Files come, change and go while watchers are killed: the last one ends as a scan does."""
    tree = make_tree(tmp_path / "tree")
    home.add(tree)
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(tree), str(tmp_path / "home"), str(KILLS), "1"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=900,
    )  # fmt: skip
    *died_of, changes = done.stdout.split()
    assert died_of == ["-9"] * KILLS, done.stdout + done.stderr
    assert int(changes) > 20
    doubles = "SELECT count(*) - count(DISTINCT fkey) FROM"
    assert home.rows(f"{doubles} metaocean") == home.rows(f"{doubles} t_car") == [(0,)]
    with watching_here(tmp_path / "home") as watched:
        change(tree, random.Random(2), 2.0)
        wait_until_equal(watched, home, lambda: undisturbed(empty_home, tmp_path / "one", tree))
        assert watched.warnings == []
    with home.records.session() as session:
        scans = session.execute(select(Scan.kind, Scan.state).order_by(Scan.id)).all()
    assert {kind for kind, _ in scans} == {"watch"}
    assert [state for _, state in scans][-1:] == ["done"]
    assert "running" not in [state for _, state in scans]
