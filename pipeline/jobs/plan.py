"""Plans the job of an order: name, steps, work for its backend. Nothing is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput
from catalog.records.tables import Dataset
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.inference.chosen_model import chosen_model
from pipeline.jobs.inference.chosen_onnx import is_onnx, onnx_path
from pipeline.jobs.inference.chosen_predictions import on_server
from pipeline.jobs.inference.earlier_validation import earlier_validation
from pipeline.jobs.inference.over_split import trained_model
from pipeline.jobs.inference.prediction import prediction_work
from pipeline.jobs.inference.validation import validation_work
from pipeline.jobs.installed import training_packages
from pipeline.jobs.job_input import needs_staging
from pipeline.jobs.names import free_name
from pipeline.jobs.preflight import preflight_packages, preflight_work
from pipeline.jobs.program.command_line import CommandLine
from pipeline.jobs.program.program import program_work
from pipeline.jobs.request import JobPaths
from pipeline.jobs.resources import Resources, asked_resources
from pipeline.jobs.scaling.study import scaling_work
from pipeline.jobs.training import training_work
from pipeline.jobs.work import JobHome, Work
from pipeline.jobs.workflow.task_paths import RUN
from pipeline.runs.job_order import JobOrder
from pipeline.runs.onnx_file import ENDING, read_onnx
from pipeline.runs.orders import (
    FramesOrder,
    ModelOrder,
    Order,
    Prediction,
    Program,
    Training,
    Validation,
)
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling

if TYPE_CHECKING:  # those who list jobs do without pyarrow
    from pipeline.manifest import Manifest

_HIDDEN = frozenset(
    {"dataset", "question", "divide", "save_as", "evict", "migrate", "name", "backend", "resources",
     "attempts"}
)  # fmt: skip
"""Fields of an order that are no settings of its job."""

_SHOWN_IF_GIVEN = ("stage", "trust_model", "slices", "model", "torchrun")
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
    order: JobOrder,
    dataset: Dataset | None = None,
    asked: Mapping[str, Any] = {},
) -> Plan:
    """The plan of an order's job.

    Args:
        home: The home.
        order: What was ordered.
        dataset: What it names; None where a question chooses the frames, or it needs none.
        asked: What the job's steps need to know beside the order, as JSON.

    Raises:
        FramesiftError: The order cannot be carried out.
    """
    order.check()
    steps = _steps(home, order, dataset)
    base = f"{order.kind}-{_subject(order, dataset)}".rstrip("-")
    name = free_name(home.records, home.queue.folder, base, order.name)
    planned = Plan(
        name,
        order.kind,
        JobPaths(home.queue.folder / name),
        order.as_json(),
        dataset,
        "local" if order.drives else order.backend,
        Resources() if order.drives else asked_resources(order, packages_of(order)),
        order.attempts,
        steps,
        settings_of(order),
        asked,
    )
    match order:
        case Preflight():
            return planned.with_work(preflight_work(home, order, dataset, planned.paths))
        case Scaling():
            return planned.with_work(scaling_work(home, order, planned.paths))
        case Order() if dataset is not None and len(steps) == 1:
            return planned.with_work(work_of(home, order, dataset, planned.paths))
        case Order():
            _check_alone(home, order)
    return planned


def _subject(order: JobOrder, dataset: Dataset | None) -> str:
    """The part of a job's name that says what it is about."""
    if isinstance(order, Preflight):
        return order.backend
    if dataset is not None:
        return dataset.name
    saves_as = order.saves_as if isinstance(order, FramesOrder) else None
    return (saves_as or "").removeprefix(f"{order.kind}-")


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


def _steps(home: JobHome, order: JobOrder, dataset: Dataset | None) -> tuple[str, ...]:
    """The steps of a job: where its frames are chosen or staged first, or what follows it.

    The jobs that a study submits stage for themselves.

    Raises:
        InvalidInput: Its backend cannot begin before all frames are staged.
        UnknownName: There is no such backend.
    """
    if not isinstance(order, Order):
        asks = isinstance(order, FramesOrder) and dataset is None
        return ("select", RUN) if asks else (RUN,)
    stages_beside = backend(order.backend).stages_beside
    is_ready = (
        not order.stage or stages_beside or (dataset and not needs_staging(home.records, dataset))
    )
    fetches = bool(on_server(home.records, order))
    if dataset is not None and not order.afterwards and is_ready and not fetches:
        return (RUN,)
    start_after = order.start_after
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
        _check_models(home, order)


def _check_models(home: JobHome, order: ModelOrder) -> None:
    compared = order.compare if isinstance(order, Validation) else None
    if compared and earlier_validation(home.records, compared) is not None:
        compared = None
    for model in filter(None, (order.model, compared)):
        if is_onnx(home.records, model):
            read_onnx(onnx_path(home.records, model)[0])
        elif model == order.model:
            trained_model(home, order)
        else:
            chosen_model(home.records, model, trusts=order.trust_model)


def packages_of(order: JobOrder) -> tuple[str, ...]:
    """The packages that an order's programs import, as far as it alone says.

    Of the job of a program that wrote an ONNX file it says nothing.
    """
    if isinstance(order, Training):
        return training_packages(order.workers, order.model)
    if isinstance(order, Preflight):
        return preflight_packages(order)
    if isinstance(order, Validation) and order.scores_predictions:
        return ("matplotlib",)  # and TensorFlow where they are compared with a network
    if isinstance(order, ModelOrder):
        return ("onnxruntime",) if order.model.lower().endswith(ENDING) else ("tensorflow",)
    return ()


def settings_of(order: JobOrder) -> dict[str, Any]:
    """What was asked for, as the record of a job shows it until its work is planned."""
    defaults = type(order).__dataclass_fields__
    settings = {
        name: value
        for name, value in vars(order).items()
        if name not in _HIDDEN
        and value is not None
        and (name not in _SHOWN_IF_GIVEN or value != defaults[name].default)
    }
    question = order.question if isinstance(order, FramesOrder) else None
    return settings | ({} if question is None else {"question": question})
