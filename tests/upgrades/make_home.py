"""A home with one of each thing, as this version writes it: what later versions must read.

    python -m tests.upgrades.make_home tests/upgrades/0.2.0.tar.xz

Of a release its archive is made once, and stays as it is. Jobs keep the machine's name and the path
of Python. Make it where neither says anything; as root, in a namespace of its own:

    mkdir -p /tmp/framesift
    unshare --uts --mount sh -c 'hostname localhost && mount --bind . /tmp/framesift &&
        cd /tmp/framesift && .venv/bin/python -m tests.upgrades.make_home FILE'

A team's catalog is in a PostgreSQL of its own; its dump is `team.sql`.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from framesift_start import start
from tests.ingest.s3_server import moto
from tests.postgres_server import PASSWORD, USER, own_postgres

# Of source files: whole seconds, which every tar keeps.
WRITTEN_S = 1_790_000_000

# Jobs keep some of it in their records: nothing of the machine that makes the home.
ENVIRONMENT = {
    "FRAMESIFT_HOME": "home",
    "PATH": "/usr/bin:/bin",
    "PYTHONPATH": str(Path(__file__).parents[2]),
}

PROGRAM = """\
import json, pathlib, sys
job = pathlib.Path(sys.argv[1])
with (job / "metrics.jsonl").open("a") as lines:
    for step in range(1, 4):
        print(json.dumps({"step": step, "name": "loss", "value": 1 / step}), file=lines)
(job / "said.txt").write_text("three steps")
"""

POLICIES = """\
from api.cli.target import home_session
session = home_session()
wet = {"condition": "weather = 'rain'", "schedule": {"hour": 5, "minute": 15}}
session.policies.add("mark-wet", "AUTOTAG", {"tags": {"mood": "wet"}}, **wet)
dry = {"condition": "weather IS NULL", "state": "inactive"}
session.policies.add("mark-wet-not", "AUTOTAG", {"tags": {"mood": "dry"}}, **dry)
session.regexes.add("drive", "[0-9]{8}_[0-9]{6}", "A drive's name")
session.regexes.add("drive-day", "[0-9]{8}", "A drive's day")
"""

TRAINING = ("--height", "64", "--width", "96", "--max-steps", "2", "--batch-size", "1",
            "--model", "tests.training.own_networks:two_layers")  # fmt: skip


def made(folder: Path) -> None:
    """Make folder/source, folder/home, folder/backup.tar, and what `made_by_a_team` makes."""
    framesift = commands(folder, {})

    def table(name: str, rows: list[tuple[str, str]]) -> str:
        path = folder / name
        path.write_text("".join(f"{key},{value}\n" for key, value in rows))
        return str(path)

    framesift("sample-data", "--frames", "6", "--reduce", "8", "--seed", "7", "--out", "source")
    for path in (folder / "source").rglob("*"):
        os.utime(path, (WRITTEN_S, WRITTEN_S))
    with_a_bucket(framesift)
    framesift("source", "add", "drive", "source", "--platform", "IBM COS")
    framesift("ingest", "drive")
    images = sorted(path.name for path in (folder / "source").rglob("*_camera_*.png"))
    weather = [("filename", "weather"), *((name, "rain") for name in images[:3])]
    framesift("tags", "import", table("weather.csv", weather), "--family", "weather")
    framesift("tags", "group", "moving = car + bicycle")
    split = ("--split", "train=0.75,validation=0.25", "--split-by", "scene", "--seed", "1")
    framesift("dataset", "create", "streets", "--range", "rd_normal_street=1:", *split)
    framesift("dataset", "create", "rainy", "--where", "weather = 'rain'")
    framesift("dataset", "create", "rainy", "--range", "car=1:")  # version 2
    framesift("collection", "add", "rain", "datasource = 'drive'")
    framesift("collection", "add", "rain-private", "datasource = 'bucket'")
    framesift("user", "add", "root", "--role", "admin", "--password-stdin", stdin=PASSWORD)
    framesift("user", "add", "anna", "--role", "dataadmin", "--no-password")
    framesift("user", "add", "anna2", "--role", "datauser", "--no-password")
    framesift("user", "quota", "anna2", "--jobs", "3")
    framesift("user", "add", "gone", "--role", "admin", "--no-password")
    framesift("user", "disable", "gone")
    framesift("collection", "assign", "rain", "anna2")
    framesift("token", "create", "scrapes", "--user", "anna", "--scope", "read")
    framesift("token", "create", "scrapes-2", "--user", "anna2", "--scope", "write")
    framesift("token", "create", "left", "--user", "gone", "--scope", "admin")
    framesift("token", "revoke", "2")
    framesift("question", "save", "wet", "--where", "weather = 'rain'", "--shared")
    framesift("question", "save", "wet-cars", "--where", "weather = 'rain'", "--range", "car=1:")
    made_by_a_team(folder)
    framesift("stage", "streets", "--prepare", "96x64")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    framesift(
        "run",
        "streets",
        "--name",
        "with-metrics",
        "--command",
        f"{sys.executable} {program} {{job}}",
    )
    framesift("run", "rainy", "--name", "without-metrics", "--command", "true")
    framesift("train", "streets", "--workers", "1", "--name", "first", *TRAINING)
    scored = ("--workers", "1", "--split", "validation", "--name", "scored", "--trust-model")
    framesift("validate", "first", "streets", *scored)
    framesift("tags", "import-scores", "scored")
    begins_by_itself(folder)
    framesift("catalog", "backup", "backup.tar")


def begins_by_itself(folder: Path) -> None:
    """Add policies, one of which has run, regular expressions, triggers and webhooks to the home.

    No command adds policies and regular expressions: the home's services do.
    """
    framesift = commands(folder, {"FRAMESIFT_WEBHOOK_HOSTS": "hooks.invalid"})
    framesift("tags", "add", "mood")
    subprocess.run([sys.executable, "-c", POLICIES], env=ENVIRONMENT, cwd=folder, check=True)
    framesift("policy", "run", "mark-wet")
    job = ("--then", "run", "streets", "--command", "true")
    framesift("trigger", "add", "nightly", "--schedule", "hour=3 minute=0", *job)
    framesift("trigger", "add", "nightly-cars", "--when", "car>0", "--min-frames", "1000", *job)
    framesift("trigger", "disable", "nightly")
    framesift("webhook", "add", "ci", "https://hooks.invalid/jobs")
    framesift("webhook", "add", "ci-failed", "https://hooks.invalid/failed", "--state", "failed")


def with_a_bucket(framesift: Callable[..., None]) -> None:
    """Add a bucket with keys, which the home's own secret seals; nothing of it is scanned."""
    server = moto()
    server.client().put_object(Bucket=server.new_bucket("frames"), Key="drives/a.txt", Body=b"a")
    framesift(
        "source", "add", "bucket", "s3://frames/drives", "--platform", "IBM COS",
        "--endpoint-url", server.endpoint, "--access-key", server.access_key,
        "--cluster", "cos", "--region", "eu-de", "--max-mb-per-s", "50", stdin=server.secret_key,
    )  # fmt: skip


