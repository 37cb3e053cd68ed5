"""What a source leaves out and which data set it is a part of: changed after it was added."""

import json
from pathlib import Path
from typing import Any

import pytest

import framesift
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.sources import add_source, recorded_source
from catalog.records.tables import Source
from ingest.scan.scan import scan_source
from ingest.scan.scan_counts import ScanCounts
from ingest.sources.recorded import other_sources_of_data_set
from tests.api.servers import framesift as command
from tests.api.servers import serving
from tests.ingest.scene_folders import SCENE, make_tree, put
from tests.pipeline.homes import open_home

MANY = 25
"""Files that may not be removed at once, unless that is meant."""


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    """A home with a scanned source of three frames and a folder of other files."""
    root = make_tree(tmp_path / "tree")
    for number in range(MANY):
        put(root, f"{SCENE}/notes/{number}.txt", b"text")
    workspace = open_home(tmp_path / "home")
    for name in ("a2d2", "labels"):
        uri = str(root if name == "a2d2" else tmp_path)
        add_source(
            workspace.records,
            Source(name=name, uri=uri, platform="NFS", cluster="local", datasource=name),
        )
    scan(workspace)
    return workspace


def scan(home: Workspace) -> ScanCounts:
    """What a scan of the source did."""
    return scan_source(
        home.whole_catalog, home.records, recorded_source(home.records, "a2d2")
    ).counts


@pytest.mark.wide
def test_the_next_scan_obeys(home: Workspace, tmp_path: Path) -> None:
    """What is left out now leaves the catalog, however much; left out no more, it returns."""
    change = Session(home, is_command=True).sources.change
    changed = change("a2d2", exclude=["notes", "*.bak"])
    assert changed.model_dump() == {
        "name": "a2d2", "uri": str(tmp_path / "tree"), "exclude": ["notes", "*.bak"],
        "part_of": "a2d2", "layout": "", "mount": "", "max_mb_per_s": 0, "max_requests_per_s": 0,
        "same": None, "changed": None, "missing": None, "new": None,
    }  # fmt: skip
    assert scan(home).removed == MANY
    (tmp_path / "tree").rename(tmp_path / "moved")
    # Compared by the former list.
    source = change("a2d2", uri=str(tmp_path / "moved"), exclude=[])
    assert (source["uri"], source["missing"], source["new"]) == (str(tmp_path / "moved"), 0, 0)
    assert source["exclude"] == []
    counts = scan(home)
    assert (counts.added, counts.removed) == (MANY, 0)


def test_what_cannot_be_changed(home: Workspace, tmp_path: Path) -> None:
    """Nothing at all, or by a pattern of everything: refused, and nothing was changed."""
    change = Session(home, is_command=True).sources.change
    with pytest.raises(InvalidInput, match="nothing to change"):
        change("a2d2")
    with pytest.raises(InvalidInput, match="goes with"):
        change("a2d2", differing=True, exclude=["notes"])
    with pytest.raises(InvalidInput, match=r"exclude '\*'"):
        change("a2d2", uri=str(tmp_path), differing=True, exclude=["*"])
    source = recorded_source(home.records, "a2d2")
    assert (source.uri, source.options) == (str(tmp_path / "tree"), {})


@pytest.mark.wide
def test_by_command_and_client(home: Workspace) -> None:
    """A server's source, too, by the names that it was added with; '' empties."""
    home.close()

    def ask(*words: str) -> Any:
        run = command(home.home, "source", "set", "labels", *words, "--json")
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    assert ask("--exclude", "notes", "--part-of", "a2d2")["part_of"] == "a2d2"
    source, other = recorded_source(home.records, "a2d2"), recorded_source(home.records, "labels")
    assert [one.name for one in other_sources_of_data_set(home.records, source)] == [other.name]
    assert ask("--exclude", "")["exclude"] == []
    assert ask("--max-mb-per-s", "250")["max_mb_per_s"] == 250
    refused = command(home.home, "source", "set", "labels", "--max-requests-per-s", "-1")
    assert "max_requests_per_s: got -1.0, expected 0 or more" in refused.stderr
    with serving(home.home) as (url, _):
        changed = framesift.connect(url).sources.get("labels").set(part_of="", exclude=("x", "y"))
        assert (changed["part_of"], changed["exclude"]) == ("labels", ["x", "y"])
        changed = framesift.connect(url).sources.get("labels").set(max_requests_per_s=12.5)
        assert (changed["max_mb_per_s"], changed["max_requests_per_s"]) == (250, 12.5)
        said = command(
            home.home, "--server", url, "source", "set", "labels", "--exclude", "z",
            "--max-mb-per-s", "0",
        )  # fmt: skip
        assert said.stdout == (
            "source labels leaves out z, from the next ingest on\n"
            "from source labels a staging takes any number of MB and at most 12.5 requests "
            "a second\n"
        )
