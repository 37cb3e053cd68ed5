"""A validation's scores: of a job, of a model's newest validation, or of a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, TypeAdapter

from api.workspace import Workspace
from catalog.errors import BadFile, InvalidInput, NotFound, StorageError
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Job
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.jobs.follow import refresh
from query.question.wrong_value import validation_message

_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Scores:
    """Scores of a validation."""

    name: str
    """The validation job, or the file."""
    iou: Mapping[str, float | None]
    """IoU of each class, 0 to 1, by tag or class name; None where it was not scored."""
    model_dir: str
    """The model's folder; empty where it is not known."""


_Iou = Annotated[float, Field(ge=0, le=1)]


class _ClassEntry(BaseModel):
    """The fields of an entry of a report's per_class; training/validation/report.py writes them."""

    tag: str
    iou: _Iou | None


class _Report(BaseModel):
    """The fields that are read of a validation's report.json."""

    class Model(BaseModel):
        """The model that was validated."""

        dir: str = ""

    per_class: list[_ClassEntry]
    model: Model = Model()


_PLAIN_SCORES = TypeAdapter(dict[str, _Iou | None])


def validation_scores(workspace: Workspace, validation: str, files: bool) -> Scores:
    """The scores of a validation.

    Args:
        validation: A validation job, or a training job: its newest finished validation.
        files: Whether it may be the path of a report.json, or of a JSON object of class -> IoU.

    Raises:
        NotFound: There is no such validation.
        InvalidInput: It has no report.
    """
    records = workspace.records
    try:
        job = refresh(records, recorded_job(records, validation))
    except NotFound as error:
        path = Path(validation)
        if files and path.is_file():
            return _read_scores(path, validation)
        raise NotFound(
            "validation",
            validation,
            "expected a validation job, or a training job that has been validated"
            + (", or a report.json" if files else ""),
        ) from error
    if job.kind == "train":
        job = _newest_validation(workspace, job)
    if job.state != "done":
        raise InvalidInput(
            f"validation {job.name} is {job.state}, so that it has no report; "
            f"framesift jobs show {job.name} says more"
        )
    return _read_scores(Path(job.paths["report"]), job.name)


def _newest_validation(workspace: Workspace, training: Job) -> Job:
    for job in recorded_jobs(workspace.records):
        if job.kind == "validate" and _same_folder(job, training.paths["model_dir"]):
            current = refresh(workspace.records, job)
            if current.state == "done":
                return current
    raise InvalidInput(
        f"model {training.name} has no finished validation; "
        f"make one: framesift validate {training.name} DATASET"
    )


def trained_on(workspace: Workspace, model_dir: str) -> tuple[str | None, str | None]:
    """Dataset and split that the model in a folder was trained on; None where nobody knows."""
    for job in recorded_jobs(workspace.records):
        if model_dir and job.kind == "train" and _same_folder(job, model_dir):
            for dataset in recorded_datasets(workspace.records):
                if dataset.id == job.dataset_id:
                    return f"{dataset.name}@{dataset.version}", _split_of(job)
    return None, None


def _split_of(training: Job) -> str | None:
    """The split in the command that the job runs."""
    for stage in training.request.get("stages", ()):
        for command in stage["commands"]:
            for flag, value in pairwise(command):
                if flag == "--split":
                    return str(value)
    return None


def _same_folder(job: Job, model_dir: str) -> bool:
    return Path(job.paths.get("model_dir", "")).resolve() == Path(model_dir).resolve()


def _read_scores(path: Path, name: str) -> Scores:
    """The scores in a report.json, or in a JSON object of class -> IoU."""
    try:
        content = read_bounded(path, _MOST_BYTES)
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}", str(path)) from error
    try:
        data = parsed_json(content)
        if isinstance(data, dict) and "per_class" in data:
            report = _Report.model_validate(data)
            iou = {entry.tag: entry.iou for entry in report.per_class}
            return Scores(name, iou, report.model.dir)
        return Scores(name, _PLAIN_SCORES.validate_python(data), "")
    except UnicodeDecodeError as error:
        raise BadFile("is no text; expected a validation's report.json", str(path)) from error
    except ValueError as error:
        raise BadFile(
            f"{validation_message(error)}; expected a validation's report.json, or a JSON object "
            "of class and IoU (0 to 1, or null)",
            str(path),
        ) from error
