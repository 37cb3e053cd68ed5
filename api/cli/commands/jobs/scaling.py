"""framesift scaling."""

from collections.abc import Sequence

from api.cli.commands.jobs.begin import begin_and_follow
from api.cli.commands.jobs.job_options import Following, JobOptions
from pipeline.runs.orders import FramesOrder
from pipeline.runs.scaling_order import Scaling


def _scaling(orders: Sequence[FramesOrder], how: Following) -> None:
    """Train the same on 1, 2, 4... ranks, several times each: speed-up, efficiency, exchange.

    The study is a job that submits ordinary trainings to a backend, one after another. Of what is
    measured there are medians, a table and a figure; jobs resume goes on with a study that ended.
    """
    begin_and_follow(orders, how)


scaling = JobOptions(
    Scaling, "NAME, or NAME@VERSION; else options such as --range choose frames."
).command(_scaling)
