"""Scans over REST."""

import json
from functools import partial
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.schemas.home_orders import Scan, home_order_of
from api.settings import Settings
from catalog.records.jobs import recorded_jobs
from catalog.records.sources import add_source
from catalog.records.tables import Source
from ingest.scan.scan import scan_source
from tests.api.servers import framesift, serving, several, wait_until
from tests.ingest.scene_folders import SCENE, frame_key, make_tree, put
from tests.pipeline.homes import copy_home, open_home


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two sources and three scans, of which one met problems; not to be changed."""
    folder = tmp_path_factory.mktemp("scanned")
    workspace = open_home(folder / "home")
    for name in ("one", "two"):
        root = make_tree(folder / name)
        source = add_source(
            workspace.records,
            Source(name=name, uri=str(root), platform="NFS", cluster="c", datasource=name),
        )
        scan_source(workspace.whole_catalog, workspace.records, source)
    put(root, frame_key("label", 2), b"no png")
    put(root, frame_key("camera", 9, "json"), b"an orphan")
    scan_source(workspace.whole_catalog, workspace.records, source)
    workspace.close()
    return folder / "home"


@pytest.mark.wide
def test_the_command_lists_scans_of_a_home_and_of_a_server(scanned: Path) -> None:
    """Newest first, those of one source, those in a state; both say the same."""
    home = ["scans", "list"]
    with serving(scanned) as (url, _):
        on_server = [*home, "--server", url]
        for words in ([], ["two"], ["two", "--state", "done"], ["one", "--state", "failed"]):
            runs = several(scanned, [*home, *words, "--json"], [*on_server, *words, "--json"])
            (_, of_home, _), (_, of_server, _) = runs
            assert json.loads(of_home) == json.loads(of_server)
        (_, of_two, _), (_, table, _), missing = several(
            scanned, [*on_server, "two", "--json"], [*home, "two"], [*home, "tw"]
        )
    assert [(scan["scan"], scan["counts"]["bad_files"]) for scan in json.loads(of_two)] == [
        (3, 1), (2, 0),
    ]  # fmt: skip
    assert [line.split()[:4] for line in table.splitlines()[1:]] == [
        ["3", "two", "scan", "done"],
        ["2", "two", "scan", "done"],
    ]
    assert missing[0] == 1


@pytest.fixture
def settings(scanned: Path, tmp_path: Path) -> Settings:
    """Those of a copy of it."""
    return Settings(home=copy_home(scanned, tmp_path))


def test_scans_newest_first_and_in_pages(settings: Settings) -> None:
    """All of them, those of one source, and page after page."""
    with TestClient(create_app(settings, authenticates=False)) as client:
        everything = client.get("/v1/scans").json()
        assert [(scan["scan"], scan["source"]) for scan in everything["scans"]] == [
            (3, "two"), (2, "two"), (1, "one"),
        ]  # fmt: skip
        assert everything["next"] is None
        of_two = client.get("/v1/scans", params={"source": "two", "limit": 1}).json()
        assert [scan["scan"] for scan in of_two["scans"]] == [3]
        rest = client.get("/v1/scans", params={"source": "two", "cursor": of_two["next"]}).json()
        assert [scan["scan"] for scan in rest["scans"]] == [2]
        assert client.get("/v1/scans", params={"source": "three"}).status_code == 404


def test_a_scan_and_its_problems(settings: Settings) -> None:
    """State, counts with rates, duration; its problems in pages; 404 for one that never was."""
    with TestClient(create_app(settings, authenticates=False)) as client:
        scan = client.get("/v1/scans/3").json()
        assert (scan["kind"], scan["state"], scan["error"]) == ("scan", "done", "")
        counts = scan["counts"]
        assert (counts["files"], counts["added"], counts["changed"]) == (8, 1, 1)
        assert (counts["bad_files"], counts["orphans"], counts["eta_s"]) == (1, 1, 0.0)
        assert 0 < counts["seconds"] <= scan["seconds"] + 1
        assert scan["finished"] >= scan["started"]
        problems = client.get("/v1/scans/3/problems").json()["problems"]
        assert {(p["kind"], p["key"]) for p in problems} == {
            ("bad_file", frame_key("label", 2)),
            ("orphan", frame_key("camera", 9, "json")),
        }
        page = client.get("/v1/scans/3/problems", params={"limit": 1}).json()
        assert page["problems"] == problems[:1]
        rest = client.get(
            "/v1/scans/3/problems", params={"limit": 1, "cursor": page["next"]}
        ).json()
        assert (rest["problems"], rest["next"]) == (problems[1:], None)
        for missing in ("4", "0", "9" * 30):
            assert client.get(f"/v1/scans/{missing}").status_code in (404, 422)
        assert client.get("/v1/scans/4/problems").status_code == 404


def _has_ended(client: TestClient, job: str) -> bool:
    return client.get(job).json()["state"] in ("done", "failed", "cancelled")


@pytest.mark.wide
def test_scans_without_a_look_at_the_images(settings: Settings, scanned: Path) -> None:
    """`check_images` over REST and in Discover's scans, whole and in part: the job's order."""
    asked = [
        ("/v1/scans", {"source": "one", "check_images": False}),
        ("/connmgr/v1/scan/one?check_images=false", None),
        ("/connmgr/v1/scan/one", None),
        ("/connmgr/v1/scan/one/partial?check_images=false", {"partitions": [SCENE]}),
    ]
    orders = []
    with TestClient(create_app(settings, authenticates=False)) as client:
        for path, body in asked:
            answer = client.post(path, json=body)
            assert answer.is_success, answer.text
            (newest, *_) = recorded_jobs(open_home(settings.home).records)
            orders.append(home_order_of(newest.request["order"]))
            place = f"/v1/jobs/{newest.name}"
            client.post(f"{place}/cancel")
            wait_until(partial(_has_ended, client, place))
        refused = client.post("/connmgr/v1/scan/one?check_images=perhaps")
    assert orders == [
        Scan(source="one", check_images=False),
        Scan(source="one", check_images=False),
        Scan(source="one"),
        Scan(source="one", check_images=False, folders=(f"{SCENE}/",)),
    ]
    assert refused.status_code == 422


@pytest.mark.wide
def test_json_progress_goes_to_the_error_output(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One document on the output; on the error output lines that are JSON, if any."""
    ended = framesift(settings.home, "ingest", "one", "--full", "--json")
    report = json.loads(ended.stdout)
    # The second commit marks the frames again that source two has as well.
    assert (report["frames"], report["commits"], report["expected_files"]) == (3, 2, 7)
    assert report["frames_per_s"] > 0
    for line in ended.stderr.splitlines():
        assert "files_per_s" in json.loads(line)
