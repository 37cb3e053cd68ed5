"""Connections and their scans, as Spectrum Discover's clients send them."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from catalog.records.sources import recorded_source
from catalog.storage.location import WRITE_LOCK
from ingest.scan import scan_record
from ingest.scan.scan_lock import scan_lock
from tests.api.servers import framesift
from tests.ingest.s3_server import moto
from tests.ingest.scene_folders import make_tree
from tests.pipeline.homes import SAMPLE, copy_home, open_home
from tests.zygote import run_python

pytestmark = pytest.mark.wide

SCENES = "camera_lidar_semantic"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a connection."""
    folder = tmp_path_factory.mktemp("mounted") / "nfs"
    shutil.copytree(SAMPLE, folder)
    return folder


@pytest.fixture(scope="module")
def manager(shared_home: Path) -> Iterator[TestClient]:
    """Its connection manager."""
    app = create_app(Settings(home=shared_home, cache=None), authenticates=False)
    with TestClient(app, base_url="http://test/connmgr/v1/") as client:
        yield client


def status(manager: TestClient, name: str) -> str:
    """A scan's status, as the tape scripts take it from the answer."""
    run = subprocess.run(
        ["bash", "-c", "grep -o '\"status\": \"[^\"]*' | grep -o '[^\"]*$'"],
        input=manager.get(f"scan/{name}").text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return run.stdout.strip()


def scanned(manager: TestClient, name: str) -> dict[str, Any]:
    """The scan once it has ended."""
    until = time.monotonic() + 300
    while status(manager, name) == "Running":
        assert time.monotonic() < until
        time.sleep(0.2)
    scan: dict[str, Any] = manager.get(f"scan/{name}").json()
    return scan


def test_a_connection_from_the_first_request_to_the_last(
    manager: TestClient, shared_home: Path, root: Path
) -> None:
    """Added, scanned whole and in part, changed, and removed with its rows."""
    before = manager.get("connections")
    assert [one["name"] for one in before.json()] == ["a2d2"]
    body = {
        "name": "nfs1", "platform": "NFS", "cluster": "192.168.1.1", "datasource": "A2D2_NFS",
        "site": "Kelsterbach", "host": "192.168.1.1", "mount_point": str(root), "user": "reader",
        "additional_info": "",
    }  # fmt: skip
    # The documentation's address ends in a slash, and curl follows no redirection.
    added = manager.post("connections/", json=body)
    assert (added.status_code, added.text) == (201, "Connection 'nfs1' added")
    one = manager.get("connections/nfs1")
    assert '"name": "nfs1"' in one.text
    document = one.json()
    assert list(document)[:5] == ["name", "type", "cluster", "datasource", "site"]
    assert (document["type"], document["total_records"], document["online"]) == ("general", 0, True)
    assert (document["mount_point"], document["platform"]) == (str(root), "NFS")
    assert (document["host"], document["user"]) == ("192.168.1.1", "reader")
    assert manager.get("connections").json() == [*before.json(), document]
    never = manager.get("scan/nfs1")
    assert (never.status_code, never.json()["reason"]) == (404, "No scan is in progress for nfs1.")
    workspace = open_home(shared_home)
    with workspace.whole_catalog.lock(WRITE_LOCK, "held"):  # so long the scan does not end
        begun = manager.post("scan/nfs1")
        assert (begun.status_code, begun.text) == (200, "null")
        assert status(manager, "nfs1") == "Running"
        assert [each["connection"] for each in manager.get("scan").json()] == ["nfs1"]
        twice = manager.post("scan/nfs1")
    assert (twice.status_code, twice.json()["reason"]) == (
        400, "Scan already currently in-progress for nfs1.",
    )  # fmt: skip
    whole = scanned(manager, "nfs1")
    files = sum(path.is_file() for path in root.rglob("*"))
    assert (whole["status"], whole["scanned_records"], whole["indexed_records"]) == (
        "Complete", files, files,
    )  # fmt: skip
    assert manager.get("connections/nfs1").json()["total_records"] == files
    # A part: of two scenes that lost a file, and a new file between them, only what is asked for.
    first, second, *_ = sorted(path for path in (root / SCENES).iterdir() if path.is_dir())
    for scene in (first, second):
        next(scene.glob("camera/*/*.json")).unlink()
    (root / SCENES / "note.txt").write_text("x")
    for partitions in (
        [f"{SCENES}/{first.name}/label"],  # all of a frame's files, wherever they lie
        [{"dir": f"{root}/{SCENES}", "recursive": False}],
    ):
        partial = manager.post("scan/nfs1/partial", json={"partitions": partitions})
        assert partial.text == "null"
        assert scanned(manager, "nfs1")["status"] == "Complete"
    # Both scenes lost one, and the first one's is gone; the note is there.
    assert manager.get("connections/nfs1").json()["total_records"] == files - 1 + 1
    assert manager.post("scan/nfs1").text == "null"
    assert scanned(manager, "nfs1")["scanned_records"] == files - 2 + 1
    # Named otherwise, while what its rows are named by stays.
    moved = manager.put("connections/nfs1", json={"cluster": "elsewhere"})
    assert (moved.status_code, moved.json()["status"]) == (400, "error")
    assert "delete it and add it again" in moved.json()["reason"]
    assert manager.put("connections/nfs1", json={"name": "a2d2"}).status_code == 409
    renamed = manager.put("connections/nfs1", json={"name": "nfs2", "site": "Munich"})
    assert renamed.text == "Connection 'nfs1' updated"
    connection = manager.get("connections/nfs2").json()
    assert (connection["site"], connection["host"], connection["user"]) == (
        "Munich",
        "192.168.1.1",
        "reader",
    )
    assert manager.put("connections/nfs2", json={"host": "h2", "user": ""}).status_code == 200
    connection = manager.get("connections/nfs2").json()
    assert (connection["site"], connection["host"], connection["user"]) == ("Munich", "h2", "")
    assert manager.get("connections/nfs1").status_code == 404
    # Stopped before it has begun.
    assert manager.put("scan/nfs2/stop").json()["reason"] == (
        "No scan is currently in progress for nfs2."
    )
    with workspace.whole_catalog.lock(WRITE_LOCK, "held"):
        manager.post("scan/nfs2")
        assert manager.put("scan/nfs2/stop").text == "null"
    workspace.close()
    assert scanned(manager, "nfs2")["status"] == "Stopped"
    assert manager.delete("connections/nfs2").text == "Connection 'nfs2' deleted"
    assert manager.get("connections").json() == before.json()


def test_a_scan_at_a_terminal_is_seen(manager: TestClient, shared_home: Path) -> None:
    """It runs as long as its process holds the source; then what it left behind has failed."""
    workspace = open_home(shared_home)
    source = recorded_source(workspace.records, "a2d2")
    with scan_lock(workspace.whole_catalog, source):
        scan_record.begin(workspace.records, source)
        assert status(manager, "a2d2") == "Running"
        assert "in-progress" in manager.post("scan/a2d2").json()["reason"]
        assert "terminal" in manager.put("scan/a2d2/stop").json()["reason"]
        assert manager.delete("connections/a2d2").status_code == 503
    failed = manager.get("scan/a2d2").json()
    assert (failed["status"], failed["error"]) == ("Failed", "its process ended")
    workspace.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "words"),
    [
        ("GET", "connections/nope", None, 404, "nope"),
        ("PUT", "connections/nope", {}, 404, "nope"),
        ("DELETE", "connections/nope", None, 404, "nope"),
        ("GET", "scan/nope", None, 404, "No scan is in progress for nope."),
        ("POST", "scan/nope", None, 404,
         "Could not locate connection document for nope. Aborting scan."),
        ("POST", "scan/nope/partial", {"partitions": ["a"]}, 404, "Could not locate connection"),
        ("PUT", "scan/nope/stop", None, 404, "Could not locate connection"),
        ("POST", "scan", None, 400, "Must specify a connection name for the scan endpoint."),
        ("PUT", "scan/a2d2", None, 400, "Must specify an action for the scan endpoint."),
        ("PUT", "scan/a2d2/explode", None, 400, "Unsupported action explode."),
        ("POST", "scan/a2d2/partial", {}, 400, "partitions"),
        ("POST", "scan/a2d2/partial", {"partitions": []}, 400, "partitions"),
        ("POST", "scan/a2d2/partial", {"partitions": ["a\0b"]}, 400, "is not found"),
        ("POST", "scan/a2d2/partial", {"partitions": ["../.."]}, 400, "below the source's root"),
        ("POST", "scan/a2d2/partial", {"partitions": ["--full"]}, 400, "is not found"),
        ("POST", "scan/a2d2/partial", {"partitions": ["no/such"]}, 400, "is not found"),
        ("POST", "connections", {"name": "x"}, 400, "platform"),
        ("POST", "connections", {"name": "x", "platform": "IBM Spectrum Protect"}, 400,
         "expected one of"),
        ("POST", "connections", {"name": "x", "platform": "NFS", "cluster": "c",
                                 "datasource": "d"}, 400, "mount_point is missing"),
        ("POST", "connections", {"name": "x", "platform": "NFS", "datasource": "d",
                                 "mount_point": "/tmp"}, 400, "cluster is missing"),
        ("POST", "connections", {"name": "x", "platform": "NFS", "cluster": "c",
                                 "datasource": "d", "mount_point": "tmp"}, 400, "absolute"),
        ("POST", "connections", {"name": "a/b", "platform": "NFS", "cluster": "c",
                                 "datasource": "d", "mount_point": "/tmp"}, 400, "name"),
        ("POST", "connections", {"name": "x", "platform": "S3", "cluster": "c", "datasource": "b",
                                 "host": "http://169.254.169.254"}, 403, "inside this server"),
        ("POST", "connections", {"name": "x", "platform": "S3", "cluster": "c", "datasource": "b",
                                 "additional_info": {"access_key": "hidden-key"}}, 400,
         "give both"),
        ("POST", "connections", {"name": "x", "platform": "NFS", "cluster": "c",
                                 "datasource": "d", "mount_point": "/tmp", "user": "me",
                                 "password": "hidden-key"}, 400, "mounts no file systems"),
        ("POST", "connections", {"name": "a2d2", "platform": "NFS", "cluster": "c",
                                 "datasource": "d", "mount_point": "/tmp"}, 409, "already exists"),
        ("POST", "connections", {"name": "x", "additional_info": "["}, 400, "the text is no JSON"),
        ("POST", "connections", {"name": "x", "additional_info": "[]"}, 400, "additional_info"),
        ("GET", "internal/connections", None, 404, "no keys of connections"),
        ("GET", "http://test/api/application/v1/cipherkey", None, 404, "no keys of connections"),
    ],
)  # fmt: skip
def test_what_is_refused(
    manager: TestClient, method: str, path: str, body: Any, code: int, words: str
) -> None:
    """In the documented form and words; keys are not repeated; nothing is kept."""
    content = "" if body is None else json.dumps(body)
    answer = manager.request(method, path, content=content)
    assert answer.status_code == code, answer.text
    assert list(answer.json()) == ["reason", "status"]
    assert words in answer.json()["reason"]
    assert "hidden-key" not in answer.text
    assert [one["name"] for one in manager.get("connections").json()] == ["a2d2"]


