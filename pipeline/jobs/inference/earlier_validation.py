"""Finds the order of an earlier validation, whose model another is compared with."""

from catalog.errors import NotFound
from catalog.records.jobs import recorded_job
from catalog.records.store import RecordStore
from pipeline.jobs.inference.chosen_onnx import is_onnx
from pipeline.runs.orders import Validation, order_of


def earlier_validation(records: RecordStore, job: str) -> Validation | None:
    """The order of a validation that scored predictions, or the network of an ONNX file.

    Returns:
        None where there is no job of that name, or another one.
    """
    try:
        recorded = recorded_job(records, job)
    except NotFound:
        return None
    if recorded.kind != "validate":
        return None
    order = order_of(recorded.request["order"])
    if not isinstance(order, Validation):
        return None
    return order if order.scores_predictions or is_onnx(records, order.model) else None
