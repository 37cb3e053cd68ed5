"""Plans the job of an order: name, steps, work for its backend. Nothing is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput
from catalog.records.tables import Dataset
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.inference.chosen_model import chosen_model
from pipeline.jobs.inference.chosen_predictions import on_server, predictions_of_job
from pipeline.jobs.inference.prediction import prediction_work
from pipeline.jobs.inference.validation import validation_work
from pipeline.jobs.installed import training_packages
from pipeline.jobs.job_input import needs_staging
from pipeline.jobs.names import free_name
from pipeline.jobs.program.command_line import CommandLine
from pipeline.jobs.program.program import program_work
from pipeline.jobs.request import JobPaths
from pipeline.jobs.resources import Resources, asked_resources
from pipeline.jobs.training import training_work
from pipeline.jobs.work import JobHome, Work
from pipeline.jobs.workflow.task_paths import RUN
from pipeline.runs.orders import (
    ModelOrder,
    NetworkOrder,
    Order,
    Prediction,
    Program,
    Training,
    Validation,
)

if TYPE_CHECKING:  # those who list jobs do without pyarrow
    from pipeline.manifest import Manifest

_HIDDEN = frozenset(
    {"dataset", "question", "divide", "save_as", "evict", "migrate", "name", "backend", "resources",
     "attempts"}
)  # fmt: skip
"""Fields of an order that are no settings of its job."""

_SHOWN_IF_GIVEN = ("stage", "trust_model", "slices", "model")
"""Settings that the record of a job shows only where they are not the default."""


@dataclass(frozen=True)
class Plan:
    """The plan of a job."""

    name: str
    """The job's name, which nothing has yet."""
    kind: str
    """Of the job."""
    paths: JobPaths
    """Its files."""
    order: Mapping[str, Any] = field(default_factory=dict)
    """As JSON."""
    dataset: Dataset | None = None
    """What it works on; None for nothing, and for what a question chooses."""
    backend: str = "local"
    """Where it runs."""
    resources: Resources = field(default_factory=Resources)
    """What it asks of the machines there."""
    attempts: int = 1
    """Attempts that begin without a user's word where one is lost."""
    steps: Sequence[str] = (RUN,)
    """Names of its steps, in their order."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What its record shows until the work is planned."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What its steps need to know beside the order, as JSON."""
    work: Work | None = None
    """What its backend is handed; None where a step plans it, once the frames are there."""

    def with_work(self, work: Work) -> "Plan":
        """The same, with what the backend is handed."""
        return replace(self, work=work, resources=work.resources)


def plan(
    home: JobHome,
    order: Order,
    dataset: Dataset | None = None,
    asked: Mapping[str, Any] = {},
) -> Plan:
    """The plan of an order's job.

    Args:
        home: The home.
        order: What was ordered.
        dataset: What it names; None where a question chooses the frames.
        asked: What the job's steps need to know beside the order, as JSON.

    Raises:
        FramesiftError: The order cannot be carried out.
    """
    order.check()
    steps = _steps(home, order, dataset)
    subject = dataset.name if dataset is not None else (order.saves_as or "")
    if dataset is None:
        subject = subject.removeprefix(f"{order.kind}-")
    base = f"{order.kind}-{subject}".rstrip("-")
    name = free_name(home.records, home.queue.folder, base, order.name)
    planned = Plan(
        name,
        order.kind,
        JobPaths(home.queue.folder / name),
        order.as_json(),
        dataset,
        order.backend,
        asked_resources(order, packages_of(order)),
        order.attempts,
        steps,
        settings_of(order),
        asked,
    )
    if dataset is None or len(steps) > 1:
        _check_alone(home, order)
        return planned
    return planned.with_work(work_of(home, order, dataset, planned.paths))


def work_of(
    home: JobHome,
    order: Order,
    dataset: Dataset,
    paths: JobPaths,
    manifest: "Manifest | None" = None,
) -> Work:
    """The work that an order's backend is handed.

    Args:
        home: The home.
        order: What was ordered.
        dataset: What it works on.
        paths: The job's files.
        manifest: The dataset's as the job will find it; as it lies there now when None.
    """
    match order:
        case Training():
            return training_work(home, order, dataset, paths, manifest)
        case Validation():
            return validation_work(home, order, dataset, paths, manifest)
        case Prediction():
            return prediction_work(home, order, dataset, paths, manifest)
        case Program():
            return program_work(home, order, dataset, paths, manifest)
    raise AssertionError(order.kind)


def _steps(home: JobHome, order: Order, dataset: Dataset | None) -> tuple[str, ...]:
    """The steps of a job: where its frames are chosen or staged first, or what follows it.

    Raises:
        InvalidInput: Its backend cannot begin before all frames are staged.
        UnknownName: There is no such backend.
    """
    stages_beside = backend(order.backend).stages_beside
    is_ready = (
        not order.stage or stages_beside or (dataset and not needs_staging(home.records, dataset))
    )
    fetches = bool(on_server(home.records, order))
    if dataset is not None and not order.afterwards and is_ready and not fetches:
        return (RUN,)
    start_after = order.start_after if isinstance(order, NetworkOrder) else None
    if start_after is not None and not stages_beside:
        raise InvalidInput(
            f"start after {start_after:g} percent: backend {order.backend} begins a job when all "
            "its frames are staged; leave it out"
        )
    return (
        *(("select",) if dataset is None else ()),
        *(("stage",) if order.stage and start_after is None else ()),
        *(("fetch",) if fetches else ()),
        "prepare",
        RUN,
        *(() if order.kind == "run" else ("collect",)),
        *order.afterwards,
    )


def _check_alone(home: JobHome, order: Order) -> None:
    """Refuse an order whose work could not be planned, whatever its frames are."""
    if isinstance(order, Program):
        CommandLine.parse(order.command)
    if isinstance(order, ModelOrder):
        compared = order.compare if isinstance(order, Validation) else None
        if compared and predictions_of_job(home.records, compared) is not None:
            compared = None
        for model in filter(None, (order.model, compared)):
            chosen_model(home.records, model, trusts=order.trust_model)


def packages_of(order: Order) -> tuple[str, ...]:
    """The packages that an order's programs import, as far as it alone says."""
    if isinstance(order, Training):
        return training_packages(order.workers, order.model)
    if isinstance(order, Validation) and order.scores_predictions:
        return ("matplotlib",)  # and TensorFlow where they are compared with a network
    return ("tensorflow",) if order.is_of_model else ()


def settings_of(order: Order) -> dict[str, Any]:
    """What was asked for, as the record of a job shows it until its work is planned."""
    defaults = type(order).__dataclass_fields__
    settings = {
        name: value
        for name, value in vars(order).items()
        if name not in _HIDDEN
        and value is not None
        and (name not in _SHOWN_IF_GIVEN or value != defaults[name].default)
    }
    return settings | ({} if order.question is None else {"question": order.question})
