"""Begins the jobs that a command orders, or describes them."""

from collections.abc import Sequence

import typer

from api.cli import destination
from api.cli.commands.jobs.follow import follow
from api.cli.commands.jobs.job_options import Following
from api.cli.target import Jobs, Record, target
from api.cli.terminal import emit_json, emit_text, stdout
from catalog.errors import InvalidInput
from pipeline.runs.job_order import JobOrder
from pipeline.runs.orders import ModelOrder


def begin_and_follow(orders: Sequence[JobOrder], how: Following) -> None:
    """Begin the one job that a command orders, and follow it to its end.

    Raises:
        JobFailed: It did not succeed, or its scores are below what was asked for.
    """
    jobs, (order,) = target().jobs, orders
    follow(jobs, begin(jobs, order, how), how.detach, how.as_json)


def begin(jobs: Jobs, order: JobOrder, how: Following) -> Record:
    """The job that was begun; of a dry run its description is printed, and the command ends.

    Raises:
        typer.Exit: It was described.
    """
    if not how.dry_run:
        job = jobs.submit(order.as_json())
        if not how.as_json:
            for note in job["notes"]:
                stdout.print(f"note: {note}")
        return job
    described = jobs.dry_run(**order.as_json())
    if how.as_json:
        emit_json(described)
    else:
        emit_text(_shown(described))
    raise typer.Exit


def refuse_foreign_model(order: ModelOrder) -> ModelOrder:
    """Refuse --trust-model where a server would load the model.

    Raises:
        InvalidInput: A server was chosen.
    """
    if order.trust_model and destination.server() is not None:
        raise InvalidInput(
            "--trust-model: a server loads no foreign models; validate it where it lies, on a "
            "home of that machine"
        )
    return order


def _shown(described: Record) -> str:
    """A description as the command prints it."""
    notes = "".join(f"# note: {note}\n" for note in described["notes"])
    if len(described["steps"]) == 1:
        return f"{notes}{described['submission']}\n"
    steps = [
        f"==> {one['name']}, on {one['backend']} <==\n{one['submission']}\n"
        for one in described["steps"]
    ]
    frames = f"# {described['dataset']}: {described['frames']:,} frames\n"
    return notes + frames + "\n".join(steps)
