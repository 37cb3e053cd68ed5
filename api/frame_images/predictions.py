"""Predictions of a frame: pictures of prediction jobs, and where they differ from labels.

A validation stands for such a job, too: of predictions that another program made, which it scored,
and of any other model by the small copies that it keeps.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from PIL.Image import Image

from api.frame_images.drawing import (
    Look,
    UInt8,
    decoded_ids,
    decoded_image,
    decoded_png,
    decoded_prediction,
    draw_differences,
)
from api.frame_images.given_predictions import OF_JOB, GivenPredictions
from api.frame_images.made_image import MadeImage, PictureFile
from api.frame_images.pictures import both_files, class_ids_of, image_file, made_blend
from api.frame_images.small_predictions import SmallPredictions
from api.frame_images.source_file import SourceFile, open_file
from api.workspace import Workspace
from catalog.errors import FramesiftError, InvalidInput, NotFound
from catalog.records.jobs import done_jobs_version, recorded_job, recorded_jobs
from catalog.records.tables import Job, Source
from catalog.storage.bounded_file import parsed_json, read_bounded
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.jobs.request import JobPaths
from pipeline.runs.class_map import ClassMap
from pipeline.runs.onnx_model import OnnxModel

_MOST_JOBS = 40
"""Jobs whose scores are read for one frame at most: of a million frames 10 ms each."""

_MOST_LISTED = 200
"""Prediction jobs whose models are offered."""

_MODELS: WeakKeyDictionary[Workspace, tuple[tuple[int, int], list[str]]] = WeakKeyDictionary()
"""By home, of a limited user their part of it: the version of its jobs, and their models."""

_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Prediction:
    """A model's word on a frame."""

    job: str
    """Name of the prediction job."""
    model: str
    """Of its model."""
    picture: str
    """Path of the class-coloured picture below the job's results; empty of a validation."""
    uncertainty: float | None
    """Of the frame, 0 to 1; None where its network gives class ids alone."""
    margin: float | None
    """Distance of the two largest probabilities, 0 to 1; None likewise."""
    is_small: bool = False
    """Whether it is a small copy, which its validation keeps."""

    @property
    def layer(self) -> str:
        """What stands for it in what lies over a picture: the model, or the job that scored it."""
        return self.model if self.picture else f"{OF_JOB}{self.job}"


@dataclass(frozen=True)
class PredictionChoice:
    """The choice of a frame's prediction, and how it is drawn."""

    model: str | None = None
    """The newest by this one."""
    job: str | None = None
    """The one that this job made, or scored; with neither the newest of the frame."""
    errors: bool = False
    """Draw where it differs from the label in its place."""
    alpha: float = 0.5
    """How much of it shows, 0 to 1."""
    classes: str | None = None
    """Only these, tags or names with commas between."""
    taken_for: str | None = None
    """Of errors: only pixels that the model took for one of these, tags or names with commas."""


def made_prediction(
    workspace: Workspace, fkey: str, look: Look, choice: PredictionChoice
) -> MadeImage:
    """A model's prediction over the camera image, or the pixels in which it differs from the label.

    Raises:
        InvalidInput: Both a model and a job are given, or taken_for without errors.
    """
    job = choice.job or _newest_job(workspace, fkey, choice.model)
    if choice.job and choice.model:
        raise InvalidInput(f"model {choice.model}, job {choice.job}: give one of them")
    decoding, files, file = _prediction_files(workspace, fkey, job, with_label=choice.errors)
    if choice.errors:
        return _made_differences(decoding, files, file, look, choice.classes, choice.taken_for)
    if choice.taken_for is not None:
        raise InvalidInput("taken_for: it says which errors are drawn; ask for errors=true with it")
    source = files[0].source
    class_list = ClassList.from_json(source.class_list)
    only = class_ids_of(class_list, choice.classes)
    if only is not None:
        only = _in_model(only, decoding.class_of_label(class_list, source.name))
    return made_blend(
        (files[0], file), look, choice.alpha, only, decoding.picture, decoding.ids,
        what=decoding.what, is_small=decoding.is_small,
    )  # fmt: skip


def _newest_job(workspace: Workspace, fkey: str, model: str | None) -> str:
    image_file(workspace, fkey)  # which says so where there is no such frame
    predictions = predictions_of(workspace, fkey, model)
    if predictions:
        return predictions[0].job
    models = ", ".join(each.model for each in predictions_of(workspace, fkey)) or "none"
    raise NotFound("prediction", model or fkey, f"models that predicted it: {models}")


def models_with_predictions(workspace: Workspace) -> list[str]:
    """Names of the models of the newest prediction jobs that are done, newest first.

    They are kept until a prediction job ends or is removed: Find asks with each page.
    """
    records = workspace.records
    done = done_jobs_version(records, "predict")
    kept = _MODELS.get(workspace)
    if kept is None or kept[0] != done:
        jobs = recorded_jobs(records, kind="predict", states=["done"], limit=_MOST_LISTED)
        kept = done, [*dict.fromkeys(_model_of(job) for job in jobs)]
        _MODELS[workspace] = kept
    return [*kept[1]]


