"""The model that an improvement is for: of a training job, or one whose predictions were scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.services.jobs.validated_with import dataset_of, validated_with
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.records.datasets import complete_dataset, recorded_datasets
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Dataset, Job
from pipeline.datasets.chosen_split import chosen_split
from pipeline.datasets.improve import HeldOutSplit
from pipeline.jobs.follow import refresh
from pipeline.manifest_store import read_manifest
from pipeline.runs.checkpoint_steps import named_checkpoint

_EXPECTED = (
    "expected the name of a training job, which framesift models list shows, or the --model-name "
    "of scored predictions"
)


@dataclass(frozen=True)
class ImprovedModel:
    """A model whose training data are known, and what it was validated with."""

    name: str
    """Its name, by which its imported scores are found."""
    dataset: Dataset
    """What it was trained on."""
    split: str
    """Of that."""
    validations: Sequence[Job]
    """Those that are done, newest first; one at least."""
    held_splits: list[HeldOutSplit]
    """Splits that it was, or will be, validated with."""


def improved_model(workspace: Workspace, name: str) -> ImprovedModel:
    """The model of that name: a training job's, else that of scored predictions.

    Raises:
        InvalidInput: It names a checkpoint, has no finished validation, or nobody said what it was
            trained on.
        NotFound: There is no such model, or its dataset is gone.
    """
    training, step = named_checkpoint(name)
    if step is not None:
        raise InvalidInput(
            f"model {name}: expected a training job without @STEP, for what it was trained on and "
            f"validated with counts, not its weights; give {training}"
        )
    try:
        job = recorded_job(workspace.records, name)
    except NotFound as error:
        what = "a folder has neither dataset nor validations; " if Path(name).is_dir() else ""
        unknown = NotFound("model", name, what + _EXPECTED)
        unknown.__cause__ = error
    else:
        if job.kind == "train":
            return _of_training(workspace, refresh(workspace.records, job))
        unknown = NotFound("model", name, f"job {name} is of kind {job.kind}; {_EXPECTED}")
    of_predictions = _of_predictions(workspace, name)
    if of_predictions is None:
        raise unknown
    return of_predictions


def _of_training(workspace: Workspace, job: Job) -> ImprovedModel:
    if job.state != "done":
        raise NotFound("model", job.name, f"job {job.name} is of kind {job.kind}, and {job.state}")
    records = workspace.records
    dataset = dataset_of({one.id: one for one in recorded_datasets(records)}, job)
    folder = Path(job.paths["model_dir"]).resolve()
    validations = [
        one
        for one in recorded_jobs(records, kind="validate")
        if Path(one.paths.get("model_dir", "")).resolve() == folder
    ]
    return ImprovedModel(
        job.name,
        dataset,
        str(job.request["settings"]["split"]),
        _finished(workspace, validations, job.name, f"framesift validate {job.name} DATASET"),
        validated_with(workspace, job),
    )


def _of_predictions(workspace: Workspace, name: str) -> ImprovedModel | None:
    """The model whose predictions validations scored; None where none did."""
    records = workspace.records
    jobs = [
        job
        for job in recorded_jobs(records, kind="validate")
        if _settings(job).get("model_name") == name
    ]
    if not jobs:
        return None
    command = f"framesift validate DATASET --predictions DIR --model-name {name} --trained-on DATA"
    trained_on = next(filter(None, (_settings(job).get("trained_on") for job in jobs)), None)
    if trained_on is None:
        raise InvalidInput(
            f"model {name}: no validation says what it was trained on, which an improvement adds "
            f"to; say it: {command}"
        )
    dataset = complete_dataset(records, trained_on)
    datasets = {one.id: one for one in recorded_datasets(records)}
    held_out = {
        (job.dataset_id, split): HeldOutSplit(dataset_of(datasets, job), split)
        for job in jobs
        if job.dataset_id is not None and (split := _settings(job).get("split"))
    }
    split = chosen_split(read_manifest(records, dataset), None, "train")
    finished = _finished(workspace, jobs, name, command)
    return ImprovedModel(name, dataset, split, finished, [*held_out.values()])


def _finished(workspace: Workspace, jobs: Sequence[Job], name: str, command: str) -> list[Job]:
    """Those of a model's validations that are done.

    Raises:
        InvalidInput: There is none.
    """
    now = [refresh(workspace.records, job) for job in jobs]
    done = [job for job in now if job.state == "done" and "split" in _settings(job)]
    if not done:
        raise InvalidInput(
            f"model {name} has no finished validation, which would say where it is weak; make one: "
            f"{command}"
        )
    return done


def _settings(job: Job) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = job.request.get("settings", {})
    return settings
