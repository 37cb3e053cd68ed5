"""Orders of a session's caller: each checked, and its job begun, described, or gone on with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.schemas.base import set_fields
from api.schemas.new_datasets import NewDataset, NewSplit
from api.services.jobs.owners import call_of
from api.services.jobs.programs import need_programs
from catalog.errors import InvalidInput, NotAllowed, NotFound, UnknownName
from catalog.records.datasets import complete_dataset
from catalog.records.jobs import recorded_job
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Job
from ingest.sources.source_options import NO_OPTIONS, SourceOptions
from pipeline.archive.migrate import check_migration
from pipeline.jobs.changes import changed_order
from pipeline.jobs.follow import refresh
from pipeline.jobs.inference.chosen_model import no_training
from pipeline.jobs.inference.chosen_onnx import onnx_path
from pipeline.jobs.inference.earlier_validation import earlier_validation
from pipeline.jobs.plan import plan, work_of
from pipeline.jobs.program.chosen_checkpoint import chosen_checkpoint
from pipeline.jobs.request import JobPaths
from pipeline.jobs.submit import (
    Described,
    check_plan,
    check_resumable,
    describe,
    record_work,
    resume,
    submit,
)
from pipeline.jobs.work import JobHome, PlaceFences, Work
from pipeline.jobs.workflow.task_paths import RUN
from pipeline.manifest import Manifest
from pipeline.runs.checkpoint_steps import named_checkpoint
from pipeline.runs.job_order import JobOrder
from pipeline.runs.job_orders import JOB_ORDERS
from pipeline.runs.orders import FramesOrder, ModelOrder, Order, Program, Training, Validation
from pipeline.runs.prediction_set import BY_FKEY, BY_NAME, IDS, LABELS, is_on_server
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling
from pipeline.staging.stage import newest_manifest
from query.question.question import Question
from query.question.wrong_value import validation_message

if TYPE_CHECKING:
    import pyarrow as pa

    from api.services.call import Call
    from api.workspace import Workspace


@dataclass(frozen=True)
class Checked:
    """An order that its caller may give, with names as they are meant."""

    order: JobOrder
    """The order."""
    dataset: Dataset | None
    """What it names; None where a question chooses the frames, or it names none."""
    snapshot: int | None
    """Of the catalog that answers the question; None for no question."""
    notes: Sequence[str]
    """Statements that the user should know before its job runs."""


def begin(call: "Call", order: JobOrder) -> tuple[Job, Sequence[str]]:
    """Begin the job of an order; its record, and what its user should know.

    Raises:
        FramesiftError: The order cannot be carried out, or the caller may not give it.
    """
    checked, home = checked_order(call, order), home_of(call)
    requested = _asked(call, checked)
    job = submit(
        home.records, home.queue, lambda: plan(home, checked.order, checked.dataset, requested)
    )
    return job, checked.notes


def dry_run(
    call: "Call", order: JobOrder
) -> tuple[Dataset | None, Sequence[Described], Sequence[str]]:
    """The dataset and the steps of an order's job, which does not begin, and notes for its user.

    Of a question the dataset is the one that its frames would be saved as now; of a scaling study
    the steps are its trainings, one for each number of ranks.

    Raises:
        FramesiftError: As of `begin`.
    """
    checked, home = checked_order(call, order), home_of(call)
    order = checked.order
    planned = plan(home, order, checked.dataset, _asked(call, checked))
    if isinstance(order, Scaling):
        if order.question is not None:
            order = replace(order, save_as=order.saves_as or planned.name)
        return _described_trainings(call, order, checked)
    dataset, manifest = checked.dataset, None
    if not isinstance(order, Order):
        return dataset, describe(home.records, home.queue, planned), checked.notes
    if dataset is None:
        # With DuckDB, which those who list jobs do without.
        from api.services.datasets.new_dataset import previewed_dataset

        request = new_dataset(home.records, planned.name, order)
        dataset, manifest = previewed_dataset(
            call.workspace, request, checked.snapshot, call.caller.owner
        )
    if planned.work is None:
        manifest = manifest or Manifest.read(newest_manifest(home.records, dataset))
        work = work_of(home, _on(order, dataset), dataset, planned.paths, manifest)
        planned = planned.with_work(work)
    return dataset, describe(home.records, home.queue, planned), checked.notes


def _described_trainings(
    call: "Call", order: Scaling, checked: Checked
) -> tuple[Dataset | None, Sequence[Described], Sequence[str]]:
    """A training of each number of ranks of a study, as it would be submitted."""
    dataset, steps = checked.dataset, []
    for ranks in order.ranks:
        dataset, of_training, _ = dry_run(call, order.training(ranks, 1))
        run = next(step for step in of_training if step.name == RUN)
        steps.append(replace(run, name=f"training-r{ranks}"))
    return dataset, steps, checked.notes


def plan_work(call: "Call", job: Job, dataset: Dataset, order: Order) -> None:
    """Plan what the backend of a job of several steps is handed, once its frames are there.

    Raises:
        FramesiftError: It cannot be handed that, or the job's owner may not begin it any more.
    """
    if order.kind == "run":
        need_programs(call)
    record_work(call.records, job, _work(call, job, dataset, order))


def go_on(call: "Call", job: Job, workers: int | None, bad_frames: str | None) -> Job:
    """Start the next attempt of a job that failed or was cancelled; its record.

    Args:
        call: The caller.
        job: The job.
        workers: See pipeline.jobs.changes.changed_order.
        bad_frames: See there.

    Raises:
        InvalidInput: It has not ended, is done, or cannot be changed so.
    """
    if job.kind == "run":
        need_programs(call)
    if (workers, bad_frames) != (None, None):
        check_resumable(refresh(call.records, job))
    order = changed_order(job, workers, bad_frames)
    work = None
    if order is not None and job.request["stages"]:
        # Planned for its owner, whoever has it go on: another user may see other frames.
        owner = call_of(call.whole, job)
        work = _work(owner, job, complete_dataset(owner.records, job.dataset or ""), order)
    return resume(call.records, call.job_queue, job, order, work)


def checked_order(call: "Call", order: JobOrder) -> Checked:
    """The order, as far as it can be checked before its frames are known.

    Raises:
        FramesiftError: It cannot be carried out, or the caller may not give it.
    """
    if order.kind == "run":
        need_programs(call)
    order.check()
    if isinstance(order, Preflight):
        return _checked_preflight(call, order)
    if isinstance(order, Scaling):
        return _checked_study(call, order)
    if not isinstance(order, Order):
        raise UnknownName("job", order.kind, JOB_ORDERS)
    if order.migrate:
        check_migration(call.workspace.archive_access)
    if order.question is not None:
        question = Question.model_validate(order.question)
        return _checked_question(call, _with_models(call, order), question)
    name, notes = str(order.dataset), []
    dataset = complete_dataset(call.records, name)  # before anything is said of a model
    order = _with_models(call, order)
    if isinstance(order, ModelOrder) and order.model:
        # With pyarrow, which those who list jobs do without.
        from api.services.jobs.trained_frames import notes_on, version_for

        scores = order.kind == "validate"
        notes = notes_on(call.workspace, order.model, name, order.split, scores=scores)
        name = version_for(call.workspace, order.model, name, order.split)
        dataset = complete_dataset(call.records, name)
    return Checked(replace(order, dataset=name), dataset, None, notes)


def _checked_preflight(call: "Call", order: Preflight) -> Checked:
    if order.path is not None:
        if not call.caller.sees_all:
            raise NotAllowed(
                f"path {order.path}: folders of the ranks' machines are named by users who see "
                "every row; give a dataset, whose files are read"
            )
        _options_of(call, order.path)  # where the caller may name it
    if order.dataset is None:
        return Checked(order, None, None, ())
    dataset = complete_dataset(call.records, order.dataset)
    return Checked(replace(order, dataset=f"{dataset.name}@{dataset.version}"), dataset, None, ())


def _checked_study(call: "Call", order: Scaling) -> Checked:
    """The study, if each of its trainings could begin now; they read the same version."""
    dataset = None
    if order.question is None:  # before anything is said of a model
        dataset = complete_dataset(call.records, str(order.dataset))
        order = replace(order, dataset=f"{dataset.name}@{dataset.version}")
    if order.continue_from is not None:
        order = replace(order, continue_from=_model(call, str(order.continue_from)))
    checked = Checked(order, dataset, None, ())
    if order.question is not None:
        checked = _checked_question(call, order, Question.model_validate(order.question))
    home, asked = home_of(call), _asked(call, checked)
    for ranks in order.ranks:
        training = plan(home, order.training(ranks, 1), checked.dataset, asked)
        check_plan(home.records, home.queue, training)
    return checked


def _checked_question(call: "Call", order: FramesOrder, question: Question) -> Checked:
    # With DuckDB, which those who list jobs do without.
    from api.services.selections import described
    from pipeline.datasets.datasets import name_of_new
    from pipeline.datasets.split import parse_split

    described(call.workspace, question)
    if order.saves_as is not None:
        name_of_new(call.records, order.saves_as)
    order = replace(order, question=question.model_dump(mode="json"))
    if order.divide is not None:
        parse_split(new_dataset(call.records, order.kind, order).split or "")
    # Another attempt of the step answers alike, whatever was ingested meanwhile.
    snapshot = question.snapshot_for(None) or call.workspace.catalog.snapshot()
    return Checked(order, None, snapshot, ())


def new_dataset(records: RecordStore, job: str, order: FramesOrder) -> NewDataset:
    """The dataset that the frames of an order's question become.

    Args:
        records: The caller's.
        job: Name of the order's job.
        order: The order.

    Raises:
        InvalidInput: The division cannot be used.
    """
    question = Question.model_validate(order.question)
    name = order.saves_as or job.removeprefix(records.own_names)
    try:
        divided = {} if order.divide is None else set_fields(NewSplit.model_validate(order.divide))
        return NewDataset(name=name, question=question, **{"seed": question.seed, **divided})
    except ValueError as error:
        raise InvalidInput(f"divide: {validation_message(error)}") from error


def home_of(call: "Call") -> JobHome:
    """The caller's home, as jobs are planned for it."""
    return JobHome(
        call.records, call.job_queue, partial(_slices, call.workspace), partial(_fences, call)
    )


