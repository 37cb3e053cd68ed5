"""The datasets that a model and its parents were validated with: data to hold apart."""

from collections.abc import Iterator
from pathlib import Path

from api.workspace import Workspace
from catalog.errors import NotFound
from catalog.records.datasets import recorded_datasets
from catalog.records.jobs import recorded_jobs
from catalog.records.tables import Dataset, Job
from pipeline.datasets.chosen_split import chosen_split
from pipeline.datasets.improve import HeldOutSplit
from pipeline.manifest_store import read_manifest
from pipeline.runs.checkpoint_steps import named_checkpoint


def validated_with(workspace: Workspace, training: Job) -> list[HeldOutSplit]:
    """The splits that validations of a model read, or will read, each once.

    Those of its checkpoints count, those in which it was only compared with, those of the models
    that it continued from, and those that have not ended or that failed: somebody looked at what
    they scored, or is going to. So does the split that a training scores on the way.

    Raises:
        NotFound: The dataset of one is gone.
        UnknownName: A dataset has no such split.
        BadFile: A manifest is damaged.
    """
    records = workspace.records
    datasets = {dataset.id: dataset for dataset in recorded_datasets(records)}
    line = [training, *parents_of(recorded_jobs(records, kind="train"), training)]
    names = {job.name for job in line}
    folders = {
        Path(job.paths[key]).resolve()
        for job in line
        for key in ("model_dir", "continued_from")
        if key in job.paths
    }
    splits: dict[tuple[int, str], HeldOutSplit] = {}
    for job in line:
        settings = job.request.get("settings", {})
        if settings.get("evaluate_every"):
            dataset = dataset_of(datasets, job)
            split = settings.get("evaluate_split") or "validation"
            splits.setdefault((dataset.id, split), HeldOutSplit(dataset, split))
    for job in recorded_jobs(records, kind="validate"):
        # A job that is still to choose its frames has no dataset.
        if job.dataset_id is None or not _is_of(job, names, folders):
            continue
        dataset = dataset_of(datasets, job)
        named = job.request.get("settings", {}).get("split")
        split = named or chosen_split(read_manifest(records, dataset), None, "validation")
        splits.setdefault((dataset.id, split), HeldOutSplit(dataset, split))
    return list(splits.values())


def dataset_of(datasets: dict[int, Dataset], job: Job) -> Dataset:
    """The dataset of a job, by its number.

    Raises:
        NotFound: It is gone.
    """
    if job.dataset_id is None or job.dataset_id not in datasets:
        raise NotFound("dataset", str(job.dataset), f"job {job.name} was made with it")
    return datasets[job.dataset_id]


def parents_of(trainings: list[Job], training: Job) -> Iterator[Job]:
    """The trainings that a training continued from, the nearest first."""
    of_folder = {
        Path(job.paths["model_dir"]).resolve(): job
        for job in trainings
        if "model_dir" in job.paths  # one that is still to choose its frames has none
    }
    parent: Job | None = training
    while parent is not None and (folder := parent.paths.get("continued_from")):
        parent = of_folder.pop(Path(folder).resolve(), None)
        if parent is not None:
            yield parent


def _is_of(validation: Job, names: set[str], folders: set[Path]) -> bool:
    """Return whether a validation's model, or the one compared with, is one of these."""
    settings, paths = validation.request.get("settings", {}), validation.paths
    models = [named_checkpoint(settings.get(key) or "")[0] for key in ("model", "compare")]
    read = [paths.get(key) for key in ("model_dir", "compared_model_dir")]
    return bool(names & {*models}) or any(
        Path(path).resolve() in folders for path in (*models, *read) if path
    )
