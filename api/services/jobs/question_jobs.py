"""Jobs that begin with a question: frames are chosen, saved and staged before, as steps of it."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from api.schemas.datasets import NewDataset
from api.schemas.jobs import JobBody
from api.services.jobs.programs import need_programs
from catalog.errors import InvalidInput
from catalog.records.datasets import whole_dataset
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

    def foresee(
        self, kind: str, job: str, foreseen: "Foreseen", options: Mapping[str, Any]
    ) -> Described:
        """The plan that its step "run" would hand to its backend."""

    def ask(
        self,
        kind: str,
        question: Question | None,
        dataset: str | None,
        save_as: str | None,
        afterwards: Sequence[str],
        options: Mapping[str, Any],
    ) -> JobBody:
        """Begin it; `afterwards` are the steps that follow when it is done."""


def or_question(method: Callable[..., JobBody]) -> Callable[..., JobBody]:
    """Give a method of Jobs, which begins a job on a dataset, a question in the dataset's place.

    It takes, besides its own:
        question: The frames that answer it are saved as a dataset, which the job works on.
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
        save_as: str | None = None,
        evict: bool = False,
        migrate: bool = False,
        **options: Any,
    ) -> JobBody:
        names = [*inspect.signature(method).parameters][1:]
        options |= dict(zip(names, arguments, strict=False))
        dataset = options.get("dataset")
        kind = method.__name__
        if (dataset is None) == (question is None):
            raise InvalidInput(
                f"{kind}: give a dataset, or the question of a selection; and not both"
            )
        if save_as is not None and question is None:
            raise InvalidInput(f"save as {save_as}: goes with a question, and not with a dataset")
        afterwards = [*(["evict"] if evict else []), *(["migrate"] if migrate else [])]
        if question is None and not afterwards and not _staged_before(jobs, dataset, options):
            return method(jobs, **options)
        options.pop("dataset", None)
        return jobs.ask(kind, question, dataset, save_as, afterwards, options)

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
    question: Question | None,
    dataset: str | None,
    save_as: str | None,
    afterwards: Sequence[str],
    options: Mapping[str, Any],
) -> Job:
    """Begin a job with its steps, once what can be checked is; see or_question.

    Raises:
        DryRun: Jobs are described only.
    """
    session, records = jobs.session, jobs.session.records
    whole = None if dataset is None else whole_dataset(records, dataset)
    resources = _resources(jobs, kind, options)
    chosen, start_after = backend(options.get("backend", "local")), options.get("start_after")
    if start_after is not None and not chosen.stages_beside:
        raise InvalidInput(
            f"start after {start_after:g} percent: backend {chosen.name} begins a job when all its "
            "frames are staged; leave it out"
        )
    stages = options.get("stage", True) and start_after is None
    if "evict" in afterwards and not options.get("stage", True):
        raise InvalidInput("evict: goes with staging, and nothing is staged; leave one out")
    if "migrate" in afterwards:
        check_migration(session.workspace.archive_access)
    saved: dict[str, Any] = {}
    if question is not None:
        # With DuckDB, which those who list jobs do without.
        from api.services.selections import described
        from pipeline.datasets.datasets import name_of_new

        described(session.workspace, question)
        if save_as is None and kind == "predict":
            save_as = f"predict-{Path(options['model']).name.replace('@', '-')}"
        if save_as is not None:
            name_of_new(records, save_as)
        # Another attempt of the step answers alike, whatever was ingested meanwhile.
        at = question.asked_of(None) or session.workspace.catalog.snapshot()
        saved = {"question": question.model_dump(mode="json"), "save_as": save_as, "at": at}
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
        *afterwards,
    ]
    settings = {name: value for name, value in options.items() if name != "name"}
    if jobs.queue.dry_run:
        raise _described(jobs, order, steps, saved, settings)
    of_caller = {"caller": session.caller.user, "is_command": session.is_command}
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

    name = saved["save_as"] or job.removeprefix(session.records.own_names)
    question = Question.model_validate(saved["question"])
    request = NewDataset(name=name, question=question, seed=question.seed)
    return foreseen_dataset(session.workspace, request, saved["at"], session.caller.user)


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
