"""Homes and backups as each release wrote them: this version opens them and goes on."""

import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ingest.sources import sealed_keys
from ingest.sources.sealed_keys import SecretKey, unseal
from tests.api.servers import framesift
from tests.postgres_server import PASSWORD, USER, postgres

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
"""A home of each release, of `tests.upgrades.make_home`."""


def said(home: Path, *command: str, variables: Mapping[str, str] | None = None) -> Any:
    """What a command prints as JSON."""
    run = framesift(home, *command, "--json", variables=variables)
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


def holds_its_people(home: Path) -> None:
    """Assert users, tokens, collections, saved questions and the bucket of `make_home`."""
    users = {user["name"]: user for user in said(home, "user", "list")}
    assert sorted(users) == ["anna", "anna2", "gone", "root"]
    assert (users["anna"]["roles"], users["anna"]["has_password"]) == (["dataadmin"], False)
    assert (users["root"]["roles"], users["root"]["has_password"]) == (["admin"], True)
    assert [name for name, user in users.items() if user["disabled"]] == ["gone"]
    assert users["anna2"]["jobs"] == 3
    tokens = {token["name"]: token for token in said(home, "token", "list")}
    assert sorted(tokens) == ["left", "scrapes", "scrapes-2"]
    assert [name for name, one in tokens.items() if one["state"] == "revoked"] == ["scrapes-2"]
    assert (tokens["scrapes"]["user"], tokens["scrapes"]["scope"]) == ("anna", "read")
    collections = {each["name"]: each["users"] for each in said(home, "collection", "list")}
    assert collections == {"rain": ["anna2"], "rain-private": []}
    questions = {each["name"]: each for each in said(home, "question", "list")}
    assert sorted(questions) == ["wet", "wet-cars"]
    assert (questions["wet"]["shared"], questions["wet"]["seen_frames"]) == (True, 3)
    assert said(home, "question", "show", "wet")["frames"] == 3
    bucket = said(home, "source", "show", "bucket")
    assert bucket["uri"] == "s3://frames/drives"
    assert bucket["options"]["sealed_keys"] is True
    assert bucket["options"]["endpoint_url"].startswith("http://127.0.0.1:")
    assert bucket["options"]["region"] == "eu-de"


@pytest.mark.wide
def test_people_and_places_are_kept(unpacked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users, tokens, collections, saved questions and a bucket's record are read and go on."""
    home = unpacked / "home"
    holds_its_people(home)
    with closing(sqlite3.connect(home / "records" / "records.sqlite")) as connection:
        (options,) = connection.execute(
            "SELECT options FROM sources WHERE name = 'bucket'"
        ).fetchone()
    monkeypatch.setattr(sealed_keys, "_key", SecretKey(home / "secret.key"))
    keys = unseal(json.loads(options)["sealed_keys"])
    assert (keys.access_key, keys.secret_key) == ("testing", "testing")
    assert said(home, "source", "set", "bucket", "--max-mb-per-s", "60")["max_mb_per_s"] == 60
    said(home, "token", "create", "new", "--user", "anna2")
    said(home, "question", "save", "wet-2", "--where", "weather = 'rain'")
    assert framesift(home, "question", "remove", "wet-cars").returncode == 0
    said(home, "collection", "assign", "rain-private", "anna2")
    assert framesift(home, "user", "remove", "anna").returncode == 0
    left = sorted(token["name"] for token in said(home, "token", "list"))
    assert left == ["left", "new", "scrapes-2"]


@pytest.mark.wide
def test_a_teams_dump_is_restored(unpacked: Path) -> None:
    """PostgreSQL reads the dump; this version opens it, checks, asks, and goes on with it."""
    if shutil.which("psql") is None:
        pytest.skip("psql (Debian: postgresql-client) is not installed")
    server = postgres()
    name = server.new_database()
    restored = subprocess.run(
        ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port),
         "-U", USER, "-d", name, "-f", unpacked / "team.sql"],
        env=os.environ | {"PGPASSWORD": PASSWORD}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert restored.returncode == 0, restored.stderr
    home = unpacked / "team-home"
    url = server.url(name)
    variables = {
        "FRAMESIFT_CATALOG_METADATA": url,
        "FRAMESIFT_CATALOG_DATA": str(unpacked / "team-data"),
        "FRAMESIFT_RECORDS": url,
    }
    said(home, "source", "set", "drive", str(unpacked / "source"), variables=variables)
    assert framesift(home, "catalog", "check", variables=variables).returncode == 0
    frames = said(home, "select", "--columns", "fkey,weather,moving", variables=variables)["frames"]
    assert [frame["weather"] for frame in frames].count("rain") == 3
    assert len(frames) == 6
    streets = said(home, "dataset", "show", "streets@1", variables=variables)["frames"]
    assert 0 < streets <= 6
    (user,) = said(home, "user", "list", variables=variables)
    (token,) = said(home, "token", "list", variables=variables)
    assert (user["name"], token["name"], token["user"]) == ("anna", "scrapes", "anna")
    assert said(home, "question", "show", "wet", variables=variables)["frames"] == 3

    assert said(home, "ingest", "drive", variables=variables)["unchanged"] == 21
    made = said(home, "dataset", "create", "streets", "--range", "sky=1:", variables=variables)
    assert made["version"] == 2
    said(home, "tags", "group", "vehicle = car + truck", variables=variables)
    said(home, "user", "add", "otto", "--role", "datauser", "--no-password", variables=variables)
    assert framesift(home, "compact", variables=variables).returncode == 0
    assert framesift(home, "catalog", "check", variables=variables).returncode == 0


@pytest.mark.wide
def test_a_changed_backup_is_refused_before_it_is_opened(unpacked: Path) -> None:
    """By digests: records of a later version in it are damage, and not a version."""
    changed = unpacked / "changed"
    with tarfile.open(unpacked / "backup.tar") as archive:
        archive.extractall(changed, filter="data")
    with closing(sqlite3.connect(changed / "records" / "records.sqlite")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'r9999'")
    again = unpacked / "again"
    again.mkdir()
    run = framesift(again, "catalog", "restore", str(changed))
    assert run.returncode == 1
    (line,) = run.stderr.strip().splitlines()
    assert "records/records.sqlite in it is not as it was written" in line
    assert not list(again.iterdir())


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
