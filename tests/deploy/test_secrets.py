"""Secrets as files: made once, and enough for PostgreSQL and S3."""

import configparser
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.api.servers import framesift
from tests.deploy.deployed import DEPLOY
from tests.ingest.s3_server import moto
from tests.postgres_server import PASSWORD, USER, postgres

_SCRIPT = DEPLOY / "compose" / "secrets.sh"


def made(folder: Path) -> "subprocess.CompletedProcess[str]":
    """The script's end."""
    return subprocess.run([_SCRIPT, folder], capture_output=True, text=True, check=False)


def test_secrets_are_made_once(tmp_path: Path) -> None:
    """All that compose names, in a folder of its owner's; of one password, and of one key."""
    folder = tmp_path / "secrets"
    assert made(folder).returncode == 0
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    assert {path.name for path in folder.iterdir()} == set(compose["secrets"])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}
    service, keys = configparser.ConfigParser(), configparser.ConfigParser()
    service.read(folder / "pg_service.conf")
    keys.read(folder / "s3_keys")
    assert service["framesift"]["password"] == (folder / "postgres_password").read_text()
    (identity,) = json.loads((folder / "s3_identities.json").read_text())["identities"]
    assert identity["credentials"] == [
        {"accessKey": keys["default"]["aws_access_key_id"],
         "secretKey": keys["default"]["aws_secret_access_key"]}
    ]  # fmt: skip
    words = {path.read_text() for path in folder.iterdir()}
    later = [path.name for path in folder.iterdir() if not path.read_text()]
    assert sorted(later) == ["metrics_token", "notebook_token"]
    assert len(words) == len(compose["secrets"]) - len(later) + 1
    again = made(folder)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert {path.read_text() for path in folder.iterdir()} == words
    assert made(tmp_path / "other").returncode == 0
    assert (tmp_path / "other" / "s3_keys").read_text() not in words


@pytest.mark.wide
def test_the_password_is_read_from_a_service_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By psycopg and by DuckDB, of a file that its group may read, as Kubernetes mounts one."""
    server = postgres()
    file = tmp_path / "pg_service.conf"
    file.write_text(f"[framesift]\npassword={PASSWORD}\n")
    file.chmod(0o440)
    url = f"postgresql://{quote(USER)}@127.0.0.1:{server.port}/{server.new_database()}"
    places = {
        "FRAMESIFT_CATALOG_METADATA": url, "FRAMESIFT_RECORDS": url,
        "PGSERVICE": "framesift", "PGSERVICEFILE": str(file),
    }  # fmt: skip
    frames = tmp_path / "frames"
    frames.mkdir()
    added = framesift(tmp_path / "home", "source", "add", "frames", str(frames), variables=places)
    assert added.returncode == 0, added.stderr
    told = framesift(tmp_path / "home", "info", variables=places)
    assert told.returncode == 0, told.stderr
    assert PASSWORD not in told.stdout + told.stderr
    file.write_text("[framesift]\npassword=another\n")
    refused = framesift(tmp_path / "home", "info", variables=places)
    assert refused.returncode == 1
    assert "password" in refused.stderr


@pytest.mark.wide
def test_the_bucket_is_made_once(tmp_path: Path) -> None:
    """By compose's program, with the keys of its file; a second time it makes none."""
    assert made(tmp_path / "secrets").returncode == 0
    server = moto()
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    (program,) = compose["services"]["bucket"]["command"]
    assert "http://s3:8333" in program
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("http://s3:8333", server.endpoint)],
            env=inherited | {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "secrets" / "s3_keys")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    buckets = [bucket["Name"] for bucket in server.client().list_buckets()["Buckets"]]
    assert buckets.count("framesift") == 1
