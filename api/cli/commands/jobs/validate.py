"""framesift validate."""

from collections.abc import Mapping, Sequence
from typing import Any

from api.cli.commands.jobs.begin import begin, begin_and_follow, refuse_foreign_model
from api.cli.commands.jobs.follow import check_scores, followed, told_regressions
from api.cli.commands.jobs.job_options import Following, JobOptions
from api.cli.sigint import leave_driven
from api.cli.tables.table import emit_table
from api.cli.target import Jobs, Record, target
from api.cli.terminal import emit_json, stdout
from catalog.errors import InvalidInput
from framesift.progress import count_of, list_of, number_of
from pipeline.job_state import FINISHED
from pipeline.runs.orders import Order, Validation


def _validate(orders: Sequence[Order], how: Following) -> None:
    """Validate a model: the split fanned out over workers, one report merged from all.

    On several datasets, one after another: a job and a report for each, and one table of all.
    """
    if len(orders) == 1:
        begin_and_follow(orders, how)
        return
    name = orders[0].name
    if name is not None:
        raise InvalidInput(f"--name {name}: names one job, and {len(orders)} datasets are given")
    if how.dry_run:
        raise InvalidInput(f"--dry-run: describes one job, and {len(orders)} datasets are given")
    jobs = target().jobs
    for order in orders:  # all can begin, or none does
        jobs.dry_run(**order.as_json())
    started = [begin(jobs, order, how) for order in orders]
    follow_all(jobs, started, detach=how.detach, as_json=how.as_json)


OPTIONS = JobOptions(
    Validation,
    "NAME, or NAME@VERSION; of several, one table is shown. Else options such as --range choose "
    "frames.",
    several=True,
    adjust=refuse_foreign_model,
)
validate = OPTIONS.command(_validate)


def follow_all(jobs: Jobs, started: Sequence[Record], *, detach: bool, as_json: bool) -> None:
    """Follow validations of one model to their ends, and show their scores as one table.

    Raises:
        JobFailed: One did not succeed, or its scores are below what was asked for; the first,
            after the table of all.
    """
    if detach:
        leave_driven()
    failures: list[Exception] = []
    ended = [job if detach else _ended(jobs, job, as_json, failures) for job in started]
    if as_json:
        emit_json(ended)
    else:
        _show_table(ended)
    if failures:
        raise failures[0]
    for job in ended:
        check_scores(job)


def _ended(jobs: Jobs, job: Record, quiet: bool, failures: list[Exception]) -> Record:
    """A job at its end; where that is no success, its error is added to the failures."""
    try:
        return followed(jobs, job, quiet)
    except Exception as error:  # a home's JobFailed, or that of the client
        now = jobs.get(job["name"])
        if now["state"] not in FINISHED:
            raise
        failures.append(error)
        return now


def _show_table(ended: Sequence[Record]) -> None:
    """Print validations of one model, a row each, and what is to be said of them."""
    compares = any(job["metrics"].get("compared_with") for job in ended)
    columns = (*_COLUMNS, *(_OF_COMPARISON if compares else ()))
    emit_table(columns, [_row(job, compares) for job in ended])
    for job in ended:
        if regressed := told_regressions(job):
            stdout.print(f"{job['dataset']}: {regressed}")
        for warning in list_of(job["metrics"], "warnings"):
            stdout.print(f"warning: {job['dataset']}: {warning}")
        if job["error"]:
            stdout.print(f"{job['state']}: {job['dataset']}: {job['error']}")


_COLUMNS = (
    "dataset", "split", "frames", "mIoU", "of 95 %", "pixel accuracy", "of 95 %", "boundary IoU",
    "of 95 %", "ECE", "of 95 %", "job", "state",
)  # fmt: skip


_OF_COMPARISON = ("difference", "its 95 %")


def _row(job: Record, compares: bool) -> list[object]:
    metrics = job["metrics"]
    names = ("miou", "pixel_accuracy", "boundary_iou", "ece")
    scores = [text for name in names for text in (_share(metrics, name), _within(metrics, name))]
    frames = count_of(metrics, "frames")
    row = [job["dataset"], job["split"], frames, *scores, job["name"], job["state"]]
    return [*row, *_difference(metrics)] if compares else row


def _difference(metrics: Mapping[str, Any]) -> tuple[str, str]:
    """Mean IoU less that of the model compared with, and its interval."""
    name = "miou_difference"
    return _share(metrics, name, "+"), _within(metrics, name, "+")


def _within(metrics: Mapping[str, Any], name: str, sign: str = "") -> str:
    """A score's interval for people; empty where there is none."""
    low, high = (_share(metrics, f"{name}_{end}", sign) for end in ("low", "high"))
    return f"{low} to {high}" if low else ""


def _share(metrics: Mapping[str, Any], name: str, sign: str = "") -> str:
    """A score for people; empty where there is none."""
    value = number_of(metrics, name)
    return "" if value is None else f"{value:{sign}.4f}"
