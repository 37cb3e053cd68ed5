"""A home with what a model said of a frame."""

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from api.workspace import Workspace
from catalog.records.tables import Job
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import decode_label
from pipeline.jobs.request import JobPaths
from query.frames.one_frame import SnapshotFrame, find_frame
from query.frames.select_frames import select_frames
from query.question.question import Question
from tests.pipeline.homes import SAMPLE, copy_home, open_home
from training.class_picture import class_picture

CLASS_LIST = json.loads((SAMPLE / "camera_lidar_semantic/class_list.json").read_bytes())
CAR = next(
    tuple(bytes.fromhex(colour[1:])) for colour, name in CLASS_LIST.items() if name == "Car 1"
)
CLASSES = ClassList.from_colours(CLASS_LIST)
REST = [name for name in CLASSES.classes if name != "Car"]


def home_with_prediction(
    catalogued: Path, folder: Path
) -> tuple[Path, SnapshotFrame, npt.NDArray[np.uint8]]:
    """A copy of a home, a frame of it, and the prediction of that frame by job p-1 of model first.

    The model tells cars from all else, and takes a corner of the sky for a car.
    """
    home = copy_home(catalogued, folder)
    workspace = open_home(home)
    fkeys = select_frames(workspace.catalog, Question()).frames["fkey"].to_pylist()
    frame = find_frame(workspace.catalog, str(min(fkeys)))
    label = decode_label((SAMPLE / str(frame.label)).read_bytes(), CLASSES)
    predicted = (label != CLASSES.classes.index("Car")).astype(np.uint8)
    predicted[:40, :40] = 0
    picture = class_picture(predicted, np.array([CAR, (9, 9, 9)], np.uint8))
    _predict(workspace, frame, picture, {"Thing": ["Car"], "Rest": REST})
    workspace.close()
    return home, frame, np.asarray(picture.convert("RGB"))


def _predict(
    workspace: Workspace,
    frame: SnapshotFrame,
    picture: Image.Image,
    merged: dict[str, list[str]],
) -> None:
    """Leave a prediction's files and record, as its job would."""
    paths = JobPaths(workspace.jobs / "p-1")
    model = workspace.jobs / "first" / "model"
    file = paths.results / str(frame.label)
    for folder in (file.parent, paths.report, model):
        folder.mkdir(parents=True)
    picture.save(file)
    row = {"fkey": frame.fkey, "picture": str(frame.label), "uncertainty": 0.25, "margin": 0.5}
    pq.write_table(pa.Table.from_pylist([row]), paths.report / "frame_scores.parquet")
    map_ = {"name": "two", "classes": merged, "ignored": []}
    (model / "model.json").write_text(json.dumps({"class_map": map_}))
    with workspace.records.session() as session:
        session.add(
            Job(
                name="p-1", kind="predict", backend="local", state="done", error="", metrics={},
                request={"stages": [], "settings": {"model": "first"}},
                paths={"folder": str(paths.folder), "model_dir": str(model)},
            )
        )  # fmt: skip
