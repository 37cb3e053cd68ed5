"""Removing a source: what hangs on it is said first, and asked about."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.settings import Settings
from api.workspace import Workspace
from catalog.records.sources import add_source
from catalog.records.tables import Source
from catalog.tags import families
from catalog.values import make_fkey
from ingest.scan.scan import scan_source
from tests.api.servers import framesift
from tests.ingest.scene_folders import frame_key, make_tree


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home with a source of three frames, an imported tag on one of them, and a dataset."""
    settings = Settings(home=tmp_path / "home")
    workspace = Workspace(settings)
    source = add_source(
        workspace.records,
        Source(
            name="one",
            uri=str(make_tree(tmp_path / "one")),
            platform="NFS",
            cluster="c",
            datasource="one",
        ),
    )
    scan_source(workspace.whole_catalog, workspace.records, source)
    rows = pa.table({"fkey": [make_fkey("c", "one", frame_key("camera", 1))], "rain": [1]})
    families.write(workspace.whole_catalog, "weather", {"rain": "INTEGER"}, rows)
    workspace.close()
    return settings


@pytest.mark.wide
def test_what_hangs_on_it_is_said_first(settings: Settings) -> None:
    """By route and command alike; without --yes and a terminal nothing is removed."""
    run = framesift(settings.home, "dataset", "create", "d", "--allow-leakage")
    assert run.returncode == 0, run.stderr
    expected = {
        "name": "one", "files": 7, "frames": 3, "tags": {"weather": 1}, "datasets": ["d@1"],
    }  # fmt: skip
    with TestClient(create_app(settings, authenticates=False)) as client:
        assert client.get("/v1/sources/one/contents").json() == expected
        assert client.get("/v1/sources/two/contents").status_code == 404
    refused = framesift(settings.home, "source", "remove", "one")
    assert refused.returncode == 1
    for said in ("7 files (3 labelled frames)", "weather of 1 files", "d@1", "add --yes"):
        assert said in refused.stderr
    assert json.loads(framesift(settings.home, "source", "list", "--json").stdout)
    removed = framesift(settings.home, "source", "remove", "one", "--yes", "--json")
    assert json.loads(removed.stdout) == {"name": "one", "files_removed": 7}
