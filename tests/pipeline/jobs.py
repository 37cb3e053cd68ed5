"""Jobs as tests submit them, without a service before: of an order, or of commands."""

from typing import Any

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.jobs.names import free_name
from pipeline.jobs.plan import Plan, plan
from pipeline.jobs.queue import JobQueue
from pipeline.jobs.request import JobPaths, Stage
from pipeline.jobs.submit import Described, describe, submit
from pipeline.jobs.work import JobHome, PlaceFences, Work
from pipeline.runs.orders import Order, Prediction, Training, Validation

_ASKED = {"caller": "", "scope": "", "is_command": True, "at": None}


def _no_slices(*_: object) -> Any:
    raise AssertionError("these tests ask for no slices")


def home_of(records: RecordStore, queue: JobQueue) -> JobHome:
    """A home whose validations have no slices."""
    return JobHome(records, queue, _no_slices, lambda _: PlaceFences())


def submit_order(records: RecordStore, queue: JobQueue, dataset: Dataset, order: Order) -> Job:
    """The job of an order on a dataset, submitted."""
    on = order.on(f"{dataset.name}@{dataset.version}")
    return submit(records, queue, lambda: plan(home_of(records, queue), on, dataset, _ASKED))


def describe_order(
    records: RecordStore, queue: JobQueue, dataset: Dataset, order: Order
) -> list[Described]:
    """The steps of an order's job on a dataset, described."""
    on = order.on(f"{dataset.name}@{dataset.version}")
    return describe(records, queue, plan(home_of(records, queue), on, dataset))


def submit_training(
    records: RecordStore, queue: JobQueue, dataset: Dataset, **settings: Any
) -> Job:
    """A training, submitted once."""
    return submit_order(records, queue, dataset, Training(**{"attempts": 1, **settings}))


def submit_validation(
    records: RecordStore, queue: JobQueue, model: str, dataset: Dataset, **settings: Any
) -> Job:
    """A validation, likewise."""
    order = Validation(**{"attempts": 1, **settings}, model=model)
    return submit_order(records, queue, dataset, order)


def submit_prediction(
    records: RecordStore, queue: JobQueue, model: str, dataset: Dataset, **settings: Any
) -> Job:
    """A prediction, likewise."""
    order = Prediction(**{"attempts": 1, **settings}, model=model)
    return submit_order(records, queue, dataset, order)


def plan_of(
    records: RecordStore,
    queue: JobQueue,
    work: Work,
    *,
    kind: str = "scan",
    base: str = "job",
    name: str | None = None,
    **fields: Any,
) -> Plan:
    """The plan of a job that does this work."""
    chosen = free_name(records, queue.folder, base, name)
    planned = Plan(chosen, kind, JobPaths(queue.folder / chosen), **fields)
    return planned.with_work(work)


def submit_commands(
    records: RecordStore, queue: JobQueue, *commands: tuple[str, ...], title: str = "work",
    settings: dict[str, Any] | None = None, resources: Any = None, **fields: Any,
) -> Job:  # fmt: skip
    """A job of one stage with these commands, submitted."""
    more = {} if resources is None else {"resources": resources}
    work = Work((Stage(title, commands),), settings=settings or {}, **more)
    return submit(records, queue, lambda: plan_of(records, queue, work, **fields))
