"""Jobs that begin with a question: frames are chosen, saved and staged before, as steps of it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api.schemas.base import set_fields
from api.schemas.datasets import NewDataset, NewSplit
from api.schemas.jobs import JobBody
from api.services.jobs.programs import need_programs
from catalog.errors import InvalidInput
from catalog.records.datasets import whole_dataset
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from pipeline.archive.migrate import check_migration
from pipeline.jobs.attempts import ATTEMPTS
from pipeline.jobs.backends.registry import backend
from pipeline.jobs.inference.prediction import check_model
from pipeline.jobs.installed import training_packages
from pipeline.jobs.job_input import needs_staging
from pipeline.jobs.program.command_line import CommandLine
from pipeline.jobs.resources import Resources
from pipeline.jobs.run import check_settings
from pipeline.jobs.steps import submit_steps
from pipeline.jobs.submit import Described, DryRun, JobOrder
from pipeline.jobs.train_settings import TrainSettings
from pipeline.manifest import Manifest
from pipeline.staging.stage import newest_manifest
from query.question.question import Question
from query.question.wrong_value import validation_message

if TYPE_CHECKING:
    from api.services.call import Call
    from pipeline.jobs.queue import JobQueue

_OF_ALL = ("dataset", "name", "backend", "stage", "start_after", "resources", "attempts")
"""Options of every kind; the others of a training are its settings."""


class Beginner(Protocol):
    """The part of api.services.jobs.service.Jobs that begins a job with a question."""

    session: "Call"

    @property
    def queue(self) -> "JobQueue":
        """The home's jobs, submitted by the caller."""

    def model(self, name: str) -> str:
        """A model as a job takes it."""

    def version(self, kind: str, options: Mapping[str, Any]) -> str:
        """The dataset of a job's options, with the version that is meant beside its model."""

    def notes(self, kind: str, options: Mapping[str, Any]) -> list[str]:
        """Statements that the user should know before a job with these options runs."""

    def foresee(
        self, kind: str, job: str, foreseen: "Foreseen", options: Mapping[str, Any]
    ) -> Described:
        """The plan that its step "run" would hand to its backend."""

    def ask(self, kind: str, asked: "Asked", options: Mapping[str, Any]) -> JobBody:
        """Begin it."""


@dataclass(frozen=True)
class Asked:
    """The frames that a job with steps works on.

    Attributes:
        dataset: A dataset; None where a question chooses the frames.
        question: The question; None where there is a dataset.
        divide: Its division, as a NewSplit's data; None for none.
        save_as: Name of the question's dataset; None for the job's own.
        afterwards: The steps that follow when the job is done: "evict", "migrate".
    """

    dataset: str | None
    question: Question | None
    divide: Mapping[str, Any] | None
    save_as: str | None
    afterwards: Sequence[str]


def or_question(method: Callable[..., JobBody]) -> Callable[..., JobBody]:
    """Give a method of Jobs, which begins a job on a dataset, a question in the dataset's place.

    It takes, besides its own:
        question: The frames that answer it are saved as a dataset, which the job works on.
        divide: Their division into splits, as a NewSplit's data.
        save_as: Name of that dataset; the job's own by default, and predict-MODEL of a prediction.
        evict: Remove the dataset from the cache when the job is done.
        migrate: Have its files migrated back to tape then.

    A dataset that is not staged gets the same steps, where its backend fetches nothing beside a
    job.

    Raises:
        DryRun: Jobs are described only.
        InvalidInput: Neither or both of dataset and question are given, or options do not go
            together.
    """

    @wraps(method)
    def begun(
        jobs: Beginner,
        *arguments: Any,
        question: Question | None = None,
        divide: Mapping[str, Any] | None = None,
        save_as: str | None = None,
        evict: bool = False,
        migrate: bool = False,
        **options: Any,
    ) -> JobBody:
        names = [*inspect.signature(method).parameters][1:]
        options |= dict(zip(names, arguments, strict=False))
        dataset = options.get("dataset")
        kind = method.__name__
        notes: list[str] = []
        if dataset and question is None and not jobs.queue.begun:
            notes = jobs.notes(kind, options)
            dataset = options["dataset"] = jobs.version(kind, options)
        if (dataset is None) == (question is None):
            raise InvalidInput(
                f"{kind}: give a dataset, or the question of a selection; and not both"
            )
        if save_as is not None and question is None:
            raise InvalidInput(f"save as {save_as}: goes with a question, and not with a dataset")
        if divide is not None and question is None:
            raise InvalidInput(
                "divide: goes with a question; framesift dataset split divides a dataset again"
            )
        afterwards = [*(["evict"] if evict else []), *(["migrate"] if migrate else [])]
        if question is None and not afterwards and not _staged_before(jobs, dataset, options):
            body = method(jobs, **options)
        else:
            options.pop("dataset", None)
            asked = Asked(dataset, question, divide, save_as, afterwards)
            body = jobs.ask(kind, asked, options)
        return body.model_copy(update={"notes": notes})

    return begun


