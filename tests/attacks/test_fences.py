"""A source that a dataadmin named stays below the folder that lets it be named."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from api.services.sources.places import allowed_place, fenced
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import FramesiftError, InvalidInput, NotAllowed
from catalog.records.sources import add_source
from catalog.records.tables import Dataset, Source
from ingest.scan.change_source import remove_source
from ingest.sources.source_options import NO_OPTIONS
from pipeline.manifest import Manifest
from pipeline.manifest_store import manifest_folder
from pipeline.staging.stage import stage_dataset
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make


def _s3(name: str, datasource: str) -> Source:
    return Source(
        name=name, uri="s3://bucket/prefix", platform="IBM COS", cluster="local",
        datasource=datasource, site="",
        options={"endpoint_url": "http://127.0.0.1:9", "anonymous": True},
    )  # fmt: skip


def _refused(workspace: Workspace, dataset: Dataset, cache: Path) -> str:
    """Why a dataset cannot be staged, once nothing of it lies in the cache."""
    with pytest.raises(FramesiftError) as caught:
        stage_dataset(workspace.records, dataset, cache, workers=1)
    assert not list(cache.rglob("*.png"))
    return str(caught.value)


def test_a_later_source_of_the_same_name(catalogued: Path, tmp_path: Path) -> None:
    """Its folder swapped for a link, a source's removal and an S3 one of its name free nothing.

    A place and the fence around it are one record's: an S3 source has no fence, and so no folder.
    """
    workspace = open_home(copy_home(catalogued, tmp_path, with_source=True))
    within, outside = tmp_path / "within", tmp_path / "outside"
    within.mkdir()
    (tmp_path / "source").rename(within / "source")
    with workspace.records.session() as session:
        for source in session.scalars(select(Source)):
            source.uri, source.options = str(within / "source"), {"within": str(within)}
    dataset = make(workspace)
    (within / "source").rename(outside)
    (within / "source").symlink_to(outside)
    assert "leads out of" in _refused(workspace, dataset, tmp_path / "cache")
    remove_source(workspace.whole_catalog, workspace.records, "a2d2")
    assert "leads out of" in _refused(workspace, dataset, tmp_path / "cache")
    for datasource, said in (("another", "leads out of"), ("a2d2", "cannot be reached")):
        added = add_source(workspace.records, _s3("a2d2", datasource))
        assert said in _refused(workspace, dataset, tmp_path / "cache")
        header = Manifest.read(manifest_folder(workspace.records, dataset)).header
        is_folder = "://" not in header.roots["a2d2"]
        assert is_folder == bool(header.within["a2d2"])
        remove_source(workspace.whole_catalog, workspace.records, added.name)
    workspace.close()


@pytest.mark.parametrize("uri", ["s3:/source", "S3:source", "s3:/../../../../../etc", "s3:"])
def test_a_path_that_passes_for_a_bucket(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its two slashes it was opened as a path, below the server's folder and no fence."""
    (tmp_path / "s3:" / "source").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    settings = Settings(home=tmp_path / "home", source_roots=(tmp_path / "roots",))
    with pytest.raises(InvalidInput, match="expected s3://bucket/prefix"):
        allowed_place(settings, uri, NO_OPTIONS, None)


def test_a_link_changed_between_two_looks(tmp_path: Path) -> None:
    """No fence is no answer to where a place lies."""
    roots = tmp_path / "roots"
    (roots / "in").mkdir(parents=True)
    (roots / "link").symlink_to("in")
    settings = Settings(home=tmp_path / "home", source_roots=(roots,))
    uri = allowed_place(settings, str(roots / "link"), NO_OPTIONS, None)
    assert fenced(settings, uri, NO_OPTIONS, None) == replace(NO_OPTIONS, within=str(roots))
    beside = tmp_path / "roots-private"
    beside.mkdir()
    for target in ("/etc", str(beside), "../roots-private"):
        (roots / "link").unlink()
        (roots / "link").symlink_to(target)
        with pytest.raises(NotAllowed, match="lies below none of the folders"):
            fenced(settings, uri, NO_OPTIONS, None)
    with pytest.raises(NotAllowed, match="lies below none of the folders"):
        allowed_place(settings, str(beside), NO_OPTIONS, None)
