"""Migrations killed in the middle: the records are of one schema or the next, and whole."""

import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from catalog.records.datasets import recorded_dataset
from catalog.records.scans import recorded_scans
from catalog.records.sources import recorded_sources
from catalog.records.store import NEWEST, RecordStore
from tests.catalog.test_previous_release import FIXTURE

KILLS = 20


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    """After each of 20 SIGKILLs: the old schema or the new one; opening it goes on and ends."""
    shutil.unpack_archive(FIXTURE, tmp_path)
    old = tmp_path / "home_1" / "records" / "records.sqlite"
    takes = min(_seconds_of_migration(old, tmp_path / f"timed{n}.sqlite") for n in range(3))
    states = []
    for number in range(KILLS):
        path = tmp_path / f"{number}.sqlite"
        shutil.copy(old, path)
        # The first one at once: it dies before the end on any machine.
        _kill_while_opening(path, number and random.Random(number).uniform(0, takes))
        with closing(sqlite3.connect(path)) as opened:
            states.append(opened.execute("SELECT version_num FROM alembic_version").fetchall())
            assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        records = RecordStore(path)
        assert records._revision() == NEWEST
        (source,) = recorded_sources(records)
        assert (source.name, recorded_dataset(records, "kept").frames) == ("old", 3)
        assert [scan.kind for scan, _ in recorded_scans(records)] == ["scan"]
        records.engine.dispose()
    assert all(rows in ([("0001",)], [(NEWEST,)]) for rows in states), states
    assert [("0001",)] in states  # some died before the end


def _seconds_of_migration(old: Path, copy: Path) -> float:
    """How long a process takes that forks, migrates and ends."""
    shutil.copy(old, copy)
    began = time.monotonic()
    _kill_while_opening(copy, None)
    return time.monotonic() - began


def _kill_while_opening(path: Path, after_s: float | None) -> None:
    child = os.fork()
    if child == 0:
        RecordStore(path)
        os._exit(0)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
