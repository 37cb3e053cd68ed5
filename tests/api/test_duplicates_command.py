"""framesift duplicates."""

import json
from pathlib import Path

import pytest

from api.settings import Settings
from api.workspace import Workspace
from catalog.records.sources import add_source
from catalog.records.tables import Source
from ingest.scan.scan import scan_source
from tests.api.servers import framesift
from tests.ingest.scene_folders import SCENE, make_tree
from tests.ingest.test_duplicates import OTHER, deliver_again


@pytest.mark.wide
def test_groups_are_listed(tmp_path: Path) -> None:
    """Frames that are the same together, as a table and as JSON; those alone are not."""
    home, root = tmp_path / "home", make_tree(tmp_path / "tree")
    deliver_again(root, (1, 3))
    workspace = Workspace(Settings(home=home))
    source = add_source(
        workspace.records,
        Source(name="a2d2", uri=str(root), platform="NFS", cluster="host1", datasource="a2d2"),
    )
    scan_source(workspace.whole_catalog, workspace.records, source)
    workspace.close()
    listed = framesift(home, "duplicates", "--json")
    assert listed.returncode == 0, listed.stderr
    groups = json.loads(listed.stdout)
    frames_of_groups = {
        tuple((one["scene"], int(one["frame_number"])) for one in g["frames"]) for g in groups
    }
    assert frames_of_groups == {((SCENE, number), (OTHER, number)) for number in (1, 3)}
    assert {one["duplicate"] for g in groups for one in g["frames"]} == {
        g["duplicate"] for g in groups
    }
    run = framesift(home, "duplicates")
    assert "4 frames are 2 different ones" in run.stdout
    assert run.stdout.count(f"host1:a2d2:{OTHER}/camera") == 2