def _work(call: "Call", job: Job, dataset: Dataset, order: Order) -> Work:
    paths = JobPaths(Path(job.paths["folder"]))
    return work_of(home_of(call), _on(order, dataset), dataset, paths)


def _on(order: Order, dataset: Dataset) -> Order:
    return order.on(f"{dataset.name}@{dataset.version}")


def _with_models(call: "Call", order: Order) -> Order:
    """The order with models as jobs take them."""
    if isinstance(order, Training) and order.continue_from is not None:
        return replace(order, continue_from=_model(call, str(order.continue_from)))
    if isinstance(order, Program) and order.checkpoint is not None:
        # The newest of now, whatever its program writes until this one begins.
        return replace(order, checkpoint=chosen_checkpoint(call.records, order.checkpoint)[0])
    if isinstance(order, Validation) and order.compare is not None:
        earlier = earlier_validation(call.records, order.compare)
        compare = order.compare if earlier else _model(call, order.compare)
        order = replace(order, compare=compare)
    if isinstance(order, Validation) and order.scores_predictions:
        _fences(call, order)  # before its steps are planned, too
        order = replace(order, encoding=encoding_of(order.encoding))
    elif isinstance(order, ModelOrder):
        order = replace(order, model=_model(call, order.model))
    if isinstance(order, ModelOrder) and order.trained_on is not None:
        trained = complete_dataset(call.records, order.trained_on)
        order = replace(order, trained_on=f"{trained.name}@{trained.version}")
    return order


