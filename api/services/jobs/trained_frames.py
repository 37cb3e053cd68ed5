"""The frames that a model was trained on, and the version of a dataset that is meant beside it.

NAME without a version means the newest one, whichever it was made of: after a dataset is divided
again, the newest version's validation split holds frames that a model of an earlier one was trained
on. So beside a model it means the version that the model was trained on.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from api.services.jobs.validated_with import parents_of
from api.workspace import Workspace
from catalog.errors import BadFile, NotFound, StorageError, UnknownName
from catalog.records.datasets import complete_dataset, datasets_by_id, recorded_datasets
from catalog.records.jobs import recorded_job, recorded_jobs
from catalog.records.tables import Dataset, Job
from pipeline.datasets.chosen_split import chosen_split
from pipeline.manifest_store import read_manifest
from pipeline.runs.checkpoint_steps import named_checkpoint


def version_for(workspace: Workspace, model: str, dataset: str, split: str | None) -> str:
    """A dataset's NAME as NAME@VERSION, of the version that a model was trained on.

    Of the trainings that the model continued from the nearest counts that was on a version of it.

    Args:
        workspace: The home.
        model: As a job takes it.
        dataset: What is asked for.
        split: Which split of it; the version must have it.

    Returns:
        ``dataset`` as it is where it says a version, or where there is no such version.
    """
    for version in _trained_versions(workspace, model):
        if version.name == dataset and (split is None or split in version.splits):
            return f"{version.name}@{version.version}"
    return dataset


def notes_on(
    workspace: Workspace, model: str, dataset: str, split: str | None, *, scores: bool
) -> list[str]:
    """Statements about a model and a dataset that users should know before the two meet.

    Args:
        workspace: The home.
        model: As a job takes it.
        dataset: What is asked for.
        split: Which split of it; the usual one when None.
        scores: Whether the model is scored on it.
    """
    chosen = version_for(workspace, model, dataset, split)
    notes = []
    if chosen != dataset:
        newest = recorded_datasets(workspace.records, dataset)[-1]
        if chosen != f"{newest.name}@{newest.version}":
            notes.append(
                f"{dataset} is {chosen} here, which model {model} was trained on; the newest is "
                f"{newest.name}@{newest.version}: name that one to take it"
            )
    if scores:
        notes += _remembered(workspace, model, chosen, split)
    return notes


def _remembered(workspace: Workspace, model: str, dataset: str, split: str | None) -> list[str]:
    """What is to be said where a model was trained on frames of a split."""
    manifest = read_manifest(workspace.records, complete_dataset(workspace.records, dataset))
    name = chosen_split(manifest, split, "validation")
    split_fkeys = manifest.split(name).frames["fkey"]
    known = pa.array([False] * len(split_fkeys))
    for fkeys in _trained_fkeys(workspace, model):
        known = pc.or_(known, pc.is_in(split_fkeys, value_set=fkeys).combine_chunks())
    count = pc.sum(known).as_py() or 0
    if not count:
        return []
    which = "all" if count == len(split_fkeys) else f"{count:,} of the"
    note = (
        f"model {model} was trained on {which} {len(split_fkeys):,} frames of {dataset}, split "
        f"{name}: the scores will say how well it remembers, and not how well it will do on other "
        "frames"
    )
    return [note]


def _trained_fkeys(workspace: Workspace, model: str) -> list[pa.ChunkedArray]:
    """Names of the frames of each training of a model, as far as their datasets are there."""
    records = workspace.records
    line = _line(workspace, model)
    datasets = datasets_by_id(records, [job.dataset_id for job in line])
    trained = []
    for job in line:
        if job.dataset_id not in datasets:
            continue
        try:
            manifest = read_manifest(records, datasets[job.dataset_id])
            named = job.request.get("settings", {}).get("split")
            split = manifest.split(chosen_split(manifest, named, "train"))
        except (BadFile, NotFound, StorageError, UnknownName):
            continue  # the validation's own report knows the frames by name
        trained.append(split.frames["fkey"])
    return trained


def _trained_versions(workspace: Workspace, model: str) -> list[Dataset]:
    """What a model and those that it continued from were trained on, the nearest first."""
    line = _line(workspace, model)
    datasets = datasets_by_id(workspace.records, [job.dataset_id for job in line])
    versions = (datasets.get(job.dataset_id or 0) for job in line)
    return [one for one in versions if one is not None and one.removed is None]


def _line(workspace: Workspace, model: str) -> list[Job]:
    """The training of a model, and those that it continued from; none of a foreign model."""
    records = workspace.records
    name, _ = named_checkpoint(model)
    trainings = recorded_jobs(records, kind="train")
    try:
        training: Job | None = recorded_job(records, name)
    except NotFound:
        folder = Path(name).resolve()
        training = next((job for job in trainings if _model_dir(job) == folder), None)
    if training is None or training.kind != "train":
        return []
    return [training, *parents_of(trainings, training)]


def _model_dir(job: Job) -> Path | None:
    return Path(job.paths["model_dir"]).resolve() if "model_dir" in job.paths else None
