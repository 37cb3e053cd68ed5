"""Homes and backups as each release wrote them: this version opens them and goes on."""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.api.servers import framesift

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
"""A home of each release, of `tests.upgrades.make_home`."""


def said(home: Path, *command: str) -> Any:
    """What a command prints as JSON."""
    run = framesift(home, *command, "--json")
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return json.loads(run.stdout)


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.xz"))
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folder with source, home and backup.tar of a release; the source is found where it is now."""
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    said(tmp_path / "home", "source", "set", "drive", str(tmp_path / "source"))
    return tmp_path


def test_there_is_a_home_of_the_release() -> None:
    """The first release's, so that no test below is left without one."""
    assert "0.2.0.tar.xz" in [archive.name for archive in ARCHIVES]


def holds_what_was_written(home: Path) -> None:
    """Assert catalog, tags, datasets and groups of `make_home`."""
    assert framesift(home, "catalog", "check").returncode == 0
    frames = said(home, "select", "--columns", "fkey,weather,moving")["frames"]
    assert len(frames) == 6
    assert [frame["weather"] for frame in frames].count("rain") == 3
    assert any(frame["moving"] for frame in frames)
    kept = said(home, "dataset", "show", "streets@1")
    assert kept["splits"] == {"train": 5, "validation": 1}
    assert said(home, "dataset", "show", "rainy@2")["frames"] > 3


@pytest.mark.wide
def test_a_home_goes_on(unpacked: Path) -> None:
    """All that a release wrote is read; scans, datasets, stagings and jobs follow it."""
    home = unpacked / "home"
    holds_what_was_written(home)
    jobs = {job["name"]: job for job in said(home, "jobs", "list")}
    assert {job["state"] for job in jobs.values()} == {"done"}
    assert sorted(jobs) == ["first", "scored", "with-metrics", "without-metrics"]
    assert said(home, "jobs", "show", "with-metrics")["metrics"]["loss"] == pytest.approx(1 / 3)
    assert [model["name"] for model in said(home, "models", "list")] == ["first"]

    assert said(home, "ingest", "drive")["unchanged"] == 21
    staged = said(home, "stage", "streets", "--prepare", "96x64")
    assert (staged["files_copied"], staged["prepared"]["made"]) == (0, 0)
    assert said(home, "stage", "rainy")["damaged"] == []
    assert said(home, "dataset", "create", "streets", "--range", "sky=1:")["version"] == 2
    said(home, "tags", "import-scores", "scored")
    said(home, "run", "streets", "--name", "after", "--command", "true")
    assert framesift(home, "compact").returncode == 0
    holds_what_was_written(home)


@pytest.mark.wide
def test_a_backup_is_restored(unpacked: Path) -> None:
    """The restored home holds what the backup's home held."""
    again = unpacked / "again"
    again.mkdir()
    run = framesift(again, "catalog", "restore", str(unpacked / "backup.tar"))
    assert run.returncode == 0, run.stderr
    holds_what_was_written(again)


@pytest.mark.wide
def test_records_of_a_later_version_are_refused(unpacked: Path) -> None:
    """In a sentence, and nothing is changed. Of a catalog: tests/catalog/test_store_contract."""
    records = unpacked / "home" / "records" / "records.sqlite"
    with closing(sqlite3.connect(records)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'r9999'")
    for command in (["jobs", "list"], ["ingest", "drive"]):
        run = framesift(unpacked / "home", *command)
        assert run.returncode == 1, run
        (line,) = run.stderr.strip().splitlines()
        assert "written by a later version" in line
    with closing(sqlite3.connect(records)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (
            "r9999",
        )
