"""Datasets and models after a home was moved, restored from a backup, or copied to a team's."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from api.schemas.new_datasets import NewDataset, NewExtension, NewSplit
from api.services.datasets.new_dataset import divide_dataset, grow_dataset, make_dataset
from api.services.datasets.rebuild_dataset import rebuild_dataset
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import BadFile, InvalidInput
from catalog.maintenance.backup import back_up, restore
from catalog.maintenance.copying import copy_catalog
from catalog.records.datasets import recorded_dataset
from catalog.records.home_layout import HomeLayout
from catalog.records.jobs import recorded_job
from catalog.records.sources import recorded_source
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from catalog.storage.location import CatalogLocation
from catalog.storage.s3_prefix import S3Prefix
from catalog.storage.spill_folder import user_folder
from ingest.scan.change_source import remove_source
from pipeline.datasets.check_artifacts import check_artifacts
from pipeline.entry_name import HEADER_FILE
from pipeline.manifest import Manifest
from pipeline.manifest_store import manifest_folder, read_manifest
from pipeline.staging.stage import newest_manifest, stage_dataset
from query.question.question import Question
from query.sets.methods import Demand, Match, Sample
from tests.catalog.backends import new_location
from tests.ingest.s3_server import moto
from tests.pipeline.homes import open_home
from tests.pipeline.test_datasets import SPLIT, make

pytestmark = pytest.mark.wide


def trained(workspace: Workspace, dataset: Dataset) -> Path:
    """A training job's record, and its model folder with stand-ins for the files; that folder."""
    folder = workspace.home / "jobs" / "train-1"
    (folder / "model").mkdir(parents=True)
    for name in ("model.json", "model.safetensors"):
        (folder / "model" / name).write_text(name)
    with workspace.records.session() as session:
        session.add(
            Job(
                name="train-1", kind="train", backend="local", state="done", dataset_id=dataset.id,
                request={"stages": [{"commands": [["train", "--model_dir", str(folder)]]}]},
                paths={"folder": str(folder), "model_dir": str(folder / "model")},
            )
        )  # fmt: skip
    return folder / "model"


def texts(home: Path) -> str:
    """Everything that the records of a home say of datasets, jobs and stagings."""
    with closing(sqlite3.connect(home / "records" / "records.sqlite")) as opened:
        return str(
            [
                opened.execute(f"SELECT * FROM {table}").fetchall()
                for table in ("datasets", "jobs", "stagings")
            ]
        )


def test_a_home_is_moved(workspace: Workspace, tmp_path: Path) -> None:
    """Datasets, stagings, jobs and models are where the home is; no record names the old place."""
    dataset = make(workspace, split=SPLIT)
    stage_dataset(workspace.records, dataset, workspace.cache)
    trained(workspace, dataset)
    assert str(workspace.home) not in texts(workspace.home)
    workspace.close()
    moved = tmp_path / "moved"
    workspace.home.rename(moved)
    there = open_home(moved)
    recorded = recorded_dataset(there.records, "streets")
    assert recorded.manifest == str(moved / "datasets" / "streets" / "v1")
    assert read_manifest(there.records, recorded).header.id == dataset.content_id
    staged = newest_manifest(there.records, recorded)
    assert staged.is_relative_to(moved)
    assert all(Path(path).is_file() for path in Manifest.read(staged).image_paths())
    assert stage_dataset(there.records, recorded, there.cache).files_copied == 0
    job = recorded_job(there.records, "train-1")
    assert Path(job.paths["model_dir"], "model.json").is_file()
    assert job.request["stages"][0]["commands"][0][2] == str(moved / "jobs" / "train-1")
    assert make(there, split=SPLIT).id == recorded.id


