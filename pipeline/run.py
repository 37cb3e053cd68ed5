"""Training and validation as jobs: build the request, submit, record, follow."""

import re
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, JobFailed, NotFound, StorageError
from catalog.record_store import RecordStore
from catalog.tables import Dataset, Job, now
from pipeline.fan_out import validation_stages
from pipeline.jobs.registry import backend
from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json
from pipeline.jobs.state import FINISHED
from pipeline.manifest import Manifest
from pipeline.stage import newest_manifest

_POLL_S = 0.3
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_SUBMITTING = timedelta(seconds=60)
"""For how long a record without a handle is taken for a job that is being submitted just now."""


@dataclass(frozen=True)
class TrainSettings:
    """How to train.

    Attributes:
        workers: Horovod processes.
        batch_size: Frames per worker and step.
        max_steps: Steps.
        learning_rate: Learning rate of one worker; the program's own default when None.
        height: Network input height [pixels]; the program's own default when None.
        width: Network input width [pixels]; the program's own default when None.
        seed: Seed of weights and order.
        split: Split to train on.
    """

    workers: int = 2
    batch_size: int = 4
    max_steps: int = 300
    learning_rate: float | None = None
    height: int | None = None
    width: int | None = None
    seed: int = 0
    split: str = "train"


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
        AlreadyExists: A job has that name.
    """
    _need("tensorflow", *(["horovod"] if settings.workers > 1 else []))
    _check_settings(settings)
    manifest = newest_manifest(records, dataset)
    Manifest.read(manifest).split(settings.split)

    def plan(paths: JobPaths) -> _Plan:
        shown = {"model_dir": str(paths.model), "manifest": str(manifest)}
        return _Plan((_training_stage(manifest, paths, settings),), shown)

    return _submit(records, jobs_folder, "train", name, dataset, plan, backend_name)


def _training_stage(manifest: Path, paths: JobPaths, settings: TrainSettings) -> Stage:
    command = [*_training_program(), "--manifest", str(manifest), "--model_dir", str(paths.model)]
    command += ["--exec_mode", "train", "--split", settings.split, "--threads", "1"]
    command += ["--batch_size", str(settings.batch_size), "--max_steps", str(settings.max_steps)]
    command += ["--seed", str(settings.seed), "--num_workers", str(settings.workers)]
    for flag in ("learning_rate", "height", "width"):
        value = getattr(settings, flag)
        if value is not None:
            command += [f"--{flag}", str(value)]
    return Stage("train", (tuple(_horovod(settings.workers) + command),))


def submit_validation(
    records: RecordStore,
    jobs_folder: Path,
    model: str,
    dataset: Dataset,
    *,
    workers: int = 2,
    batch_size: int = 4,
    split: str = "validation",
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
        batch_size: Frames at once.
        split: Split to validate on.
        name: The job's name; made up when None.
        backend_name: Where it runs.

    Raises:
        InvalidInput: TensorFlow is not installed, the model is not trained, a bad name, or
            workers < 1.
        NotFound: There is no such model.
        UnknownName: The dataset has no such split.
        AlreadyExists: A job has that name.
    """
    _need("tensorflow")
    if workers < 1 or batch_size < 1:
        raise InvalidInput("workers and batch size must each be at least 1")
    model_dir = _model_dir(records, model)
    manifest = newest_manifest(records, dataset)
    Manifest.read(manifest).split(split)
    evaluate = [*_training_program(), "--manifest", str(manifest), "--model_dir", str(model_dir)]
    evaluate += ["--exec_mode", "evaluate", "--split", split, "--batch_size", str(batch_size)]
    evaluate += ["--threads", "1", "--results_dir"]

    def plan(paths: JobPaths) -> _Plan:
        shown = {
            "model_dir": str(model_dir),
            "manifest": str(manifest),
            "report": str(paths.report / "report.json"),
            "page": str(paths.report / "report.html"),
            "confusion_matrix": str(paths.report / "confusion_matrix.png"),
        }
        stages = validation_stages([*evaluate, str(paths.results)], paths, workers)
        return _Plan(stages, shown, workers)

    return _submit(records, jobs_folder, "validate", name, dataset, plan, backend_name)


def refresh(records: RecordStore, job: Job) -> Job:
    """The job's record, brought to what its backend and its metrics say now."""
    if job.state in FINISHED or _is_being_submitted(job):
        return job
    paths = JobPaths(Path(job.paths["folder"]))
    status = backend(job.backend).status(job.handle, paths)
    with records.session() as session:
        kept = session.get_one(Job, job.id)
        if kept.state in FINISHED:
            return kept  # somebody looked later than we did, and was faster
        kept.state, kept.error = status.state, status.error
        kept.started, kept.finished = status.started, status.finished
        if status.state in FINISHED and kept.finished is None:
            kept.finished = now()
        kept.metrics = _metrics(job.kind, paths) or kept.metrics
        return kept


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


