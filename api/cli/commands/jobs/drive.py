"""framesift jobs run-once, daemon."""

from typing import Annotated

import typer

from api.cli import destination
from api.cli.terminal import JsonFlag, emit_json, stderr, stdout


def run_once(as_json: JsonFlag = False) -> None:
    """Look at every job of the home once, and start what is due; for a timer.

    Nothing happens where a server of the home, or 'framesift jobs daemon', does that already.
    """
    # With the home's stores.
    from api.services.jobs.driving import begin_policies, begin_triggers, drive_home, tell_ends

    unfinished_jobs = 0

    def once(unfinished: int) -> bool:
        nonlocal unfinished_jobs
        unfinished_jobs = unfinished
        return False

    workspace = destination.home()
    is_ours = drive_home(workspace, once, report=stderr.print)
    if is_ours:
        begin_policies(workspace, stderr.print)
        begin_triggers(workspace, stderr.print)
        tell_ends(workspace, stderr.print)
    if as_json:
        emit_json({"driven": is_ours, "unfinished": unfinished_jobs if is_ours else None})
    elif is_ours:
        stdout.print(f"{unfinished_jobs:,} jobs have not ended")
    else:
        stdout.print("another process drives the jobs of this home")


def daemon(
    until_done: Annotated[
        bool, typer.Option("--until-done", help="End once every job has ended.")
    ] = False,
) -> None:
    """Drive the jobs of a home that no server serves: start what is due, as long as this runs."""
    from api.services.jobs.driving import drive_home  # with the home's stores

    if not drive_home(
        destination.home(),
        lambda unfinished: bool(unfinished) or not until_done,
        report=stderr.print,
    ):
        stdout.print("another process drives the jobs of this home")