def _staged_before(jobs: Beginner, dataset: str | None, options: Mapping[str, Any]) -> bool:
    """Return whether a dataset has to be staged before its job, which is to begin now.

    Raises:
        NotFound: There is no such dataset.
        UnknownName: There is no such backend.
    """
    queue = jobs.queue
    is_planned = queue.begun or queue.foreseen is not None
    if dataset is None or is_planned or not options.get("stage", True):
        return False
    if backend(options.get("backend", "local")).stages_beside:
        return False
    records = jobs.session.records
    return needs_staging(records, whole_dataset(records, dataset))


def begin_with_steps(
    jobs: Beginner,
    kind: str,
    asked: Asked,
    options: Mapping[str, Any],
) -> Job:
    """Begin a job with its steps, once what can be checked is; see or_question.

    Raises:
        DryRun: Jobs are described only.
    """
    session, records = jobs.session, jobs.session.records
    question, save_as = asked.question, asked.save_as
    whole = None if asked.dataset is None else whole_dataset(records, asked.dataset)
    resources = _resources(jobs, kind, options)
    chosen, start_after = backend(options.get("backend", "local")), options.get("start_after")
    if start_after is not None and not chosen.stages_beside:
        raise InvalidInput(
            f"start after {start_after:g} percent: backend {chosen.name} begins a job when all its "
            "frames are staged; leave it out"
        )
    stages = options.get("stage", True) and start_after is None
    if "evict" in asked.afterwards and not options.get("stage", True):
        raise InvalidInput("evict: goes with staging, and nothing is staged; leave one out")
    if "migrate" in asked.afterwards:
        check_migration(session.workspace.archive_access)
    saved: dict[str, Any] = {}
    if question is not None:
        # With DuckDB, which those who list jobs do without.
        from api.services.selections import described
        from pipeline.datasets.datasets import name_of_new
        from pipeline.datasets.split import parse_split

        described(session.workspace, question)
        if save_as is None and kind == "predict":
            save_as = f"predict-{Path(options['model']).name.replace('@', '-')}"
        if save_as is not None:
            name_of_new(records, save_as)
        # Another attempt of the step answers alike, whatever was ingested meanwhile.
        at = question.snapshot_for(None) or session.workspace.catalog.snapshot()
        saved = {
            "question": question.model_dump(mode="json"),
            "divide": asked.divide,
            "save_as": save_as,
            "at": at,
        }
        if asked.divide is not None:
            parse_split(new_dataset(records, kind, saved).split or "")
    order = JobOrder(
        kind,
        f"{kind}-{_base(kind, whole, save_as)}".rstrip("-"),
        options.get("name"),
        whole,
        chosen.name,
        resources,
        options.get("attempts", 1 if kind == "run" else ATTEMPTS),
    )
    steps = [
        *(["select"] if question is not None else []),
        *(["stage"] if stages else []),
        "prepare",
        "run",
        *(["collect"] if kind != "run" else []),
        *asked.afterwards,
    ]
    settings = {name: value for name, value in options.items() if name != "name"}
    if jobs.queue.dry_run:
        raise _described(jobs, order, steps, saved, settings)
    caller = session.caller
    of_caller = {
        "caller": caller.user, "scope": caller.scope, "is_command": session.is_command,
    }  # fmt: skip
    return submit_steps(
        records, jobs.queue, order, steps, {**saved, **of_caller, "options": settings}
    )


