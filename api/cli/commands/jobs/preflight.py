"""framesift preflight."""

from api.cli.commands.jobs.begin import begin_and_follow
from api.cli.commands.jobs.job_options import Following
from api.cli.commands.jobs.plain_options import plain_command
from pipeline.runs.job_order import JobOrder
from pipeline.runs.preflight_order import Preflight


def _preflight(order: JobOrder, how: Following) -> None:
    """Measure what ranks find of their machines before a training, as a job on any backend.

    Allreduce and pairs of ranks, reads, clocks, versions, GPUs and limits; a verdict a line. With
    --synthetic they train ResNet-50 on generated data.
    """
    begin_and_follow([order], how)


preflight = plain_command(Preflight, _preflight)