def predictions_of(workspace: Workspace, fkey: str, model: str | None = None) -> list[Prediction]:
    """The newest prediction of each model that has one of a frame, newest first.

    Args:
        model: Of this model alone; of all when None.
    """
    jobs = [
        job
        for job in recorded_jobs(workspace.records, kind="predict", states=["done"])
        if model in (None, _model_of(job))
    ]
    newest: dict[str, tuple[int, Prediction]] = {}
    for job in islice(_by_turns(jobs), _MOST_JOBS):
        its = _model_of(job)
        if its not in newest and (prediction := _of_job(job, fkey)) is not None:
            newest[its] = job.id, prediction
    by_age = sorted(newest.values(), key=lambda each: -each[0])
    return [prediction for _, prediction in by_age]


def _by_turns(jobs: Sequence[Job]) -> Iterator[Job]:
    """The first job of each model, then each one's second: no model's many hide another's one."""
    of_model: dict[str, list[Job]] = {}
    for job in jobs:
        of_model.setdefault(_model_of(job), []).append(job)
    for turn in zip_longest(*of_model.values()):
        yield from filter(None, turn)


def scored_predictions(workspace: Workspace, job: str) -> GivenPredictions | None:
    """The predictions of another program that a validation scored; None where it did not.

    Raises:
        NotFound: There is no such job.
        BadFile: Their description is damaged.
    """
    return GivenPredictions.of(recorded_job(workspace.records, job))


def scored_prediction(workspace: Workspace, fkey: str, job: str) -> Prediction | None:
    """The prediction of a frame that a validation scored; None where it is not there now."""
    try:
        record = recorded_job(workspace.records, job)
        given, small = GivenPredictions.of(record), SmallPredictions.of(record)
        if given is not None and fkey in given.there(workspace, [fkey]):
            return Prediction(job, given.given.model, "", None, None)
    except FramesiftError:
        return None
    if small is None or fkey not in small.there([fkey]):
        return None
    return Prediction(job, _model_of(record), "", None, None, is_small=True)


def validated_model(workspace: Workspace, job: str) -> str:
    """The name of the model that a job is of, as `Prediction.model`; "" where there is none."""
    try:
        return _model_of(recorded_job(workspace.records, job))
    except NotFound:
        return ""


def small_predictions_of(workspace: Workspace, job: str, fkeys: Collection[str]) -> frozenset[str]:
    """Those of some frames of whose predictions a validation keeps small copies.

    Raises:
        NotFound: There is no such job.
    """
    small = SmallPredictions.of(recorded_job(workspace.records, job))
    return frozenset() if small is None else small.there(fkeys)


def predicted_by(workspace: Workspace, model: str, fkeys: Collection[str]) -> frozenset[str]:
    """Those of some frames that `predictions_of` has a prediction of by a model."""
    jobs = [
        job
        for job in recorded_jobs(workspace.records, kind="predict", states=["done"])
        if _model_of(job) == model
    ]
    known: set[str] = set()
    for job in jobs[:_MOST_JOBS]:
        lacking = [fkey for fkey in fkeys if fkey not in known]
        if not lacking:
            break
        known |= _scored_in(job, lacking, ["fkey"]).keys()
    return frozenset(known)


class _Decoding(Protocol):
    """How a job's predictions are read."""

    @property
    def is_small(self) -> bool:
        """Whether they are small copies."""
        ...

    @property
    def what(self) -> str:
        """Another text wherever another class comes out."""

    def ids(self, png: bytes, key: str, /) -> UInt8:
        """A prediction (H, W) uint8 [the model's class id]."""

    def picture(self, png: bytes, key: str, /) -> Image:
        """A prediction in colours, in mode RGB."""

    def class_of_label(self, class_list: ClassList, source: str, /) -> list[int | None]:
        """For each class of a source's labels the model's; None where the model ignores it."""


@dataclass(frozen=True)
class _Made:
    """How the pictures of a prediction job are read."""

    job: Job
    is_small: bool = False

    @property
    def what(self) -> str:
        return ""

    def ids(self, png: bytes, key: str) -> UInt8:
        return decoded_prediction(png, key)

    def picture(self, png: bytes, key: str) -> Image:
        return decoded_png(png, key)

    def class_of_label(self, class_list: ClassList, source: str) -> list[int | None]:
        return _class_of_label(self.job, source, class_list)


