"""framesift train."""

from collections.abc import Sequence

from api.cli.commands.jobs.begin import begin_and_follow
from api.cli.commands.jobs.job_options import Following, JobOptions
from pipeline.runs.orders import Order, Training


def _train(orders: Sequence[Order], how: Following) -> None:
    """Train a segmentation network on a dataset's split, data-parallel over Horovod.

    On a dataset, or on the frames that options such as --range car=10000: --camera front_center
    choose: these are saved as a dataset, divided by --divide, and staged first.
    """
    begin_and_follow(orders, how)


OPTIONS = JobOptions(Training, "NAME, or NAME@VERSION; else options such as --range choose frames.")
train = OPTIONS.command(_train)
