"""Scans killed in the middle lose nothing that was committed, and the next one completes them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from catalog.records.tables import Scan
from tests.ingest.scene_folders import Home, frame_key, make_tree

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
PROGRAM = "tests.ingest.killed_scans"
FRAMES = 12


def state(home: Home) -> list[object]:
    """Everything the catalog holds that does not depend on when it was scanned."""
    times = "atime, inserttime, updatedtime, requesttime, scangen"
    return [
        home.rows(f"SELECT * EXCLUDE ({times}) FROM metaocean ORDER BY fkey"),
        home.rows("SELECT * EXCLUDE (atime) FROM metaocean_view ORDER BY fkey"),
        home.rows("SELECT * FROM lake.main.class_pixels ORDER BY fkey"),
        home.rows("SELECT * FROM lake.main.tags_frame ORDER BY fkey"),
    ]


def killed_scans(tree: Path, home: Path, kills: int, seed: int) -> None:
    """Begin scans in other processes and kill each."""
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, str(tree), str(home), str(kills), str(seed)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    died_of = [line.split()[0] for line in done.stdout.splitlines()]
    assert died_of == ["-9"] * kills, done.stdout + done.stderr


def test_killed_scans_then_one_undisturbed(home: Home, empty_home: Path, tmp_path: Path) -> None:
    """After every kill the catalog is whole; a scan to the end gives what one alone gives."""
    tree = make_tree(tmp_path / "tree", FRAMES)
    source = home.add(tree)
    for seed in (1, 2):
        killed_scans(tree, tmp_path / "home", 10, seed)
        doubles = "SELECT count(*) - count(DISTINCT fkey) FROM"
        assert home.rows(f"{doubles} metaocean") == home.rows(f"{doubles} t_car") == [(0,)]
        assert home.rows("SELECT fkey FROM t_car EXCEPT SELECT fkey FROM metaocean") == []
        (tree / frame_key("label", seed)).unlink()  # what a killed scan saw may be gone later
    home.scan(source)

    shutil.copytree(empty_home, tmp_path / "undisturbed")
    alone = Home.at(tmp_path / "undisturbed")
    alone.scan(alone.add(tree))
    assert state(home) == state(alone)
    with home.records.session() as session:
        states = session.scalars(select(Scan.state).order_by(Scan.id)).all()
    assert states == ["failed"] * (len(states) - 1) + ["done"]
    assert len(states) >= 4
