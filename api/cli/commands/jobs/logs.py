"""framesift jobs logs."""

from codecs import getincrementaldecoder
from functools import partial
from typing import Annotated

import typer

from api.cli.sigint import leaving_job_running
from api.cli.target import Jobs, target
from api.cli.terminal import emit_text
from framesift.job_logs import followed_logs
from pipeline.job_state import FINISHED


def logs(
    name: Annotated[str, typer.Argument(help="The job.")],
    follows: Annotated[
        bool, typer.Option("--follow", "-f", help="Print what comes, until the job has ended.")
    ] = False,
) -> None:
    """Print the output of the job's steps and commands."""
    jobs = target().jobs
    if follows:
        with leaving_job_running(name):
            _follow(jobs, name)
        return
    decoder = getincrementaldecoder("utf-8")("replace")
    for chunk in jobs.log_chunks(name):
        emit_text(decoder.decode(chunk))


def _follow(jobs: Jobs, name: str) -> None:
    """Print each log from where it was left, under a heading where another one goes on."""

    def sizes() -> dict[str, int]:
        return {log["name"]: log["bytes"] for log in jobs.log_sizes(name)["logs"]}

    def has_ended() -> bool:
        return jobs.get(name)["state"] in FINISHED

    last = ""
    for log, text in followed_logs(has_ended, sizes, partial(jobs.log_part, name)):
        if log != last:
            emit_text(f"==> {log}.log <==\n")
            last = log
        emit_text(text)
