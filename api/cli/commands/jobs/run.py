"""framesift run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from api.cli import destination
from api.cli.commands.jobs.begin import begin_and_follow
from api.cli.commands.jobs.job_options import Following, JobOptions
from api.cli.commands.jobs.published_form import FORM, WithForm
from pipeline.runs.orders import Order, Program


def _run(orders: Sequence[Order], how: Following) -> None:
    """Run a program of your own on a dataset, as a job; what it makes in {job} is collected.

    On a dataset, or on the frames that options such as --range choose, which are saved as one.
    """
    begin_and_follow(orders, how)


def _here(order: Program) -> Program:
    """The program runs in the folder of the command, unless a server runs it."""
    if destination.server() is not None:
        return order
    return replace(order, folder=str(Path(order.folder or ".").absolute()))


OPTIONS = JobOptions(
    Program, "NAME, or NAME@VERSION; else options such as --range choose frames.", adjust=_here
)
run = OPTIONS.command(_run)
TYPER_SETTINGS = {
    "cls": WithForm,
    "epilog": f"{FORM} ends the line: behind it stand the words of the published LSF form, such as "
    "-min_car=10000 -max_car=20000 -p_fc=yes -oc_path_exec=run.sh, or a file with one on each "
    "line. They choose the frames, the command and the queue, and the cache is given back "
    "(--evict).",
}
"""What typer is told of the command besides."""
