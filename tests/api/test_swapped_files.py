"""A catalogued file replaced by a link to another of the server's files is never served."""

import os
import shutil
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from api.schemas.new_datasets import NewSplit
from api.services.datasets.new_dataset import divide_dataset
from catalog.errors import BadFile, StorageError
from catalog.records.tables import Source
from ingest.scan.change_source import remove_source
from pipeline.manifest import Manifest
from pipeline.runs.size import Size
from pipeline.staging.stage import stage_dataset
from tests.api.servers import framesift, serving
from tests.pipeline.homes import copy_home, open_home
from tests.pipeline.test_datasets import make
from training.input.frame_reader import FrameReader


@pytest.mark.wide
def test_pictures(catalogued: Path, tmp_path: Path) -> None:
    """Records, devices, pipes and folders behind a frame's name: an error without their bytes."""
    home = copy_home(catalogued, tmp_path, with_source=True)
    with serving(home) as (url, _), httpx.Client(base_url=url, timeout=120) as client:
        fkey = client.get("/v1/frames", params={"limit": 1}).json()["frames"][0]["fkey"]
        file = tmp_path / "source" / fkey.removeprefix("local:a2d2:")
        file_kept = file.with_name("kept.png")
        file.rename(file_kept)
        os.mkfifo(tmp_path / "pipe")
        paths = [f"/v1/images/{fkey}", f"/v1/images/{fkey}?width=20", f"/v1/overlays/{fkey}"]
        secret = home / "records" / "records.sqlite"
        for target in (secret, Path("/etc/passwd"), Path("/dev/zero"), tmp_path / "pipe"):
            file.symlink_to(target)
            for path in paths:
                for headers in ({}, {"Range": "bytes=8-99"}, {"Range": "bytes=-50"}):
                    answer = client.get(path, headers=headers)
                    assert answer.status_code in (404, 422), (target, path, answer.text)
                    assert target.name not in answer.text
                    assert "SQLite" not in answer.text
            file.unlink()
        shutil.copyfile(secret, file)  # no link: still no PNG
        for headers in ({}, {"Range": "bytes=0-5"}, {"Range": "bytes=100-200"}):
            answer = client.get(paths[0], headers=headers)
            assert answer.status_code == 422
            assert "SQLite" not in answer.text
        file.unlink()
        file.symlink_to(file.name)  # in a circle
        for path in paths:
            assert client.get(path).status_code == 404
        file.unlink()
        file.symlink_to("kept.png")
        assert client.get(paths[0]).content == file_kept.read_bytes()
        folder, elsewhere = file.parent, tmp_path / "source-private"
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        assert client.get(paths[0]).status_code == 404


def test_staging_and_training(catalogued: Path, tmp_path: Path) -> None:
    """Neither copies nor decodes what a link leads to; the cache gets nothing."""
    workspace = open_home(copy_home(catalogued, tmp_path, with_source=True))
    dataset = make(workspace)
    manifest = Manifest.read(Path(dataset.manifest))
    (tmp_path / "source-private").mkdir()
    file, outside = Path(manifest.image_paths()[0]), tmp_path / "source-private" / "outside.png"
    file.rename(outside)
    file.symlink_to(outside)
    with pytest.raises(StorageError, match="leads out of the source"):
        stage_dataset(workspace.records, dataset, tmp_path / "cache", workers=1)
    content = outside.read_bytes()
    assert all(
        path.read_bytes() != content
        for path in (tmp_path / "cache").rglob("*")
        if path.is_file()
    )  # fmt: skip
    palette = manifest.header.dataset_classes
    reader = FrameReader(manifest, palette, Size(8, 8))
    with pytest.raises(BadFile, match="leads out of the source"):
        reader.image(0)
    workspace.close()


@pytest.mark.wide
def test_a_folder_that_is_replaced(catalogued: Path, tmp_path: Path) -> None:
    """A link where the source's folder was, out of the one that lets it be named: nothing is read.

    Nor once the source has been removed, nor of what is made of the dataset.
    """
    workspace = open_home(copy_home(catalogued, tmp_path, with_source=True))
    folder, elsewhere = tmp_path / "source", tmp_path / "within2"
    within = tmp_path / "within"
    within.mkdir()
    folder.rename(within / "source")
    folder = within / "source"
    with workspace.records.session() as session:
        for source in session.scalars(select(Source)):
            source.uri, source.options = str(folder), {"within": str(within)}
    dataset = make(workspace, split="train=0.75,validation=0.25")
    divided = divide_dataset(workspace, dataset.name, NewSplit(split="train=0.5,validation=0.5"))
    palette = Manifest.read(Path(dataset.manifest)).header.dataset_classes

    def readers() -> list[FrameReader]:
        manifests = (Manifest.read(Path(record.manifest)) for record in (dataset, divided))
        return [FrameReader(manifest, palette, Size(8, 8)) for manifest in manifests]

    early = readers()
    assert all(reader.image(0)[1] == (1208, 1920) for reader in early)
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    for reader in early:
        with pytest.raises(BadFile, match="leads out of the source"):
            reader.image(0)
    for remove in (
        lambda: None,
        lambda: remove_source(workspace.whole_catalog, workspace.records, "a2d2"),
    ):
        remove()
        for record in (dataset, divided):
            with pytest.raises(StorageError, match="leads out of"):
                stage_dataset(workspace.records, record, tmp_path / "cache", workers=1)
            with pytest.raises(StorageError, match="leads out of"):
                FrameReader(Manifest.read(Path(record.manifest)), palette, Size(8, 8))
    folder.unlink()
    elsewhere.rename(within / "moved")
    folder.symlink_to("moved")  # links that stay below it may be
    staging = stage_dataset(workspace.records, dataset, tmp_path / "cache", workers=1)
    manifests = [staging.manifest, dataset.manifest]
    for link in manifests:
        manifest = Manifest.read(Path(link))
        assert FrameReader(manifest, palette, Size(8, 8)).image(0)[1] == (1208, 1920)
    workspace.close()


def test_a_key_that_is_none_is_said_at_the_start(catalogued: Path, tmp_path: Path) -> None:
    """Not when the first source with keys is opened."""
    home = copy_home(catalogued, tmp_path)
    done = framesift(home, "serve", "--no-auth", variables={"FRAMESIFT_SECRET_KEY": "short"})
    assert done.returncode != 0
    assert "FRAMESIFT_SECRET_KEY: is no key" in done.stderr
    assert "short" not in done.stderr
