"""The changes that a user may make to a job that goes on: workers, and limit of bad frames."""

from dataclasses import replace

from catalog.errors import InvalidInput
from catalog.records.tables import Job
from pipeline.runs.job_order import JobOrder
from pipeline.runs.job_orders import JOB_ORDERS, job_order_of
from pipeline.runs.orders import NetworkOrder, Order, Training


def changed_order(job: Job, workers: int | None, bad_frames: str | None) -> Order | None:
    """The order that a job goes on with; None where nothing changes.

    Args:
        job: The job.
        workers: Processes of a training: its checkpoint says which frames are left for them.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).

    Raises:
        InvalidInput: The job cannot have one of them.
    """
    if workers is None and bad_frames is None:
        return None
    order: JobOrder | None = None
    if job.request["order"].get("kind") in JOB_ORDERS:
        order = job_order_of(job.request["order"])
    if workers is not None:
        if not isinstance(order, Training):
            raise InvalidInput(
                f"workers {workers}: job {job.name} is of kind {job.kind}, and only a training "
                "goes on with another number; leave it out, or begin another job"
            )
        order = replace(order, workers=workers)
    if bad_frames is not None:
        if not isinstance(order, NetworkOrder):
            raise InvalidInput(
                f"bad frames {bad_frames}: job {job.name} is of kind {job.kind}, which leaves no "
                "frames out; leave it out"
            )
        order = replace(order, bad_frames=bad_frames)
    if not isinstance(order, Order):
        return None
    order.check()
    return order