def _fences(call: "Call", order: Validation) -> PlaceFences:
    """How the predictions of an order are opened; over REST their places may be named as sources'.

    A job's scores are the server's own files.

    Raises:
        NotAllowed: They may not be named.
    """
    folder = order.scores if Path(order.scores or "").is_absolute() else None
    named_by = order.named_by if order.named_by not in (None, BY_NAME, BY_FKEY) else None
    options, of_list = (
        NO_OPTIONS if place is None else _options_of(call, place)
        for place in (order.predictions or folder, named_by)
    )
    return PlaceFences(options.to_json(), of_list.within)


def encoding_of(
    encoding: str | Mapping[str, Any] | None,
) -> str | Mapping[str, Any] | None:
    """An encoding of predictions; of a layout's name the layout's class list.

    Raises:
        UnknownName: There is no such layout.
        InvalidInput: It has no classes.
    """
    if not isinstance(encoding, str) or encoding in (IDS, LABELS):
        return encoding
    from ingest.layouts.read_layout import preset, preset_names

    if encoding not in preset_names():
        raise UnknownName("encoding", encoding, [IDS, LABELS, *preset_names()])
    classes = preset(encoding).classes
    if classes is None:
        raise InvalidInput(
            f"encoding {encoding}: the layout leaves its classes to a file of the data set; give "
            "that file"
        )
    return {"layout": encoding, **classes.to_json()}