@dataclass(frozen=True)
class _Plan:
    """What a job is, once its folder is known."""

    stages: tuple[Stage, ...]
    shown: dict[str, str]
    parallel: int = 1


def _submit(
    records: RecordStore,
    jobs_folder: Path,
    kind: str,
    wanted_name: str | None,
    dataset: Dataset,
    plan: Callable[[JobPaths], _Plan],
    backend_name: str,
) -> Job:
    chosen = backend(backend_name)
    # Name and record in one transaction: two submissions at once get two names.
    with records.session() as session:
        name = _free_name(session, jobs_folder, wanted_name, f"{kind}-{dataset.name}")
        paths = JobPaths(jobs_folder / name)
        made = plan(paths)
        request = JobRequest(name, kind, made.stages, _QUIET, made.parallel)
        job = Job(
            name=name,
            kind=kind,
            backend=backend_name,
            state="pending",
            dataset_id=dataset.id,
            request=request.to_json(),
            paths={"folder": str(paths.folder), "logs": str(paths.logs), **made.shown},
        )
        session.add(job)
    try:
        paths.folder.mkdir(parents=True, exist_ok=True)
        handle = chosen.submit(request, paths)
    except (OSError, StorageError, JobFailed) as error:
        with records.session() as session:
            kept = session.get_one(Job, job.id)
            kept.state, kept.error, kept.finished = "failed", str(error), now()
        if isinstance(error, OSError):
            raise StorageError(f"{paths.folder}: {error.strerror}", str(paths.folder)) from error
        raise
    with records.session() as session:
        kept = session.get_one(Job, job.id)
        kept.handle = handle
        return kept


def _metrics(kind: str, paths: JobPaths) -> dict[str, Any]:
    folder = paths.model if kind == "train" else paths.report
    return read_json(folder / "metrics.json")


def _is_being_submitted(job: Job) -> bool:
    return not job.handle and now() - job.created < _SUBMITTING


def _model_dir(records: RecordStore, model: str) -> Path:
    try:
        path = Path(records.job(model).paths["model_dir"])
    except NotFound as error:
        path = Path(model)
        if not path.is_dir():
            raise NotFound(
                "model", model, "expected the name of a training job or a model folder"
            ) from error
    if not (path / "model.json").is_file():
        raise InvalidInput(f"model {model}: {path} holds no trained model (model.json is missing)")
    return path.resolve()


def _free_name(session: Session, jobs_folder: Path, wanted: str | None, base: str) -> str:
    """The wanted name, or one made up.

    Raises:
        InvalidInput: It cannot name a folder.
        AlreadyExists: A job, or something in the jobs' folder, has it.
    """

    def taken(name: str) -> bool:
        known = session.scalar(select(Job.id).where(Job.name == name)) is not None
        return known or (jobs_folder / name).exists()

    if wanted is None:
        number = (session.scalar(select(func.max(Job.id))) or 0) + 1
        return next(name for n in count(number) if not taken(name := f"{base}-{n}"))
    if not _NAME.fullmatch(wanted):
        raise InvalidInput(
            f"job name '{wanted}': expected letters, digits, '.', '_' and '-', such as train-1"
        )
    if taken(wanted):
        raise AlreadyExists("job", wanted, "give another --name")
    return wanted


def _training_program() -> list[str]:
    # -P: a folder "training" where the user happens to stand is not ours.
    return [sys.executable, "-P", "-m", "training.main"]


def _horovod(workers: int) -> list[str]:
    if workers == 1:
        return []
    launcher = Path(sysconfig.get_path("scripts")) / "horovodrun"
    return [str(launcher), "-np", str(workers), "-H", f"localhost:{workers}", "--gloo"]


def _check_settings(settings: TrainSettings) -> None:
    counts = (settings.workers, settings.batch_size, settings.max_steps)
    if min(counts) < 1:
        raise InvalidInput("workers, batch size and steps must each be at least 1")
    if settings.seed < 0:
        raise InvalidInput(f"seed {settings.seed}: expected 0 or more")
    for flag in ("learning_rate", "height", "width"):
        value = getattr(settings, flag)
        if value is not None and not value > 0:
            raise InvalidInput(f"{flag.replace('_', ' ')} {value:g}: expected a number above 0")


def _need(*modules: str) -> None:
    for module in modules:
        if find_spec(module) is None:
            raise InvalidInput(
                f"{module} is not installed here: install framesift with the extra 'train'"
            )


_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONUNBUFFERED": "1"}
"""oneDNN reorders sums from run to run; without it equal seeds give equal losses."""