def test_keys_of_an_object_store(
    shared_home: Path, manager: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As published clients send them: used, kept encrypted, never shown, kept until changed."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    bucket = server.new_bucket("keys-of-a-connection")
    class_list = next(SAMPLE.rglob("class_list.json"))
    server.client().put_object(
        Bucket=bucket, Key=str(class_list.relative_to(SAMPLE)), Body=class_list.read_bytes()
    )
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    app = create_app(
        Settings(
            home=shared_home, cache=None, source_hosts=(server.endpoint.removeprefix("http://"),)
        ),
        authenticates=False,
    )
    info = {"access_key": "AKIAHIDDEN", "secret_key": "hidden/secret", "verify_certificates": True}
    body = {"name": "cos", "platform": "S3", "cluster": "cos", "datasource": bucket, "type": "S3",
            "host": server.endpoint, "additional_info": json.dumps(info)}  # fmt: skip
    with TestClient(app, base_url="http://test/connmgr/v1/") as client:
        without = {**body, "additional_info": {"region": "us-east-1"}}
        assert "no credentials" in client.post("connections", json=without).text
        assert client.post("connections", json=body).status_code == 201
        assert client.put("connections/cos", json={"site": "munich"}).status_code == 200
        assert client.post("scan/cos").text == "null"
        assert scanned(client, "cos")["status"] == "Complete"
        answer = client.get("connections/cos")
        assert answer.json()["additional_info"]["keys"] is True
        assert answer.json()["total_records"] == 1
        source = client.get("http://test/v1/sources/cos")
        assert source.json()["options"]["sealed_keys"] is True
        for text in (answer.text, source.text):
            assert "hidden" not in text.lower()
        records = b"".join(path.read_bytes() for path in (shared_home / "records").iterdir())
        assert b"sealed_keys" in records
        assert b"AKIAHIDDEN" not in records
        assert b"hidden/secret" not in records
        assert client.delete("connections/cos").status_code == 200


def test_keys_of_a_scan_that_a_job_array_counts(
    catalogued: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Listed here, counted by a process that has nothing but its unit, collected here."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    bucket = server.new_bucket("keys-of-an-array")
    server.put_folder(bucket, make_tree(tmp_path / "tree", 2))
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    mine = copy_home(catalogued, tmp_path)
    words = ("source", "add", "cos", f"s3://{bucket}", "--endpoint-url", server.endpoint)
    added = framesift(mine, *words, "--access-key", "AKIAHIDDEN", stdin="hidden/secret\n")
    assert added.returncode == 0, added.stderr
    units = tmp_path / "units"
    written = framesift(mine, "ingest", "cos", "--write-units", units)
    assert written.returncode == 0, written.stderr
    done = run_python("-m", "ingest.scan.unit_files", units, "1")
    assert done.stdout == "unit 1: 2 frames counted\n", done.stderr
    collected = framesift(mine, "ingest", "cos", "--collect-units", units, "--json")
    assert json.loads(collected.stdout)["frames"] == 2, collected.stderr


def test_keys_from_the_command_line(
    catalogued: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The secret comes from stdin; neither it nor the access key is shown or kept in clear."""
    server = moto()
    server.sign_in(monkeypatch, tmp_path)
    bucket = server.new_bucket("keys-of-a-command")
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    mine = copy_home(catalogued, tmp_path)
    words = ("source", "add", "mine", f"s3://{bucket}", "--endpoint-url", server.endpoint)
    refused = framesift(mine, *words)
    assert refused.returncode == 1
    assert "no credentials" in refused.stderr
    added = framesift(mine, *words, "--access-key", "AKIAHIDDEN", "--json", stdin="hidden/secret\n")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["options"] == {
        "endpoint_url": server.endpoint, "sealed_keys": True,
    }  # fmt: skip
    records = b"".join(path.read_bytes() for path in (mine / "records").iterdir())
    assert b"hidden/secret" not in records
    assert (mine / "secret.key").stat().st_mode & 0o777 == 0o600
