"""A home in the middle of the loop: a model that was validated, and frames that it lacks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from api.workspace import Workspace
from catalog.records.datasets import recorded_dataset
from catalog.records.tables import Job
from catalog.tags.model_scores import write_scores
from catalog.values import now
from ingest.labels.label_image import decode_label
from pipeline.jobs.request import JobPaths
from pipeline.runs.prediction_set import prediction_name
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.api.web.predicted import CLASSES
from tests.pipeline.homes import SAMPLE, copy_home, open_home
from tests.training.drawn_home import ask
from training.class_picture import class_picture

TAUGHT, HELD, UNLABELLED = "20260311_130314", "20260507_155109", "20261112_164836"
"""Scenes: what the model night was trained on, what it was validated with, and without labels."""

_CAR, _STREET = (CLASSES.classes.index(name) for name in ("Car", "RD normal street"))
_OTHER = "20260616_094856"


def home_with_loop(catalogued: Path, folder: Path) -> Path:
    """The home: datasets taught@1 and held@1; validations v-night of night, and v-untold.

    Nobody said what the latter's model was trained on. night finds no car in every other frame of
    `held`; three frames have no label, which it predicted.
    """
    home = copy_home(catalogued, folder)
    ask(home, "select", "--scene", TAUGHT, "--save", "taught")
    ask(home, "select", "--scene", HELD, "--scene", _OTHER, "--save", "held")
    workspace = open_home(home)
    frames = select_frames(workspace.catalog, Question()).frames.to_pylist()
    by_scene = {
        scene: [row for row in frames if row["scene"] == scene]
        for scene in (HELD, _OTHER, UNLABELLED)
    }
    place = folder / "predictions"
    _write(place, [*by_scene[HELD], *by_scene[_OTHER]])
    _without_labels(workspace, by_scene[UNLABELLED])
    workspace.close()
    command = ["validate", "held", "--predictions", str(place), "--named-by", "fkey"]
    ask(home, *command, "--model-name", "untold", "--name", "v-untold")
    ask(home, *command, "--model-name", "night", "--name", "v-night", "--trained-on", "taught")
    return home


def validated_by_training(home: Path) -> None:
    """Make v-untold the validation of the training first, of `home_with_jobs`, on taught."""
    workspace = open_home(home)
    taught = recorded_dataset(workspace.records, "taught")
    split = {"split": next(iter(taught.splits)), "workers": 1, "stage": False}
    with workspace.records.session() as session:
        training = session.query(Job).filter_by(name="first").one()
        training.dataset_id, training.request = taught.id, {"stages": [], "settings": split}
        validation = session.query(Job).filter_by(name="v-untold").one()
        settings = validation.request["settings"]
        validation.request = {
            **validation.request,
            "settings": {"model": "first", **split, "split": settings["split"]},
        }
        validation.paths = {**validation.paths, "model_dir": training.paths["model_dir"]}
        # Else all frames would be held: it validated the model on every scene.
        other = session.query(Job).filter_by(name="v-first").one()
        other.paths = {**other.paths, "model_dir": "/none"}
    workspace.close()


def _label(row: dict[str, Any]) -> Any:
    name = str(row["label_file"])
    (path,) = SAMPLE.rglob(Path(name).name)
    return decode_label(path.read_bytes(), CLASSES)


def _write(place: Path, rows: list[dict[str, Any]]) -> None:
    """Predictions, and how sure they are: cars are taken for street in every other frame."""
    random = np.random.default_rng(5)
    for number, row in enumerate(rows):
        truth = _label(row)
        predicted = np.where((truth == _CAR) & (number % 2 == 0), _STREET, truth)
        path = place / prediction_name(row["fkey"])
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(predicted.astype(np.uint8)).save(path)
        sure = random.integers(100, 256, truth.shape, np.uint8)
        Image.fromarray(sure).save(path.with_suffix(".confidence.png"))


def _without_labels(workspace: Workspace, rows: list[dict[str, Any]]) -> None:
    """Frames whose labels are gone, and what night predicted of them by its job p-night."""
    fkeys = [row["fkey"] for row in rows]
    with workspace.whole_catalog.writing("labels gone") as connection:
        connection.execute(
            "UPDATE lake.main.tags_frame SET labelled = 0 WHERE list_contains(?, fkey)", [fkeys]
        )
    paths = JobPaths(workspace.jobs / "p-night")
    model = workspace.jobs / "night" / "model"
    for made in (paths.report, model):
        made.mkdir(parents=True)
    classes = {"name": "same", "classes": {n: [n] for n in CLASSES.classes}, "ignored": []}
    (model / "model.json").write_text(json.dumps({"class_map": classes}))
    colours = CLASSES.class_colours
    pictures = [f"{number}.png" for number in range(len(rows))]
    paths.results.mkdir(parents=True, exist_ok=True)
    for row, picture in zip(rows, pictures, strict=True):
        class_picture(_label(row), colours).save(paths.results / picture)
    unsure = [0.61, 0.25, 0.4]
    scores = {"fkey": fkeys, "picture": pictures, "uncertainty": unsure, "margin": [0.5] * 3}
    pq.write_table(pa.table(scores), paths.report / "frame_scores.parquet")
    with workspace.records.session() as session:
        session.add(
            Job(
                name="p-night", kind="predict", backend="local", state="done", error="",
                metrics={}, request={"stages": [], "settings": {"model": "night"}},
                started=now(), finished=now(),
                paths={"folder": str(paths.folder), "model_dir": str(model)},
            )
        )  # fmt: skip
    found = {
        "fkey": fkeys, "truth": pa.nulls(3, pa.string()), "predicted": ["car", "sky", "car"],
        "pixels": pa.array([2_100, 90_000, 300], pa.int32()),
    }  # fmt: skip
    table = pa.table({"fkey": fkeys, "uncertainty": unsure})
    write_scores(workspace.whole_catalog, "night", "aa", table, pa.table(found))
