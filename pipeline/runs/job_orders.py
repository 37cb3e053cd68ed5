"""Orders of every kind of job that a request may begin, by their kinds."""

from collections.abc import Mapping
from typing import Any

from pipeline.runs.job_order import JobOrder, order_in
from pipeline.runs.orders import ORDERS, FramesOrder
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling

FRAMES_ORDERS: Mapping[str, type[FramesOrder]] = {**ORDERS, Scaling.kind: Scaling}
"""Those on a dataset or a question, also through jobs that they drive."""

JOB_ORDERS: Mapping[str, type[JobOrder]] = {**FRAMES_ORDERS, Preflight.kind: Preflight}
"""Those, and those that need none."""


def job_order_of(data: Mapping[str, Any]) -> JobOrder:
    """The order that `JobOrder.as_json` gave.

    Raises:
        UnknownName: There is no such kind, or no such setting.
        InvalidInput: A setting is missing.
    """
    return order_in(data, JOB_ORDERS)