def made_by_a_team(folder: Path) -> None:
    """Make folder/team-home, folder/team-data and -files, and a dump of catalog and records."""
    (folder / "team-home").mkdir()
    with own_postgres() as server:
        name = server.new_database()
        url = server.url(name)
        framesift = commands(
            folder,
            {
                "FRAMESIFT_HOME": "team-home",
                "FRAMESIFT_CATALOG_METADATA": url,
                "FRAMESIFT_CATALOG_DATA": "team-data",
                "FRAMESIFT_RECORDS": url,
            },
        )
        framesift("source", "add", "drive", "source", "--platform", "IBM COS")
        framesift("ingest", "drive")
        framesift("tags", "import", "weather.csv", "--family", "weather")
        framesift("tags", "group", "moving = car + bicycle")
        framesift("dataset", "create", "streets", "--range", "rd_normal_street=1:")
        framesift("user", "add", "anna", "--role", "dataadmin", "--no-password")
        framesift("token", "create", "scrapes", "--user", "anna", "--scope", "read")
        framesift("question", "save", "wet", "--where", "weather = 'rain'", "--shared")
        subprocess.run(
            ["pg_dump", "--no-owner", "--no-privileges", "-h", "127.0.0.1", "-p",
             str(server.port), "-U", USER, "-f", folder / "team.sql", name],
            env=ENVIRONMENT | {"PGPASSWORD": PASSWORD}, check=True,
        )  # fmt: skip


def commands(folder: Path, variables: dict[str, str]) -> Callable[..., Any]:
    """Runs commands of Framesift there."""

    def framesift(*command: str, stdin: str = "") -> None:
        subprocess.run(
            [sys.executable, *start("api.cli.main"), *command],
            env=ENVIRONMENT | variables,
            cwd=folder,
            check=True,
            input=f"{stdin}\n".encode(),
        )

    return framesift


def main(archive: str) -> None:
    """Make an archive of what `made` makes."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made(folder)
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for name in (
                "source",
                "home",
                "backup.tar",
                "team-home",
                "team-data",
                "team-data-files",
                "team.sql",
            ):
                tar.add(folder / name, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
