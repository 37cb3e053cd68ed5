"""Drives a scaling study: submits its trainings one after another, and keeps what each measured."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from api.schemas.jobs import JobBody
from api.services.jobs.files import FIGURE
from api.services.jobs.owners import call_of
from api.services.session import Session
from api.workspace import Workspace
from catalog.errors import JobFailed, NotFound
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import recorded_job
from catalog.storage.atomic_write import atomic_write
from pipeline.job_state import FINISHED
from pipeline.jobs.request import JobPaths, write_json
from pipeline.jobs.scaling.figure import figure
from pipeline.jobs.scaling.runs import Run, keep_runs, kept_runs, measured_run, planned_runs
from pipeline.jobs.scaling.table import figures, rows_of, tables
from pipeline.runs.job_order import order_in
from pipeline.runs.scaling_order import Scaling


def drive_study(home: Workspace, folder: Path, report: Callable[[str], None]) -> None:
    """Have every training of a study done that is not, on behalf of the user who began it.

    Begun again, it goes on: what is done counts, what runs is waited for, what failed is resumed.

    Args:
        home: The whole home.
        folder: Of the study's job.
        report: Told what came of each training, in lines.

    Raises:
        JobFailed: A training failed, or was cancelled.
        FramesiftError: One cannot begin, or the user may not begin it any more.
    """
    job = recorded_job(home.records, folder.name)
    owner = call_of(home, job)
    session = Session(home, owner.caller, is_command=owner.is_command)
    order = order_in(job.request["order"], {Scaling.kind: Scaling})
    if order.question is not None:  # the step before has saved its frames
        dataset = complete_dataset(session.records, job.dataset or "")
        order = order.on(f"{dataset.name}@{dataset.version}")
    planned = planned_runs(order, folder.name)
    runs = kept_runs(folder)
    for number, (ranks, repeat, name) in enumerate(planned):
        _keep(folder, order, runs, number, len(planned))
        if name in runs:
            continue
        done = _done(session, order, ranks, repeat, name)
        runs[name] = run = _measured(folder.parent, ranks, repeat, done)
        keep_runs(folder, runs)
        report(
            f"{name}: {run.images_per_s:.1f} images/s in {run.seconds:.1f} s "
            f"({number + 1} of {len(planned)})"
        )
    _keep(folder, order, runs, len(planned), len(planned))


def _done(session: Session, order: Scaling, ranks: int, repeat: int, name: str) -> JobBody:
    """A training at its end, once it is done.

    Raises:
        JobFailed: It is not.
    """
    try:
        training = session.jobs.get(name)
    except NotFound:
        training = session.jobs.submit(order.training(ranks, repeat, _unprefixed(session, name)))
    else:
        if training.state in FINISHED and training.state != "done":
            training = session.jobs.resume(name)
    try:
        return session.jobs.wait(training.name, progress=lambda _: None)
    except JobFailed as error:
        raise JobFailed(
            name, f"{error}; framesift jobs resume {name.rpartition('-r')[0]} goes on with it"
        ) from error
    except SystemExit:  # the study was cancelled
        with suppress(JobFailed):
            session.jobs.cancel(training.name)
        raise


def _unprefixed(session: Session, name: str) -> str:
    """A name as its user gives it: a limited one's jobs get the prefix of that user anyway."""
    return name.removeprefix(session.records.own_names)


def _measured(jobs: Path, ranks: int, repeat: int, job: JobBody) -> Run:
    model = JobPaths(jobs / job.name).model
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    return measured_run(
        ranks, repeat, job.name, job.seconds or 0.0, job.settings, job.metrics, lines
    )


def _keep(folder: Path, order: Scaling, runs: Mapping[str, Run], done: int, of: int) -> None:
    """Have the study's job show what is known by now."""
    rows = rows_of(runs.values())
    shown: dict[str, Any] = {"trainings": done, "of_trainings": of, **figures(rows)}
    if rows:
        shown["tables"] = tables(rows, [*runs.values()], order.target_miou)
        atomic_write(folder / FIGURE, figure(rows, f"{order.dataset}, median of {order.repeats}"))
    paths = JobPaths(folder)
    write_json(paths.result if done == of else paths.progress, shown)
