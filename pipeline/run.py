"""Training and validation as jobs: build the request, submit, record, follow."""

import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, JobFailed, NotFound, UnknownName
from catalog.record_store import RecordStore
from catalog.tables import Dataset, Job, now
from pipeline.chosen_split import chosen_split
from pipeline.command_job import command_metrics
from pipeline.fan_out import validation_stages
from pipeline.installed import need_installed
from pipeline.jobs.registry import backend
from pipeline.jobs.request import JobPaths, Stage, read_json
from pipeline.jobs.state import FINISHED, UNFINISHED
from pipeline.manifest import Manifest
from pipeline.stage import newest_manifest
from pipeline.submit import Plan, Wanted, submit
from pipeline.train_settings import TrainSettings

_POLL_S = 0.3
_FINISHED_MODEL = ("model.json",)
_CHECKPOINT = ("checkpoint.npz",)
_SUBMITTING = timedelta(seconds=60)
"""For how long a record without a handle is taken for a job that is being submitted just now."""


def submit_training(
    records: RecordStore,
    jobs_folder: Path,
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
        shown = {"model_dir": str(paths.model), "manifest": str(manifest)}
        if parent is not None:
            shown["continued_from"] = str(parent)
        return Plan((_training_stage(manifest, split, parent, paths, settings),), shown)

    return submit(
        records,
        jobs_folder,
        Wanted("train", f"train-{dataset.name}", name, dataset, backend_name),
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
    jobs_folder: Path,
    model: str,
    dataset: Dataset,
    *,
    workers: int = 2,
    split: str | None = None,
    name: str | None = None,
    backend_name: str = "local",
) -> Job:
    """Start validating a model on a dataset's split, fanned out over workers; its record.

    Args:
        records: The records.
        jobs_folder: Where jobs' folders lie.
        model: Name of a training job, or a model folder.
        dataset: What to validate on.
        workers: Shards, each a process of its own.
        split: Split to validate on; None for "validation", or for all frames of a dataset that is
            not divided.
        name: The job's name; made up when None.
        backend_name: Where it runs.

    Raises:
        InvalidInput: TensorFlow is not installed, the model is not trained, a bad name, or
            workers < 1.
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
    # One thread each, so that scores do not depend on the number of shards to the last digit.
    evaluate += ["--exec_mode", "evaluate", "--split", split, "--threads", "1", "--results_dir"]

    def plan(paths: JobPaths) -> Plan:
        shown = {
            "model_dir": str(model_dir),
            "manifest": str(manifest),
            "report": str(paths.report / "report.json"),
            "page": str(paths.report / "report.html"),
            "confusion_matrix": str(paths.report / "confusion_matrix.png"),
        }
        stages = validation_stages([*evaluate, str(paths.results)], paths, workers)
        return Plan(stages, shown, workers)

    return submit(
        records,
        jobs_folder,
        Wanted("validate", f"validate-{dataset.name}", name, dataset, backend_name),
        plan,
    )


def refresh(records: RecordStore, job: Job) -> Job:
    """The job's record, brought to what its backend and its metrics say now."""
    if job.state in FINISHED or _is_being_submitted(job):
        return job
    paths = JobPaths(Path(job.paths["folder"]))
    status = backend(job.backend).status(job.handle, paths)
    job = records.job(job.name)  # the caller's may be old
    metrics = _metrics(job.kind, paths) or job.metrics
    seen = (status.state, status.error, status.started, status.finished, metrics)
    if seen == (job.state, job.error, job.started, job.finished, job.metrics):
        return job  # whoever follows a job asks often, and a transaction that writes waits
    with records.session() as session:
        kept = session.get_one(Job, job.id)
        if kept.state in FINISHED:
            return kept  # somebody looked later than we did, and was faster
        kept.state, kept.error = status.state, status.error
        kept.started, kept.finished = status.started, status.finished
        if status.state in FINISHED and kept.finished is None:
            kept.finished = now()
        kept.metrics = metrics
        return kept


def refresh_all(records: RecordStore) -> None:
    """Bring the record of every job that has not ended to what its backend says now.

    One whose backend this version does not know stays as it is.
    """
    for job in records.jobs(states=UNFINISHED):
        with suppress(UnknownName):
            refresh(records, job)


def wait(records: RecordStore, job: Job, progress: Callable[[Job], None] | None = None) -> Job:
    """Follow a job to its end.

    Raises:
        JobFailed: It failed or was cancelled; the message says why.
    """
    while True:
        job = refresh(records, job)
        if progress is not None:
            progress(job)
        if job.state in FINISHED:
            break
        time.sleep(_POLL_S)
    if job.state != "done":
        raise JobFailed(job.name, f"job {job.name} {job.state}: {job.error}")
    return job


def cancel(records: RecordStore, job: Job) -> Job:
    """Ask the job to end; its record, which shows it once it has."""
    job = refresh(records, job)
    if job.state not in FINISHED:
        backend(job.backend).cancel(job.handle, JobPaths(Path(job.paths["folder"])))
    return job


def _metrics(kind: str, paths: JobPaths) -> dict[str, Any]:
    if kind == "train":
        return read_json(paths.model / "metrics.json")
    if kind == "validate":
        return read_json(paths.report / "metrics.json")
    return command_metrics(paths)


def _is_being_submitted(job: Job) -> bool:
    return not job.handle and now() - job.created < _SUBMITTING


def _model_dir(records: RecordStore, model: str, files: Sequence[str]) -> Path:
    """The folder of a training job's model, or the folder named, that holds one of the files."""
    try:
        job = records.job(model)
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
    launcher = Path(sysconfig.get_path("scripts")) / "horovodrun"
    return [str(launcher), "-np", str(workers), "-H", f"localhost:{workers}", "--gloo"]


def _check_settings(settings: TrainSettings) -> None:
    if settings.max_steps is not None and settings.epochs is not None:
        raise InvalidInput(
            f"max steps {settings.max_steps} and epochs {settings.epochs}: give one of them"
        )
    given = [count for count in (settings.max_steps, settings.epochs) if count is not None]
    if min(settings.workers, settings.batch_size, *given) < 1:
        raise InvalidInput("workers, batch size, steps and epochs must each be at least 1")
    if settings.seed < 0:
        raise InvalidInput(f"seed {settings.seed}: expected 0 or more")
    for flag in ("learning_rate", "height", "width"):
        value = getattr(settings, flag)
        if value is not None and not value > 0:
            raise InvalidInput(f"{flag.replace('_', ' ')} {value:g}: expected a number above 0")
