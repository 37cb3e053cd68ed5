"""Training and validation as jobs: what runs, submitted."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, NotFound
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.datasets.chosen_split import chosen_split
from pipeline.jobs.fan_out import validation_stages
from pipeline.jobs.installed import need_installed
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.submit import JobOrder, Plan, submit
from pipeline.jobs.train_settings import TrainSettings
from pipeline.manifest import Manifest
from pipeline.staging.stage import newest_manifest

_FINISHED_MODEL = ("model.json",)
_CHECKPOINT = ("checkpoint.npz",)


def submit_training(
    records: RecordStore,
    queue: JobQueue,
    dataset: Dataset,
    settings: TrainSettings,
    *,
    name: str | None = None,
    backend_name: str = "local",
) -> Job:
    """Start training on a dataset's split; its record.

    Raises:
        InvalidInput: TensorFlow or Horovod is not installed, a bad name, or a setting is out of
            range.
        UnknownName: The dataset has no such split.
        NotFound: There is no such model to continue from.
        AlreadyExists: A job has that name.
    """
    need_installed("tensorflow", *(["horovod"] if settings.workers > 1 else []))
    _check_settings(settings)
    manifest = newest_manifest(records, dataset)
    whole = Manifest.read(manifest)
    split = chosen_split(whole, settings.split, "train")
    whole.split(split).need_labels()
    parent = None
    if settings.continue_from is not None:
        parent = _model_dir(records, settings.continue_from, (*_FINISHED_MODEL, *_CHECKPOINT))

    def plan(paths: JobPaths) -> Plan:
        paths_shown = {"model_dir": str(paths.model), "manifest": str(manifest)}
        if parent is not None:
            paths_shown["continued_from"] = str(parent)
        stage = _training_stage(manifest, split, parent, paths, settings)
        return Plan((stage,), paths_shown, settings={**asdict(settings), "split": split})

    return submit(
        records,
        queue,
        JobOrder("train", f"train-{dataset.name}", name, dataset, backend_name, settings.workers),
        plan,
    )


def _training_stage(
    manifest: Path, split: str, parent: Path | None, paths: JobPaths, settings: TrainSettings
) -> Stage:
    command = [*_training_program(), "--manifest", str(manifest), "--model_dir", str(paths.model)]
    command += ["--exec_mode", "train", "--split", split]
    command += ["--batch_size", str(settings.batch_size)]
    command += ["--seed", str(settings.seed), "--num_workers", str(settings.workers)]
    for flag in ("max_steps", "epochs", "learning_rate", "height", "width"):
        value = getattr(settings, flag)
        if value is not None:
            command += [f"--{flag}", str(value)]
    if parent is not None:
        command += ["--continue_from", str(parent)]
    return Stage("train", (tuple(_horovod(settings.workers) + command),))


def submit_validation(
    records: RecordStore,
    queue: JobQueue,
    model: str,
    dataset: Dataset,
    *,
    workers: int = 2,
    split: str | None = None,
    trust_model: bool = False,
    name: str | None = None,
    backend_name: str = "local",
) -> Job:
    """Start validating a model on a dataset's split, fanned out over workers; its record.

    Args:
        records: The records.
        queue: The home's jobs.
        model: Name of a training job, or a model folder.
        dataset: What to validate on.
        workers: Shards, each a process of its own.
        split: Split to validate on; None for "validation", or for all frames of a dataset that is
            not divided.
        trust_model: Whether a foreign model may run what its author put into it.
        name: The job's name; made up when None.
        backend_name: Where it runs.

    Raises:
        InvalidInput: TensorFlow is not installed, the model is not trained, a bad name, or
            workers < 1 or more than there can be.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split.
        AlreadyExists: A job has that name.
    """
    need_installed("tensorflow")
    if workers < 1:
        raise InvalidInput(f"workers {workers}: expected at least 1")
    model_dir = _model_dir(records, model, _FINISHED_MODEL)
    manifest = newest_manifest(records, dataset)
    whole = Manifest.read(manifest)
    split = chosen_split(whole, split, "validation")
    whole.split(split).need_labels()
    evaluate = [*_training_program(), "--manifest", str(manifest), "--model_dir", str(model_dir)]
    if trust_model:
        evaluate += ["--trust_model"]
    # One thread each, so that scores do not depend on the number of shards to the last digit.
    evaluate += ["--exec_mode", "evaluate", "--split", split, "--threads", "1", "--results_dir"]

    settings: dict[str, Any] = {"model": model, "workers": workers, "split": split}
    if trust_model:
        settings["trust_model"] = True

    def plan(paths: JobPaths) -> Plan:
        paths_shown = {
            "model_dir": str(model_dir),
            "manifest": str(manifest),
            "report": str(paths.report / "report.json"),
            "page": str(paths.report / "report.html"),
            "confusion_matrix": str(paths.report / "confusion_matrix.png"),
        }
        stages = validation_stages([*evaluate, str(paths.results)], paths, workers)
        return Plan(stages, paths_shown, workers, settings=settings)

    return submit(
        records,
        queue,
        JobOrder("validate", f"validate-{dataset.name}", name, dataset, backend_name, workers),
        plan,
    )


def _model_dir(records: RecordStore, model: str, files: Sequence[str]) -> Path:
    """The folder of a training job's model, or the folder named, that holds one of the files."""
    try:
        job = recorded_job(records, model)
        if job.kind != "train":
            raise InvalidInput(f"model {model}: is a job of kind {job.kind}, not train")
        path = Path(job.paths["model_dir"])
    except NotFound as error:
        path = Path(model)
        if not path.is_dir():
            raise NotFound(
                "model", model, "expected the name of a training job or a model folder"
            ) from error
    if not any((path / name).is_file() for name in files):
        lacks = (
            f"{files[0]} is missing" if len(files) == 1 else f"{' and '.join(files)} are missing"
        )
        raise InvalidInput(f"model {model}: {path} holds no trained model ({lacks})")
    return path.resolve()


def _training_program() -> list[str]:
    # -P: a folder "training" where the user happens to stand is not ours.
    return [sys.executable, "-P", "-m", "training.main"]


def _horovod(workers: int) -> list[str]:
    if workers == 1:
        return []
    launcher = [sys.executable, "-P", "-m", "training.local_ranks"]
    return [*launcher, "-np", str(workers), "-H", f"localhost:{workers}", "--gloo"]


def _check_settings(settings: TrainSettings) -> None:
    if settings.max_steps is not None and settings.epochs is not None:
        raise InvalidInput(
            f"max steps {settings.max_steps} and epochs {settings.epochs}: give one of them"
        )
    lengths = [count for count in (settings.max_steps, settings.epochs) if count is not None]
    if min(settings.workers, settings.batch_size, *lengths) < 1:
        raise InvalidInput("workers, batch size, steps and epochs must each be at least 1")
    if settings.seed < 0:
        raise InvalidInput(f"seed {settings.seed}: expected 0 or more")
    for flag in ("learning_rate", "height", "width"):
        value = getattr(settings, flag)
        if value is not None and not value > 0:
            raise InvalidInput(f"{flag.replace('_', ' ')} {value:g}: expected a number above 0")
