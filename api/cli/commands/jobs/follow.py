"""A job followed to its end, and what a terminal shows of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from api.cli.commands.jobs.next_question import next_question
from api.cli.sigint import leave_driven, leaving_job_running
from api.cli.tables.table import emit_table
from api.cli.target import Jobs, Record
from api.cli.terminal import emit_json, stdout
from catalog.errors import JobFailed
from framesift.progress import Progress, count_of, list_of, number_of, tables_of


def follow(jobs: Jobs, job: Record, detach: bool, as_json: bool) -> None:
    """Follow a job to its end and show it; with `detach`, show it at once.

    Raises:
        JobFailed: It did not succeed, or its scores are below what was asked for.
    """
    if detach:
        leave_driven()
    else:
        job = followed(jobs, job, as_json)
    show_job(job, as_json)
    if not detach:
        check_scores(job)


def followed(jobs: Jobs, job: Record, quiet: bool) -> Record:
    """A job at its end, which a progress line leads to.

    Raises:
        JobFailed: It did not succeed.
    """
    from api.cli.progress_bar import progress_bar  # what shows a job that has ended does without

    with progress_bar(f"{job['kind']} {job['name']}", quiet=quiet) as bar:

        def show_progress(now: Record) -> None:
            progress = Progress.of(now["metrics"])
            note = f"{progress}{_unseen(now)}" or f"{now['state']} {now.get('waits') or ''}".strip()
            bar.show(progress.done, progress.total, note)

        with leaving_job_running(job["name"]):
            return jobs.wait(job["name"], progress=show_progress)


def _unseen(job: Record) -> str:
    """What a training says that sees fewer frames than there are; else empty."""
    frames, frames_seen = (count_of(job["metrics"], name) for name in ("frames", "frames_seen"))
    if job["kind"] != "train" or frames is None or frames_seen is None or frames_seen >= frames:
        return ""
    return f", of {frames:,} frames it will see {frames_seen:,}"


def check_scores(job: Record) -> None:
    """Fail where a validation's scores are below what was asked for.

    Raises:
        JobFailed: They are.
    """
    below = [row for row in list_of(job["metrics"], "below") if isinstance(row, Mapping)]
    if job["kind"] == "validate" and below:
        scores = ", ".join(map(_below, below))
        raise JobFailed(job["name"], f"job {job['name']}: {scores}")


def _below(row: Mapping[str, Any]) -> str:
    value, least = number_of(row, "value"), number_of(row, "least")
    score = "unknown (its class has no truth in the split)" if value is None else f"{value:.4f}"
    return f"{row.get('score')} is {score}, below {'' if least is None else f'{least:g}'}"


def show_job(job: Record, as_json: bool) -> None:
    """Print a job: state, settings, metrics, paths of its files."""
    if as_json:
        emit_json(job)
        return
    seconds = f" in {job['seconds']:.1f} s" if job["seconds"] is not None else ""
    stdout.print(f"job {job['name']}: {job['state']}{seconds}")
    if job["core_seconds"]:
        stdout.print(
            f"used {job['core_seconds']:,.1f} core-seconds, {job['gpu_seconds']:,.1f} GPU-seconds; "
            f"waited {job['wait_seconds']:,.1f} s"
        )
    for line in (job["error"], f"waits {job['waits']}" if job["waits"] else ""):
        if line:
            stdout.print(line)
    for warning in list_of(job["metrics"], "warnings"):
        stdout.print(f"warning: {warning}")
    if regressed := told_regressions(job):
        stdout.print(regressed)
    if job["state"] in ("failed", "cancelled") and job["kind"] != "policy":
        stdout.print(f"framesift jobs resume {job['name']} goes on where it ended")
    tasks = job["tasks"]
    if len(tasks) > 1 or any(task["attempt"] > 1 for task in tasks):
        columns = ("name", "state", "attempt", "backend", "started", "finished", "error")
        emit_table(("task", *columns[1:]), [[task[column] for column in columns] for task in tasks])
    settings = {name: job.get(name) for name in ("dataset", "attempt")} | (
        job.get("settings") or {}
    )
    emit_table(("setting", "value"), list(_setting_rows(settings)))
    measured = job["metrics"].items()
    metrics = {key: value for key, value in measured if not isinstance(value, dict | list)}
    if metrics:
        emit_table(
            ("metric", "value"),
            [(name, plain(value)) for name, value in metrics.items() if value is not None],
        )
    _show_lists(job)
    _show_end(job)


def _show_end(job: Record) -> None:
    """Print the paths of a job's files, and of a validation what to ask next."""
    emit_table(("", ""), list(job["paths"].items()))
    if question := next_question(job):
        stdout.print(question)


def _setting_rows(settings: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """A row for each setting that is one; for each entry of those that have entries."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            entries = _without_empty(value).items()
            yield from ((f"{name} {of_entry}", plain(entry)) for of_entry, entry in entries)
        elif value is not None:
            yield name, plain(value)


def _show_lists(job: Record) -> None:
    """Print the metrics that are lists: tables and checkpoints."""
    for table in tables_of(job["metrics"]):
        stdout.print(table.title)
        emit_table(table.columns, table.rows)
    checkpoints = [
        (row.get("step"), row.get("path"), plain(row.get("metrics")))
        for row in list_of(job["metrics"], "checkpoints")
        if isinstance(row, Mapping)
    ]
    if checkpoints:
        emit_table(("checkpoint of step", "path", "metrics"), checkpoints)


def told_regressions(job: Record) -> str:
    """In which scores a model is worse than the one that it was compared with; empty for none.

    Or that nobody can tell.
    """
    if job["kind"] != "validate":
        return ""
    metrics = job["metrics"]
    other, worse = metrics.get("compared_with"), metrics.get("regressions")
    if worse is None and other is not None:
        return (
            f"unknown whether worse than {other}: frames of one scene have no "
            "intervals; validate on several scenes"
        )
    scores = ", ".join(map(str, list_of(metrics, "regressions")))
    return f"worse than {other}: {scores}" if scores else ""


def plain(value: object) -> object:
    """The value as a command line gives it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return json.dumps(_without_empty(value), ensure_ascii=False)
    return ", ".join(str(plain(one)) for one in value) if isinstance(value, list) else value


def _without_empty(value: Any) -> Any:
    """A JSON value without the null and empty entries of its objects."""
    if isinstance(value, Mapping):
        entries = {name: _without_empty(entry) for name, entry in value.items()}
        return {name: entry for name, entry in entries.items() if entry not in (None, [], {})}
    return [_without_empty(entry) for entry in value] if isinstance(value, list) else value
