"""framesift jobs."""

from enum import StrEnum
from typing import Annotated

import typer

from api.cli.commands.jobs.compare import compare
from api.cli.commands.jobs.drive import daemon, run_once
from api.cli.commands.jobs.follow import follow, show_job
from api.cli.commands.jobs.logs import logs
from api.cli.options.common import DetachFlag
from api.cli.tables.table import emit_table
from api.cli.target import Record, target
from api.cli.terminal import JsonFlag, emit_json, stdout
from pipeline.job_state import FINISHED

jobs_app = typer.Typer(no_args_is_help=True, help="Training and validation jobs.")
jobs_app.command("logs")(logs)
jobs_app.command("compare")(compare)
jobs_app.command("run-once")(run_once)
jobs_app.command("daemon")(daemon)


@jobs_app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """List the jobs, newest first."""
    listed: list[Record] = list(target().jobs.list())
    if as_json:
        emit_json(listed)
    else:
        columns = ("name", "kind", "dataset", "split", "state", "attempt", "created", "error")
        emit_table(columns, [[job.get(column) for column in columns] for job in listed])


@jobs_app.command("show")
def show(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Show a job: state, metrics, paths of its files."""
    show_job(target().jobs.get(name), as_json)


class _By(StrEnum):
    USER, DATASET, KIND = "user", "dataset", "kind"


@jobs_app.command("usage")
def usage(
    by: Annotated[_By, typer.Option(help="What the sums are of.")] = _By.USER,
    as_json: JsonFlag = False,
) -> None:
    """Sum up what jobs used of machines: core-, GPU- and wait-seconds of ended attempts."""
    listed: list[Record] = list(target().jobs.usage(by.value))
    if as_json:
        emit_json(listed)
        return
    columns = ("name", "jobs", "core_seconds", "gpu_seconds", "wait_seconds")
    titles = (by.value, "jobs", *(column.replace("_", "-") for column in columns[2:]))
    emit_table(titles, [[used[column] for column in columns] for used in listed])


@jobs_app.command("timeline")
def timeline(
    name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False
) -> None:
    """Show each change of state of a job's tasks: its time, attempt and cause."""
    moves = target().jobs.timeline(name)
    if as_json:
        emit_json(moves)
        return
    columns = ("at", "task", "attempt", "before", "after", "why")
    emit_table(columns, [[move[column] for column in columns] for move in moves["moves"]])


@jobs_app.command("wait")
def wait(name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False) -> None:
    """Wait until a job has ended; exit code 1 when it did not succeed."""
    jobs = target().jobs
    follow(jobs, jobs.get(name), False, as_json)


@jobs_app.command("cancel")
def cancel(
    name: Annotated[str, typer.Argument(help="The job.")], as_json: JsonFlag = False
) -> None:
    """Cancel a job."""
    jobs = target().jobs
    before = jobs.get(name)["state"]
    job = jobs.cancel(name)
    if as_json:
        emit_json(job)
    elif before in FINISHED:
        stdout.print(f"job {name} had ended already: {before}")
    else:
        stdout.print(f"asked job {name} to end; framesift jobs show {name}")


@jobs_app.command("resume")
def resume(
    name: Annotated[str, typer.Argument(help="The job.")],
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes with which a training goes on; as before by default."),
    ] = None,
    bad_frames: Annotated[
        str | None,
        typer.Option(
            metavar="fail|skip|skip:N",
            help="Frames that cannot be read: fail (default); leave out one percent, or N, at "
            "most.",
        ),
    ] = None,
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Start the next attempt of a job that failed or was cancelled, and follow it.

    It continues where the last one ended: a training from its checkpoint, a validation with the
    shards that are missing, scans and stagings with the rest. --bad-frames changes what becomes of
    frames that a training, validation or prediction cannot read.
    """
    jobs = target().jobs
    follow(jobs, jobs.resume(name, workers=workers, bad_frames=bad_frames), detach, as_json)


@jobs_app.command("remove")
def remove(name: Annotated[str, typer.Argument(help="The job.")]) -> None:
    """Remove a job that has ended: its record, and its model, report and logs."""
    target().jobs.remove(name)
    stdout.print(f"removed job {name}")
