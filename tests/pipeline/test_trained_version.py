"""NAME beside a model: the version that it was trained on, and a note where it knows the frames."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from api.schemas.jobs import DryRunBody
from api.schemas.new_datasets import NewDataset, NewSplit
from api.services.datasets.new_dataset import divide_dataset, make_dataset
from api.services.session import Session
from api.workspace import Workspace
from catalog.records.datasets import recorded_dataset
from pipeline.manifest import Manifest
from query.question.question import Question
from tests.api.servers import framesift
from tests.pipeline.test_improve import record

REMEMBERS = "the scores will say how well it remembers"


def split(workspace: Workspace, name: str, shares: str, seed: int) -> None:
    """The next version of a dataset."""
    request = NewSplit(split=shares, split_by="frame", allow_leakage=True, seed=seed)
    divide_dataset(workspace, name, request)


def train(workspace: Workspace, name: str, dataset: str, of: str, parent: str = "") -> None:
    """A training that is done, as its record and its model say it."""
    version = recorded_dataset(workspace.records, dataset)
    folder = workspace.jobs / name / "model"
    job = partial(record, workspace, name, "train", version, of, model_dir=folder)
    if parent:
        job(continued_from=workspace.jobs / parent / "model")
    else:
        job()
    folder.mkdir()
    classes = Manifest.read(Path(version.manifest)).header.classes
    (folder / "model.json").write_text(json.dumps({"classes": list(classes)}))


@pytest.fixture
def home(workspace: Workspace) -> Workspace:
    """Streets, undivided, then divided three ways; its like; models of several versions."""
    for name in ("streets", "streets2"):
        make_dataset(workspace, NewDataset(name=name, question=Question()))
    split(workspace, "streets", "train=0.5,validation=0.5", 1)
    split(workspace, "streets", "train=0.5,validation=0.5", 2)
    split(workspace, "streets", "train=0.5,test=0.5", 3)
    train(workspace, "all", "streets@1", "all")
    train(workspace, "first", "streets@2", "train")
    train(workspace, "child", "streets2@1", "all", parent="first")
    return workspace


def described(home: Workspace, model: str, dataset: str, **options: str) -> DryRunBody:
    """A validation that is described only."""
    return Session(home, is_command=True).jobs.dry_run(
        "validate", model=model, dataset=dataset, workers=1, stage=False, **options
    )


@pytest.mark.parametrize(
    ("model", "dataset", "options", "version", "words"),
    [
        ("first", "streets", {}, "streets@2", ["the newest is streets@4"]),
        ("first", "streets", {"split": "train"}, "streets@2", ["newest", "all 12 frames"]),
        ("first", "streets", {"split": "test"}, "streets@4", [" of the 12 frames"]),
        ("first", "streets@3", {}, "streets@3", [" of the 12 frames"]),
        ("all", "streets", {}, "streets@1", ["the newest is streets@4", "all 24 frames"]),
        ("all", "streets@3", {}, "streets@3", ["all 12 frames of streets@3, split validation"]),
        ("child", "streets", {}, "streets@2", ["the newest is streets@4", "all 12 frames"]),
        ("child", "streets2", {}, "streets2@1", ["all 24 frames"]),
        ("first", "streets2", {}, "streets2@1", ["12 of the 24 frames"]),
    ],
)
def test_which_version_is_meant(
    home: Workspace, model: str, dataset: str, options: dict[str, str], version: str,
    words: Sequence[str],
) -> None:  # fmt: skip
    """That of the model's own or its parents' training, where it has the split; notes say so."""
    body = described(home, model, dataset, **options)
    assert body.dataset == version
    assert len(body.notes) == len(words)
    for note, word in zip(body.notes, words, strict=True):
        assert word in note
        assert ("the newest is" in note) is not (REMEMBERS in note)


def test_a_model_that_knows_none_of_the_frames(home: Workspace) -> None:
    """No note: a validation split of the version that it was trained on, named."""
    assert described(home, "first", "streets@2").notes == []


@pytest.mark.wide
def test_it_is_said_before_the_run(home: Workspace) -> None:
    """In the answer to who begins it, as by --dry-run; the job's record does not keep it."""
    jobs = Session(home, is_command=True).jobs
    begun = jobs.validate("all", "streets@3", workers=1, stage=False)
    jobs.cancel(begun.name)
    assert begun.notes == described(home, "all", "streets@3").notes != []
    assert jobs.get(begun.name).notes == []
    words = ("validate", "all", "streets", "--workers", "1", "--no-stage")
    shown = framesift(home.home, *words, "--dry-run")
    assert shown.stdout.startswith("# note: streets is streets@1 here"), shown.stderr
    remembers = f"all was trained on all 24 frames of streets@1, split all: {REMEMBERS}"
    assert f"\n# note: model {remembers}" in shown.stdout
    run = framesift(home.home, *words, "--detach")
    assert f"note: model {remembers}" in " ".join(run.stdout.split()), run.stderr
    for job in jobs.list(kind="validate"):
        jobs.cancel(job.name)