def _prediction_files(
    workspace: Workspace, fkey: str, job: str, *, with_label: bool
) -> tuple[_Decoding, list[SourceFile], PictureFile]:
    """How a job's prediction of a frame is read, its camera image and label if wanted, and itself.

    Raises:
        NotFound: There is no such frame or job, the job did not predict the frame, or a file is
            gone.
    """
    record = recorded_job(workspace.records, job)
    files = [*both_files(workspace, fkey)] if with_label else [image_file(workspace, fkey)]
    given = GivenPredictions.of(record)
    if given is not None:
        return given.classes(workspace), files, given.file(workspace, fkey)
    if (small := SmallPredictions.of(record)) is not None:
        return small.classes(), files, small.file(fkey)
    if record.kind != "predict" or record.state != "done":
        raise NotFound("prediction", job, f"the job is of kind {record.kind}, and {record.state}")
    prediction = _of_job(record, fkey)
    if prediction is None:
        raise NotFound("prediction", fkey, f"job {record.name} made none of this frame")
    source = files[0].source
    results = Source(
        name=record.name, uri=str(JobPaths(Path(record.paths["folder"])).results),
        platform=source.platform, cluster=source.cluster, datasource=source.datasource,
        site=source.site, class_list=source.class_list, options={},
    )  # fmt: skip
    file = open_file(workspace, results, prediction.picture)
    return _Made(record), files, file


def _made_differences(
    decoding: _Decoding,
    files: Sequence[SourceFile],
    prediction: PictureFile,
    look: Look,
    classes: str | None = None,
    taken_for: str | None = None,
) -> MadeImage:
    """The camera image, with the pixels marked that a model took for another class than the label.

    Args:
        decoding: Of the prediction, whose model may have merged classes.
        files: The image and the label.
        prediction: The prediction.
        classes: Only where the label has one of these, tags or names with commas between.
        taken_for: Only where the model has one of these, likewise.
    """
    source = files[0].source
    class_list = ClassList.from_json(source.class_list)
    class_of_label = decoding.class_of_label(class_list, source.name)
    only, taken = class_ids_of(class_list, classes), class_ids_of(class_list, taken_for)
    if taken is not None:
        taken = _in_model(taken, class_of_label)
    keys = [file.entry.key for file in (*files, prediction)]

    def draw(image_content: bytes, label_png: bytes, prediction_png: bytes) -> bytes:
        truth = decoded_ids(label_png, keys[1], class_list, files[1].segments)
        predicted = decoding.ids(prediction_png, keys[2])
        image = decoded_image(image_content, keys[0])
        return draw_differences(
            image, truth, predicted, class_of_label, only, look, keys[2], taken,
            is_small=decoding.is_small,
        )  # fmt: skip

    what = repr(("differences", class_of_label, only, taken, class_list, decoding.what))
    return MadeImage(what, (*files, prediction), look, draw)


def _in_model(classes: tuple[int, ...], class_of_label: Sequence[int | None]) -> tuple[int, ...]:
    """The model's class ids of some classes of labels, without those that it ignores."""
    return tuple(sorted({of for c in classes if (of := class_of_label[c]) is not None}))


def _model_of(job: Job) -> str:
    settings = job.request.get("settings") or {}
    return str(settings.get("model_name") or Path(str(settings.get("model", ""))).name)


def _of_job(job: Job, fkey: str) -> Prediction | None:
    """A job's prediction of a frame; None where it has none, or its scores are gone."""
    row = _scored_in(job, [fkey], ["fkey", "picture", "uncertainty", "margin"]).get(fkey)
    if row is None:
        return None
    return Prediction(job.name, _model_of(job), row["picture"], row["uncertainty"], row["margin"])


def _scored_in(job: Job, fkeys: Collection[str], columns: list[str]) -> dict[str, dict[str, Any]]:
    """What a prediction job's scores say of some frames, by fkey; empty where they are gone."""
    path = JobPaths(Path(job.paths["folder"])).report / "frame_scores.parquet"
    try:
        rows = pq.read_table(path, columns=columns, filters=[("fkey", "in", [*fkeys])]).to_pylist()
    except (OSError, pa.ArrowException):
        return {}
    return {row["fkey"]: row for row in rows}


def _class_of_label(record: Job, source: str, class_list: ClassList) -> list[int | None]:
    """For each class of the labels the model's; None where the model ignores it."""
    folder = Path(str(record.paths["model_dir"]))
    try:
        onnx = OnnxModel.read(folder)
        about = parsed_json(read_bounded(folder / "model.json", _MOST_BYTES)) if not onnx else {}
        map_ = onnx.class_map if onnx else about.get("class_map")
        if map_ is not None:
            return [
                *ClassMap.from_json(map_).ids_of(class_list.classes, source, class_list.left_out)
            ]
        if onnx:
            class_of = {name: class_id for class_id, name in enumerate(onnx.classes)}
            return [class_of.get(name) for name in class_list.classes]
        labels = DatasetClasses.from_json(about)
    except (OSError, LookupError, TypeError, ValueError, AttributeError, FramesiftError) as error:
        hint = f"its model.json cannot be read, which says what its classes are: {error}"
        raise NotFound("model", _model_of(record), hint) from error
    learned = [tag for n, tag in enumerate(labels.tags) if n not in labels.ignored]
    class_of_tag = {tag: class_id for class_id, tag in enumerate(learned)}
    return [class_of_tag.get(tag) for tag in class_list.tags]