def test_a_backup_has_datasets_and_models(workspace: Workspace, tmp_path: Path) -> None:
    """Restored elsewhere, a dataset reads as it did, and a model is there; what lacks is said."""
    dataset = make(workspace, split=SPLIT)
    lost = make(workspace, "lost")
    shutil.rmtree(lost.manifest)
    model = trained(workspace, dataset)
    backup = back_up(workspace.whole_catalog, workspace.records, tmp_path / "b.tar")
    assert (backup.datasets, backup.models, backup.missing) == (1, 1, ("lost@1",))
    home = tmp_path / "new"
    home.mkdir()
    assert restore(tmp_path / "b.tar", home) == backup
    shutil.rmtree(workspace.home)
    there = open_home(home)
    recorded = recorded_dataset(there.records, "streets")
    assert read_manifest(there.records, recorded).header.id == dataset.content_id
    job = recorded_job(there.records, "train-1")
    assert Path(job.paths["model_dir"]) == home / model.relative_to(workspace.home)
    assert Path(job.paths["model_dir"], "model.safetensors").read_text() == "model.safetensors"


def team_home(home: Path, location: CatalogLocation, records: RecordStore) -> Workspace:
    """A home of another host whose catalog and records are a team's."""
    workspace = Workspace(Settings(home=home, cache=None))
    workspace.__dict__["catalog_location"] = location
    workspace.__dict__["records"] = RecordStore(
        records.location, home_layout=HomeLayout.of(home, location)
    )
    return workspace


