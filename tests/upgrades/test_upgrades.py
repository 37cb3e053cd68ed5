"""Homes and backups as each release wrote them: this version opens them and goes on."""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from catalog.policies.regexes import change, listed
from catalog.records.revision import NEWEST
from catalog.records.store import RecordStore
from ingest.sources import sealed_keys
from ingest.sources.sealed_keys import SecretKey, unseal
from tests.api.servers import framesift
from tests.postgres_server import PASSWORD, USER, postgres
from tests.upgrades.make_home import PROGRAM

ARCHIVES = sorted(Path(__file__).parent.glob("*.tar.xz"))
"""A home of each release, of `tests.upgrades.make_home`."""


def said(home: Path, *command: str, variables: Mapping[str, str] | None = None) -> Any:
    """What a command prints as JSON."""
    run = framesift(home, *command, "--json", variables=variables)
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return json.loads(run.stdout)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive of this project's own into a folder."""
    with tarfile.open(archive) as files:
        # Python has the filter from 3.11.4 on; Debian 12's is 3.11.2.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(folder)


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name.removesuffix(".tar.xz"))
def unpacked(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Folder with source, home and backup.tar of a release, and with a program for jobs.

    The source is found where it is now.
    """
    unpack(request.param, tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
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


def answers_sql(home: Path, variables: Mapping[str, str] | None = None) -> None:
    """Assert what SQL counts by weather among the frames' images of `make_home`."""
    statement = (
        "select weather, count(*) as images, count(distinct fkey) as keys from metaocean_view "
        "where label_file is not null group by weather order by weather"
    )
    assert said(home, "sql", statement, variables=variables) == [
        {"weather": "rain", "images": 3, "keys": 3},
        {"weather": None, "images": 3, "keys": 3},
    ]


def stages_and_runs(home: Path, unpacked: Path, variables: Mapping[str, str] | None = None) -> None:
    """Assert that a dataset is fetched and prepared, and a program is given it and says metrics."""
    staged = said(home, "stage", "streets", "--prepare", "96x64", variables=variables)
    assert staged["damaged"] == []
    assert staged["files_copied"] == staged["files"] > 0
    assert staged["prepared"]["made"] == staged["files"] // 2
    program = f"{sys.executable} {unpacked / 'program.py'} {{job}}"
    job = said(home, "run", "streets", "--name", "again", "--command", program, variables=variables)
    assert job["state"] == "done"
    assert job["metrics"]["loss"] == pytest.approx(1 / 3)
    assert (Path(job["paths"]["output"]) / "said.txt").read_text() == "three steps"


def takes_a_new_frame(
    home: Path, unpacked: Path, variables: Mapping[str, str] | None = None
) -> None:
    """Assert that a scan adds an image and its label, which are a frame more, and nothing else."""
    image = min((unpacked / "source").rglob("*_camera_*.png"))
    label = Path(str(image).replace("/camera/", "/label/").replace("_camera_", "_label_"))
    for path in (image, label):
        shutil.copyfile(path, path.with_name(f"{path.stem.rpartition('_')[0]}_000000999.png"))
    scan = said(home, "ingest", "drive", variables=variables)
    assert (scan["added"], scan["unchanged"], scan["removed"]) == (2, 21, 0)
    frames = said(home, "select", "--columns", "fkey,weather", variables=variables)["frames"]
    assert len(frames) == 7
    assert [frame["weather"] for frame in frames].count("rain") == 3


def holds_its_jobs(home: Path) -> None:
    """Assert jobs, metrics and the model of `make_home`."""
    jobs = {job["name"]: job for job in said(home, "jobs", "list")}
    assert {job["state"] for job in jobs.values()} == {"done"}
    assert sorted(jobs) == ["first", "scored", "with-metrics", "without-metrics"]
    assert said(home, "jobs", "show", "with-metrics")["metrics"]["loss"] == pytest.approx(1 / 3)
    assert [model["name"] for model in said(home, "models", "list")] == ["first"]


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


BEGINS: Mapping[str, Any] = {
    "policies": {"mark-wet": ("active", "complete"), "mark-wet-not": ("inactive", None)},
    "regexes": {"drive": "[0-9]{8}_[0-9]{6}", "drive-day": "[0-9]{8}"},
    "triggers": {"nightly": (False, None), "nightly-cars": (True, "car>0")},
    "webhooks": {"ci": ["done", "failed", "cancelled"], "ci-failed": ["failed"]},
}
"""What begins by itself in a home of `make_home`, as `begins_by_itself` lists it."""


def begins_by_itself(home: Path) -> dict[str, dict[str, Any]]:
    """Of a home each policy's state and last run, the regular expressions, triggers, webhooks."""
    policies, triggers = said(home, "policy", "list"), said(home, "trigger", "list")
    regexes = listed(RecordStore(home / "records" / "records.sqlite"))
    return {
        "policies": {
            each["name"]: (each["state"], (each["last_run"] or {"state": None})["state"])
            for each in policies
        },
        "regexes": {each.name: each.pattern for each in regexes},
        "triggers": {each["name"]: (each["enabled"], each["when"]) for each in triggers},
        "webhooks": {each["name"]: each["states"] for each in said(home, "webhook", "list")},
    }


@pytest.mark.wide
def test_what_begins_by_itself_is_kept(unpacked: Path) -> None:
    """Policies, regular expressions, triggers and webhooks are read, changed, and go on."""
    home = unpacked / "home"
    assert begins_by_itself(home) == BEGINS
    ended = said(home, "policy", "run", "mark-wet")
    assert (ended["state"], ended["completed"]) == ("complete", 3)
    records = RecordStore(home / "records" / "records.sqlite")
    change(records, "drive-day", "20[0-9]{6}", None)
    assert framesift(home, "trigger", "enable", "nightly").returncode == 0
    assert framesift(home, "webhook", "remove", "ci").returncode == 0
    assert begins_by_itself(home) == {
        **BEGINS,
        "regexes": {**BEGINS["regexes"], "drive-day": "20[0-9]{6}"},
        "triggers": {**BEGINS["triggers"], "nightly": (True, None)},
        "webhooks": {"ci-failed": ["failed"]},
    }


def made_older(records: Path) -> None:
    """Give records of today schema r0004: users had no provider, and saw no shared questions."""
    with closing(sqlite3.connect(records)) as connection, connection:
        connection.execute("DROP TABLE question_looks")
        connection.execute("DROP INDEX users_by_subject")
        for column in ("issuer", "subject"):
            connection.execute(f"ALTER TABLE users DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = 'r0004'")


def schema_of(records: Path) -> str:
    """The schema of records in SQLite."""
    with closing(sqlite3.connect(records)) as connection:
        (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(version)


def with_format(metadata: Path, version: int) -> None:
    """Give a catalog another format; its process ends, as two SQLites in one do not get on."""
    program = """if True:
        import sys
        from pathlib import Path
        from catalog.storage.location import CatalogLocation
        from catalog.store import CatalogStore
        store = CatalogStore(CatalogLocation.in_folder(Path(sys.argv[1])))
        with store.writing("another format") as connection:
            connection.execute("UPDATE catalog_format SET version = ?", [int(sys.argv[2])])
        store.close()
    """
    arguments = [sys.executable, "-c", program, str(metadata.parent), str(version)]
    subprocess.run(arguments, check=True, cwd=Path(__file__).parents[2])


@pytest.mark.wide
def test_records_are_migrated_before_the_catalog_is_looked_at(unpacked: Path) -> None:
    """Records of an older schema, by commands that read none, even where the catalog is refused."""
    home = unpacked / "home"
    records = home / "records" / "records.sqlite"
    made_older(records)
    assert framesift(home, "compact").returncode == 0
    assert schema_of(records) == NEWEST
    holds_its_people(home)
    made_older(records)
    with_format(home / "catalog" / "catalog.sqlite", 9)
    run = framesift(home, "compact")
    assert run.returncode == 1
    assert "catalog format 9, this version reads 2; use the version" in run.stderr
    assert schema_of(records) == NEWEST


@pytest.mark.wide
def test_a_backup_of_older_records_is_restored(unpacked: Path) -> None:
    """With its records migrated; of a backup that nothing can read, they are told of first."""
    older, again = unpacked / "older", unpacked / "again"
    name = "records/records.sqlite"
    unpack(unpacked / "backup.tar", older)
    made_older(older / name)
    digests_anew(older, name)
    again.mkdir()
    run = framesift(again, "catalog", "restore", str(older))
    assert run.returncode == 0, run.stderr
    assert schema_of(again / name) == NEWEST
    holds_its_people(again)

    with closing(sqlite3.connect(older / name)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = 'r9999'")
    (older / "catalog" / "catalog.sqlite").write_text("none")
    digests_anew(older, name, "catalog/catalog.sqlite")
    refusing = unpacked / "refusing"
    refusing.mkdir()
    run = framesift(refusing, "catalog", "restore", str(older))
    assert run.returncode == 1
    assert f"(schema r9999, this version reads up to {NEWEST})" in run.stderr
    assert not list(refusing.iterdir())


def digests_anew(backup: Path, *names: str) -> None:
    """Have a backup's header say what its files are now."""
    header = json.loads((backup / "backup.json").read_text())
    for name in names:
        content = (backup / name).read_bytes()
        header["files"][name] = [len(content), hashlib.sha256(content).hexdigest()]
    (backup / "backup.json").write_text(json.dumps(header))


@pytest.mark.training
def test_a_model_is_validated(unpacked: Path) -> None:
    """On its dataset, to its end: the same scores as the release's own validation gave."""
    home = unpacked / "home"
    before = said(home, "jobs", "show", "scored")["metrics"]
    after = said(
        home, "validate", "first", "streets", "--workers", "1", "--split", "validation",
        "--name", "again", "--trust-model",
    )  # fmt: skip
    assert after["state"] == "done"
    assert after["metrics"]["frames"] == before["frames"] == 1
    for score in ("miou", "pixel_accuracy"):
        assert after["metrics"][score] == pytest.approx(before[score], rel=1e-3)


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

    answers_sql(home, variables)

    stages_and_runs(home, unpacked, variables)
    takes_a_new_frame(home, unpacked, variables)
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
    unpack(unpacked / "backup.tar", changed)
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
    holds_its_jobs(home)
    answers_sql(home)

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
    """The restored home holds what the backup's home held, and goes on."""
    again = unpacked / "again"
    again.mkdir()
    run = framesift(again, "catalog", "restore", str(unpacked / "backup.tar"))
    assert run.returncode == 0, run.stderr
    said(again, "source", "set", "drive", str(unpacked / "source"))
    takes_a_new_frame(again, unpacked)  # first: a backup's catalog has no journal for writers
    stages_and_runs(again, unpacked)


@pytest.mark.wide
def test_a_restored_backup_holds_what_was_written(unpacked: Path) -> None:
    """Catalog, tags, datasets, jobs, the model, people, and what begins by itself."""
    again = unpacked / "again"
    again.mkdir()
    run = framesift(again, "catalog", "restore", str(unpacked / "backup.tar"))
    assert run.returncode == 0, run.stderr
    holds_what_was_written(again)
    holds_its_jobs(again)
    answers_sql(again)
    assert begins_by_itself(again) == BEGINS


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
        assert f"(schema r9999, this version reads up to {NEWEST})" in line
    with closing(sqlite3.connect(records)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == (
            "r9999",
        )