def _options_of(call: "Call", place: str) -> SourceOptions:
    """Options that open a place of predictions, and keep it where the caller may name sources.

    A place on a server is reached as the source that it lies in: its endpoint, its keys.

    Raises:
        NotAllowed: The caller may not name it.
    """
    if is_on_server(place) and not call.caller.sees_all:
        raise NotAllowed(
            f"predictions {place}: a place on a server is named by users who see every row; copy "
            "them to a folder of this server"
        )
    options = _source_options(call.records, place) if is_on_server(place) else None
    if call.is_command:
        return options or NO_OPTIONS
    from api.services.sources.places import allowed_place, fenced

    settings = call.workspace.settings
    allowed = allowed_place(settings, place, NO_OPTIONS, call.caller)
    return options or fenced(settings, allowed, NO_OPTIONS, call.caller)


def _source_options(records: RecordStore, place: str) -> SourceOptions | None:
    """Options of the source that a URI lies in, of several the innermost; None where in none."""
    around = [
        source
        for source in recorded_sources(records)
        if f"{place.rstrip('/')}/".startswith(f"{source.uri.rstrip('/')}/")
    ]
    if not around:
        return None
    innermost = max(around, key=lambda source: len(source.uri))
    return replace(SourceOptions.from_json(innermost.options), exclude=())


def _model(call: "Call", name: str) -> str:
    """A model as a job takes it, maybe with @STEP or @best; only a command may name a folder.

    Raises:
        NotFound: There is no job of that name.
        InvalidInput: The job is no training.
    """
    if call.is_command:
        return _lasting(call.records, name)
    base, checkpoint = named_checkpoint(name)
    of_program = base.partition("/")
    try:
        job = recorded_job(call.records, of_program[0])
    except NotFound as error:
        raise NotFound(
            "model",
            name,
            "expected the name of a training job that is done; GET /v1/models lists them",
        ) from error
    if job.kind == "run" and checkpoint is None:
        onnx_path(call.records, name)
        return name
    if job.kind != "train":
        raise no_training(job)
    if of_program[1]:
        raise InvalidInput(
            f"model {name}: {job.name} is a training, whose model has no file to name"
        )
    return job.name if checkpoint is None else f"{job.name}@{checkpoint}"


def _lasting(records: RecordStore, name: str) -> str:
    """A command's model, its folder absolute: later attempts are planned in other folders."""
    path, base = Path(name), named_checkpoint(name)[0]
    if not path.exists() and not Path(base).exists():
        return name
    try:
        recorded_job(records, name if path.exists() else base)
    except NotFound:
        return str(path.absolute())
    return name


def _asked(call: "Call", checked: Checked) -> dict[str, Any]:
    """What the steps of a job need to know beside the order."""
    caller = call.caller
    return {
        "caller": caller.user,
        "scope": caller.scope,
        "is_command": call.is_command,
        "at": checked.snapshot,
    }


def _slices(
    workspace: "Workspace", manifest: Manifest, split: str, names: Sequence[str]
) -> "pa.Table":
    # With DuckDB, which those who list jobs do without.
    from api.services.datasets.new_dataset import stores_of
    from pipeline.datasets.slice_values import slice_values

    return slice_values(stores_of(workspace), manifest, split, names=names)
