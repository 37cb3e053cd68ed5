"""Sources whose files were moved: re-pointed, compared with the catalog, followed by datasets."""

import os
import shutil
from pathlib import Path

import pytest

import framesift
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.datasets import recorded_dataset
from catalog.records.sources import add_source, recorded_source
from catalog.records.tables import Source
from ingest.scan.scan import scan_source
from pipeline.manifest_store import manifest_folder, read_manifest
from pipeline.staging.stage import stage_dataset
from tests.api.servers import serving
from tests.pipeline.homes import SAMPLE, open_home
from tests.pipeline.test_datasets import make


@pytest.fixture
def moved(tmp_path: Path) -> Workspace:
    """A home with a dataset of a file system's source, whose folder was renamed afterwards."""
    shutil.copytree(SAMPLE, tmp_path / "old")
    workspace = open_home(tmp_path / "home")
    source = add_source(
        workspace.records,
        Source(
            name="a2d2",
            uri=str(tmp_path / "old"),
            platform="NFS",
            cluster="local",
            datasource="a2d2",
        ),
    )
    scan_source(workspace.whole_catalog, workspace.records, source)
    make(workspace)
    (tmp_path / "old").rename(tmp_path / "new")
    return workspace


@pytest.mark.wide
def test_a_moved_source_is_re_pointed(moved: Workspace, tmp_path: Path) -> None:
    """Rows show the new folder, the next scan finds nothing to do, datasets read from there."""
    new = tmp_path / "new"
    source = Session(moved, is_command=True).sources.change("a2d2", uri=str(new))
    assert (source["changed"], source["missing"], source["new"]) == (0, 0, 0)
    with moved.catalog.reading() as cursor:
        rows = cursor.execute("SELECT path, filename FROM metaocean").fetchall()
    assert len(rows) == source["same"] > 48
    assert all(Path(path, name).is_file() and path.startswith(f"{new}/") for path, name in rows)
    counts = scan_source(
        moved.whole_catalog, moved.records, recorded_source(moved.records, "a2d2")
    ).counts
    assert (counts.added, counts.changed, counts.removed) == (0, 0, 0)
    dataset = recorded_dataset(moved.records, "streets")
    manifest = read_manifest(moved.records, dataset)
    assert manifest.header.roots == {"a2d2": str(new)}
    assert (manifest_folder(moved.records, dataset) / "manifest.json").is_file()
    assert stage_dataset(moved.records, dataset, tmp_path / "cache").files_copied == 48


@pytest.mark.wide
def test_what_is_not_the_same_is_refused_unless_wanted(moved: Workspace, tmp_path: Path) -> None:
    """Other times and missing files: counted, named, nothing done; --differing does it, by REST."""
    new = tmp_path / "new"
    images = sorted(new.rglob("*.png"))
    os.utime(images[0], (1, 1))
    images[1].unlink()
    (new / "more.txt").touch()
    change = Session(moved, is_command=True).sources.change
    with pytest.raises(InvalidInput, match=r"1 are missing \(.*1 have another .* --differing"):
        change("a2d2", uri=str(new))
    with pytest.raises(InvalidInput, match="no such folder"):
        change("a2d2", uri=str(tmp_path / "nowhere"))
    assert recorded_source(moved.records, "a2d2").uri == str(tmp_path / "old")
    moved.close()
    with serving(moved.home) as (url, _):
        source = framesift.connect(url).sources.get("a2d2")
        with pytest.raises(framesift.FramesiftServerError, match="1 are missing"):
            source.place(str(new))
        opened = source.place(str(new), differing=True)
        assert (opened["uri"], opened["changed"], opened["missing"], opened["new"]) == (
            str(new), 1, 1, 1,
        )  # fmt: skip
        assert framesift.connect(url).sources.get("a2d2")["uri"] == str(new)
