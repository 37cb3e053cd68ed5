"""A model's next training data: weak classes and cameras, uncertainty, and never what is held."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from api.schemas.datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset
from api.services.datasets.rebuild_dataset import rebuild_dataset
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Dataset, Job, now
from catalog.tags.model_scores import write_scores
from pipeline.jobs.request import JobPaths, write_json
from pipeline.manifest import Manifest
from query.question.question import Question
from tests.pipeline.synthetic import synthetic


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """15,000 drawn rows of 30 scenes; a model trained on some without bicycles, not validated."""
    workspace = synthetic(tmp_path_factory.mktemp("many"))
    question = Question(where="bicycle = 0 and scene <= '20180807_1505'", sample=300)
    request = NewDataset(name="few", question=question, split="train=0.7,validation=0.3")
    few = make_dataset(workspace, request)
    record(workspace, "first", "train", few, "train")
    return workspace


def record(workspace: Workspace, name: str, kind: str, dataset: Dataset, split: str) -> JobPaths:
    """A job that is done."""
    paths = JobPaths(workspace.jobs / name)
    paths.report.mkdir(parents=True)
    model_dir = workspace.jobs / "first" / "model"
    with workspace.records.session() as session:
        session.add(
            Job(
                name=name, kind=kind, backend="local", state="done", handle="1:1",
                request={"stages": [], "settings": {"split": split}}, started=now(),
                finished=now(), dataset_id=dataset.id, metrics={},
                paths={
                    "folder": str(paths.folder), "logs": str(paths.logs),
                    "model_dir": str(model_dir),
                },
            )
        )  # fmt: skip
    return paths


def column(dataset: dict[str, Any], name: str, split: str) -> list[str]:
    """Of the frames of a split of a dataset."""
    rows = Manifest.read(Path(dataset["manifest"])).split(split).frames[name]
    values: list[str] = rows.to_pylist()
    return values


@dataclass(frozen=True)
class Validated:
    """A home, a set on which its model "first" was validated, and its doubt about each frame."""

    workspace: Workspace
    held: Dataset
    uncertainty: dict[str, float]


@pytest.fixture(scope="module")
def validated(many: Workspace) -> Validated:
    """The model was validated: it finds no bicycle, and little by one camera."""
    with pytest.raises(InvalidInput, match=r"no finished validation.*framesift validate first"):
        Session(many, is_command=True).models.improve("first")
    held = make_dataset(
        many,
        NewDataset(name="held", question=Question(where="scene >= '20180807_1515'", sample=50)),
    )
    report = record(many, "v-1", "validate", held, "all").report
    per_class = [
        {"tag": tag, "iou": None if tag == "bicycle" else 0.9, "truth_pixels": tag != "bicycle"}
        for tag in ("bicycle", "car", "sky")
    ]
    cameras = [
        {"camera": camera, "miou": 0.2 if camera == "rear_center" else 0.9}
        for camera in ("front_center", "rear_center")
    ]
    write_json(report / "report.json", {"per_class": per_class, "slices": {"camera": cameras}})
    with many.catalog.reading() as snapshot:
        rows = snapshot.execute("SELECT fkey FROM lake.main.tags_frame ORDER BY fkey").fetchall()
    fkeys = [row[0] for row in rows]
    unsure = np.random.default_rng(1).random(len(fkeys))
    write_scores(
        many.whole_catalog, "first", "aa", pa.table({"fkey": fkeys, "uncertainty": unsure}), None
    )
    return Validated(many, held, dict(zip(fkeys, unsure.tolist(), strict=True)))


@pytest.mark.wide
def test_what_a_model_lacks_is_added(validated: Validated) -> None:
    """Frames of the weak class and the weak camera, unsure ones first; nothing near what is held.

    The new version is made again from its record alone.
    """
    many = validated.workspace
    models = Session(many, is_command=True).models
    body = models.improve("first", frames=60, per_scene=10).model_dump()
    grown = body["dataset"]
    assert (body["validation"], grown["name"], grown["version"]) == ("v-1", "few", 2)
    first = recorded_dataset(many.records, "few@1")
    before = Manifest.read(Path(first.manifest)).frames["fkey"].to_pylist()
    added = set(column(grown, "fkey", "train")) - set(before)
    assert len(added) == 60 == grown["report"]["added"]
    frames = Manifest.read(Path(grown["manifest"])).frames.to_pylist()
    new = [row for row in frames if row["fkey"] in added]
    away = {*column(grown, "scene", "validation")}
    away |= set(Manifest.read(Path(validated.held.manifest)).frames["scene"].to_pylist())
    assert not away & {row["scene"] for row in new}
    scenes = [row["scene"] for row in new]
    assert max(scenes.count(scene) for scene in scenes) <= 10
    expected = {row["class"]: row for row in grown["report"]["expects"]}
    assert expected["bicycle"]["frames"] == 0
    assert expected["bicycle"]["added"] == 60
    assert next(iter(expected)) == "bicycle"
    # Of all frames a sixth are this camera's, and half are as uncertain.
    assert sum(row["camera"] == "rear_center" for row in new) > 20
    assert np.mean([validated.uncertainty[fkey] for fkey in added]) > 0.6
    assert models.improve("first", frames=60, per_scene=10).dataset.version == 2
    shutil.rmtree(grown["manifest"])
    assert rebuild_dataset(many, "few@2").content_id == grown["id"]


def test_unlabelled_frames_are_listed_to_be_labelled(validated: Validated) -> None:
    """The most uncertain of those without a label, none of a scene that is held."""
    many = validated.workspace
    with many.whole_catalog.writing("no labels") as connection:
        connection.execute(
            "UPDATE lake.main.tags_frame SET labelled = 0 WHERE scene < '20180807_1509' "
            "AND scene > '20180807_1506'"
        )
    body = Session(many, is_command=True).models.improve("first", frames=1, label=40)
    assert len(set(body.to_label)) == 40
    with many.catalog.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT avg(first_uncertainty), max(labelled) FROM lake.main.tags_frame "
            "JOIN lake.main.tags_scores_first USING (fkey) WHERE list_contains(?, fkey)",
            [body.to_label],
        ).fetchall()
    assert rows[0][0] > 0.6
    assert rows[0][1] == 0


def test_a_training_set_keeps_what_says_most(validated: Validated) -> None:
    """Every class stays, what is unlike the rest rather than the rest, and the other splits whole.

    With a model, what it is weak in and unsure of comes first. Made again from its record, it is
    the same.
    """
    many = validated.workspace
    datasets = Session(many, is_command=True).datasets
    question = Question(where="scene <= '20180807_1512'", sample=400, seed=2)
    request = NewDataset(name="large", question=question, split="train=0.75,validation=0.25")
    large = make_dataset(many, request)
    before = Manifest.read(Path(large.manifest))
    train = before.split("train")
    small = datasets.reduce("large", 60, seed=1).model_dump()
    report, kept = small["report"], set(column(small, "fkey", "train"))
    assert (report["split"], report["frames"], report["kept"]) == ("train", len(train), 60)
    assert len(kept) == 60
    assert kept < set(train.frames["fkey"].to_pylist())
    assert column(small, "fkey", "validation") == (
        before.split("validation").frames["fkey"].to_pylist()
    )
    assert all(row["kept"] for row in report["classes"])
    assert datasets.reduce("large@1", 60, seed=1).version == 2
    shutil.rmtree(small["manifest"])
    assert rebuild_dataset(many, "large@2").content_id == small["id"]
    # "first" finds no bicycle, and is unsure of some frames.
    known = datasets.reduce("large@1", 60, model="first", seed=1).model_dump()
    of_bicycle = [
        next(row["kept"] for row in of["report"]["classes"] if row["class"] == "bicycle")
        for of in (known, small)
    ]
    assert of_bicycle[0] >= of_bicycle[1]
    assert known["question"]["reduced"][0]["uncertainty"] == "first_uncertainty"
    for frames in (len(train), len(train) + 1):
        with pytest.raises(InvalidInput, match=r"split train has .* frames, and"):
            datasets.reduce("large@1", frames)