@pytest.mark.parametrize("backend", ["postgres-folder", "postgres-s3"])
def test_a_second_host_reads_what_was_copied_to_a_team(
    workspace: Workspace, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the first host's home: datasets of then, and new ones; models lie there, too."""
    if backend == "postgres-s3":
        moto().sign_in(monkeypatch, tmp_path)
    dataset = make(workspace, split=SPLIT)
    trained(workspace, dataset)
    location = new_location(backend, tmp_path / "team")
    database = new_location("postgres-folder", tmp_path / "unused").metadata
    copied = copy_catalog(
        workspace.whole_catalog, location, (workspace.records, RecordStore(database))
    )
    assert (copied.datasets, copied.models, copied.missing) == (1, 1, ())
    shutil.rmtree(workspace.home)
    second = team_home(tmp_path / "second", location, RecordStore(database))
    files = second.home_layout.files
    assert files is not None
    if isinstance(files, S3Prefix):
        names = {key.removeprefix(files.prefix) for key, _ in files.objects()}
    else:
        names = {path.relative_to(files).as_posix() for path in files.rglob("*.json")}
    assert {"datasets/streets/v1/manifest.json", "models/train-1/model.json"} <= names
    recorded = recorded_dataset(second.records, "streets")
    assert read_manifest(second.records, recorded).header.id == dataset.content_id
    killed = user_folder() / "manifests" / "of-a-killed-process"
    killed.mkdir(parents=True, exist_ok=True)
    created = make(second, "streets", "car=10000:")
    if backend == "postgres-s3":
        assert not killed.exists()
    third = team_home(tmp_path / "third", location, RecordStore(database))
    assert read_manifest(third.records, recorded_dataset(third.records, "streets")).header.id == (
        created.content_id
    )
    folder = manifest_folder(third.records, recorded)
    assert json.loads((folder / HEADER_FILE).read_text())["id"] == dataset.content_id
    second.close()
    third.close()


def test_a_job_reads_sources_where_they_lie_now(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset's source that was moved is read there; a removed one stays where it lay."""
    dataset = make(workspace)
    own = Path(dataset.manifest)
    assert manifest_folder(workspace.records, dataset) == own
    with workspace.records.session() as session:
        source = recorded_source(workspace.records, "a2d2")
        session.add(source)
        source.uri = "/moved"
    folder = manifest_folder(workspace.records, dataset)
    assert folder.is_relative_to(workspace.home / "cache")
    assert Manifest.read(folder).header.roots == {"a2d2": "/moved"}
    assert Manifest.read(folder).header.id == dataset.content_id
    assert manifest_folder(workspace.records, dataset) == folder
    remove_source(workspace.whole_catalog, workspace.records, "a2d2")
    assert manifest_folder(workspace.records, dataset) == own


def test_another_datasets_manifest_is_refused(workspace: Workspace) -> None:
    """What lies where a dataset's manifest should is that dataset's, or refused."""
    dataset, other = make(workspace), make(workspace, "other", "car=10000:")
    shutil.rmtree(dataset.manifest)
    shutil.copytree(other.manifest, dataset.manifest)
    with pytest.raises(BadFile, match="is not the manifest of dataset streets@1"):
        read_manifest(workspace.records, dataset)


def made_in_every_way(workspace: Workspace) -> list[Dataset]:
    """Datasets of a question, samples, a method, apart from another, divided again, extended."""
    whole = make(workspace, "whole", split=SPLIT, seed=3)
    requests = [
        NewDataset(name="sample", question=Question(sample=9, seed=5), split="a=0.5,b=0.5"),
        NewDataset(
            name="drawn", question=Question(), seed=7,
            method=Sample(frames=8, stratify=("camera",)),
        ),
        NewDataset(
            name="alike", question=Question(), seed=1, method=Match(frames=6, like="whole@1")
        ),
        NewDataset(name="apart", question=Question(), disjoint_from=("small",), min_gap_s=0),
    ]  # fmt: skip
    scene = Manifest.read(Path(whole.manifest)).frames["scene"][0].as_py()
    make_dataset(workspace, NewDataset(name="small", question=Question(scenes=(scene,))))
    datasets = [make_dataset(workspace, one) for one in requests]
    divided = divide_dataset(workspace, "drawn", NewSplit(split="a=0.5,b=0.5", seed=2))
    grown = grow_dataset(
        workspace,
        "sample",
        NewExtension(
            demands=(Demand(question=Question(), frames=12),), split="a", allow_leakage=True
        ),
    )
    again = divide_dataset(workspace, "sample", NewSplit(split="x=0.5,y=0.5", split_by="frame"))
    return [whole, *datasets, divided, grown, again]


def test_lost_manifests_are_found_and_rebuilt(workspace: Workspace) -> None:
    """However a dataset was made: its manifest comes back with the same rows; check tells of it."""
    datasets = made_in_every_way(workspace)
    before = {one.manifest: Manifest.read(Path(one.manifest)) for one in datasets}
    assert check_artifacts(workspace.records) == []
    model = trained(workspace, datasets[0])
    (model / "model.json").unlink()
    for one in datasets:
        shutil.rmtree(one.manifest)
    Path(datasets[0].manifest).mkdir()
    Path(datasets[0].manifest, HEADER_FILE).write_text("{")
    findings = check_artifacts(workspace.records)
    kinds = [finding.kind for finding in findings]
    assert sorted(kinds) == ["missing_manifest"] * len(datasets) + ["missing_model"]
    assert all("framesift dataset rebuild" in one.remedy for one in findings[:-1])
    for one in reversed(datasets):  # what others are made of is made again with them
        assert rebuild_dataset(workspace, f"{one.name}@{one.version}").id == one.id
    for one in datasets:
        manifest = Manifest.read(Path(one.manifest))
        assert manifest.frames.equals(before[one.manifest].frames), one.name
        written = dict(vars(manifest.header)) | {"frames_sha256": ""}
        assert written == dict(vars(before[one.manifest].header)) | {"frames_sha256": ""}
    assert [finding.kind for finding in check_artifacts(workspace.records)] == ["missing_model"]


def test_what_cannot_be_rebuilt_equal_is_not_written(workspace: Workspace) -> None:
    """A record whose question is another one by now: refused by both ids, and nothing is there."""
    dataset = make(workspace, split=SPLIT)
    shutil.rmtree(dataset.manifest)
    with workspace.records.session() as session:
        record = session.get_one(Dataset, dataset.id)
        record.question = {**record.question, "where": "car > 20000"}
    with pytest.raises(InvalidInput, match=r"streets@1: made again .* Nothing was written"):
        rebuild_dataset(workspace, "streets")
    assert not Path(dataset.manifest).exists()