@dataclass(frozen=True)
class Foreseen:
    """The dataset that a job would work on, and its manifest as it would lie there."""

    dataset: Dataset
    manifest: Manifest


def _described(
    jobs: Beginner,
    order: JobOrder,
    steps: Sequence[str],
    saved: Mapping[str, Any],
    options: Mapping[str, Any],
) -> DryRun:
    """The steps of a job; of a question, with the frames that answer it now."""
    session, settings = jobs.session, {**saved, "options": options}
    try:
        submit_steps(session.records, jobs.queue, order, steps, settings)
    except DryRun as told:
        name, others = told.job, told.steps
    dataset, manifest = order.dataset, None
    if dataset is None:
        dataset, manifest = _foreseen_dataset(session, name, saved)
    if manifest is None:
        manifest = Manifest.read(newest_manifest(session.records, dataset))
    run = jobs.foresee(order.kind, name, Foreseen(dataset, manifest), options)
    described = {step.name: step for step in (*others, run)}
    return DryRun(name, dataset, [described[step] for step in steps])


def _foreseen_dataset(
    session: "Call", job: str, saved: Mapping[str, Any]
) -> tuple[Dataset, Manifest | None]:
    """The dataset that the step "select" would save now."""
    # With DuckDB, which those who list jobs do without.
    from api.services.datasets.new_dataset import foreseen_dataset

    request = new_dataset(session.records, job, saved)
    return foreseen_dataset(session.workspace, request, saved["at"], session.caller.owner)


def new_dataset(records: RecordStore, job: str, saved: Mapping[str, Any]) -> NewDataset:
    """The dataset that the step "select" saves.

    Args:
        records: The caller's.
        job: The job's name.
        saved: What was kept of its question.

    Raises:
        InvalidInput: The division cannot be used.
    """
    question, divide = Question.model_validate(saved["question"]), saved.get("divide")
    name = saved["save_as"] or job.removeprefix(records.own_names)
    try:
        of_division = {} if divide is None else set_fields(NewSplit.model_validate(divide))
        division = {"seed": question.seed, **of_division}
        return NewDataset(name=name, question=question, **division)
    except ValueError as error:
        raise InvalidInput(f"divide: {validation_message(error)}") from error


def _base(kind: str, whole: Dataset | None, save_as: str | None) -> str:
    """The part of a made-up name that follows the kind."""
    if whole is not None:
        return whole.name
    return (save_as or "").removeprefix(f"{kind}-")


def _resources(jobs: Beginner, kind: str, options: Mapping[str, Any]) -> Resources:
    """The resources that a job asks of machines; its settings are checked.

    Raises:
        InvalidInput: One cannot be used.
        NotAllowed: The server runs no programs of this caller.
        NotFound: There is no such model.
    """
    resources = Resources.from_json(options.get("resources") or {})
    if kind == "run":
        need_programs(jobs.session)
        CommandLine.parse(options["command"])
        return replace(resources, ranks=options.get("ranks", 1))
    workers = options.get("workers", 2)
    packages: tuple[str, ...] = ("tensorflow",)
    if kind == "train":
        own = {name: value for name, value in options.items() if name not in _OF_ALL}
        settings = TrainSettings(**own)
        check_settings(settings)
        workers = settings.workers
        packages = training_packages(workers, settings.model)
    else:
        for model in filter(None, (options["model"], options.get("compare"))):
            check_model(
                jobs.session.records,
                jobs.model(model),
                trusts=options.get("trust_model", False),
            )
    return replace(resources, ranks=workers, packages=packages)
