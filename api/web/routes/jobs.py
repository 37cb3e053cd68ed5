"""/jobs: jobs as they run, what they printed and found; /new-job begins one."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode

from fastapi import Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from api.http.dependencies import CurrentSession
from api.http.routes.jobs import get_events, get_file
from api.http.routing import Router
from api.http.rules import READ, WRITE, WRITE_ALL_ROWS, Api
from api.schemas.jobs import JobBody
from api.services.jobs.files import FIGURE
from api.services.jobs.improvable import (
    can_predict,
    improvable_model,
    needs_command,
    weakest_classes,
)
from api.services.pictures import ValidatedFrames
from api.services.session import Session
from api.web.find.url_question import UrlQuestion
from api.web.find.view import View
from api.web.forms import Form, form_of
from api.web.narrowed import Holding
from api.web.pages import HEADERS, elsewhere, gone_on, is_part, page
from api.web.run.choices import (
    Choices,
    dataset_choices,
    model_choices,
    or_no_dataset,
    or_predictions,
    trained,
)
from api.web.run.curves import Curve, curves_of, plots_of, program_curves
from api.web.run.defaults import defaults_of, following
from api.web.run.differences import Differences, of_comparison, of_reports
from api.web.run.estimate import estimated, frames_of_splits
from api.web.run.job_form import (
    KINDS,
    AnyBody,
    further_fields,
    new_job,
    settings_again,
    usual_values,
)
from api.web.run.log_lines import without_launcher
from api.web.run.matrix import (
    MOST_SHOWN,
    cell_path,
    classes_at,
    label_tags,
    matrix_of,
    question_path,
    shown_of,
)
from api.web.run.measured import (
    checkpoints_of,
    command_of,
    compared_rows,
    figures_of,
    files_of,
    progress_of,
    short_progress,
    slices_of,
    tables_shown,
    warnings_of,
)
from api.web.run.prediction import prediction_of, prediction_of_validated
from api.web.run.report_figures import calibration_of, scored_frames, sizes_of, views_of
from api.web.run.scanned import ScannedSource, scanned_source
from catalog.errors import FramesiftError, NotFound, StorageError
from pipeline.job_state import FINISHED

router = Router(api=Api.WEB, include_in_schema=False)

_LISTED = 100
_HERE = {"section": "/jobs"}
"""Entry of the navigation that is current on every page of jobs."""

_LOG_BYTES = 32_768
"""Bytes at the end of a log that the page shows."""

LogQuery = Annotated[str, Query(description="The log shown; the one written last by default.")]

FindQuery = Annotated[
    str, Query(max_length=200, description="Only the log's lines that have this text.")
]

_MOST_COMPARED = 6


@router.get("/jobs", rule=READ)
def get_jobs_page(
    request: Request,
    session: CurrentSession,
    job: Annotated[list[str] | None, Query(description="Jobs side by side.")] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
    holding: Holding = "",
) -> Response:
    """Jobs, newest first, page by page; those that are named side by side, and first."""
    jobs = session.jobs.list(before=before, limit=_LISTED + 1, holding=holding)
    older = jobs[_LISTED - 1].number if len(jobs) > _LISTED else None
    named = [*dict.fromkeys(job or ())][:_MOST_COMPARED]
    compared = session.jobs.compare([] if is_part(request) else named)  # a search takes the list
    ticked = [session.jobs.get(name) for name in named]
    differences = _differences(session, compared.jobs)
    drawn = () if differences is None else differences.metrics
    context = {
        "jobs": [*ticked, *(one for one in jobs[:_LISTED] if one.name not in named)],
        "ticked": named, "older": older, "before": before, "holding": holding,
        "progress_of": short_progress,
        "compared": compared.jobs, "rows": compared_rows(compared, drawn),
        "differences": differences,
        "curves_path": _curves_path(compared.jobs) if "step" in compared.metrics else "",
    }  # fmt: skip
    return page(request, "jobs.html", context)


@router.get("/curves", rule=READ)
def get_curves(
    session: CurrentSession, job: Annotated[list[str], Query(description="Jobs side by side.")]
) -> Response:
    """The curves of trainings and programs, which scripts draw, and whether one still runs."""
    jobs = [session.jobs.get(name) for name in job[:_MOST_COMPARED]]
    content = {
        "running": any(each.state not in FINISHED for each in jobs),
        "plots": plots_of({each.name: _curves(session, each) for each in jobs}),
    }
    return JSONResponse(content, headers=HEADERS)


@router.get("/new-job", rule=READ.but(work="statistics"))
def get_new_job(
    request: Request, session: CurrentSession, dataset: str = "", model: str = "", again: str = ""
) -> Response:
    """The form; with a question of Find, its frames are saved as a dataset for the job.

    With ``again=JOB`` the form of a training has the settings of that one, and begins with its
    model. Users who may not begin jobs are told who may.
    """
    if not session.caller.may("write"):
        return page(request, "job_new.html", _HERE)
    pairs = request.query_params.multi_items()
    own = ("dataset", "model", "again")
    search = UrlQuestion.of(pair for pair in pairs if pair[0] not in own)
    question = search.question(session.tags.classes_and_groups())
    models = model_choices(session, chosen=model)
    frames = 0
    if search.pairs:
        counted = session.statistics.facets("camera", question=question, at=search.at)
        frames = counted.matching
    datasets = dataset_choices(session, chosen=dataset)
    of_training = _again(session, again)
    context = {
        "datasets": datasets,
        "defaults": _defaults(session, datasets, frames, of_training),
        "read": or_no_dataset(dataset_choices(session)),
        "models": models,
        "trained": trained(models),
        "validated": or_predictions(models),
        "model": model,
        "again": of_training,
        "usual": {kind: usual_values(kind) for kind in KINDS},
        "backends": session.jobs.backends(),
        "further": {kind: further_fields(kind) for kind in ("train", "validate", "scaling")},
        "asked": search,
        "frames": frames,
        "described": session.selections.describe(question, at=search.at),
        **_HERE,
    }
    return page(request, "job_new.html", context)


def _defaults(
    session: Session, datasets: Choices, frames: int, again: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """What the empty fields of each kind's form stand for, as it is first shown."""
    offered = [name for name, _ in datasets.options]
    dataset = datasets.chosen if datasets.chosen in offered else (offered or [""])[0]
    dataset = "" if frames else dataset
    splits = {"": frames} if frames else {}
    if dataset:
        splits = frames_of_splits(session.datasets.get(dataset))
    fields = {"dataset": dataset}
    return {
        kind: defaults_of(session, kind, {**fields, **(again if kind == "train" else {})}, splits)
        for kind in KINDS
    }


def _again(session: Session, name: str) -> dict[str, str]:
    """The settings of a training that goes on from another's model, by the form's fields."""
    if not name:
        return {}
    try:
        job = session.jobs.get(name)
    except NotFound:  # a model of scored predictions has no training
        return {}
    return settings_again(job) if job.kind == "train" else {}


@router.get("/new-job/datasets", rule=READ)
def get_dataset_choices(
    request: Request,
    session: CurrentSession,
    holding: Holding = "",
    none: Annotated[bool, Query(description="Whether no dataset is offered, too, first.")] = False,
) -> Response:
    """The newest datasets whose name holds a text: options of the form."""
    choices = dataset_choices(session, holding=holding)
    return page(request, "_choices.html", {"choices": or_no_dataset(choices) if none else choices})


@router.get("/new-job/models", rule=READ)
def get_model_choices(request: Request, session: CurrentSession, holding: Holding = "") -> Response:
    """The newest models whose name holds a text, likewise, and none."""
    choices = or_predictions(model_choices(session, holding=holding))
    return page(request, "_choices.html", {"choices": choices})


@router.get("/new-job/trained", rule=READ)
def get_trained_choices(
    request: Request, session: CurrentSession, continue_from: Holding = "", compare: Holding = ""
) -> Response:
    """The newest models of trainings whose name holds what is typed in a field, without @STEP."""
    holding = (continue_from or compare).strip().partition("@")[0]
    choices = trained(model_choices(session, holding=holding))
    return page(request, "_choices.html", {"choices": choices})


@router.get("/new-job/plan", rule=READ)
def get_plan(request: Request, session: CurrentSession, dataset: str) -> Response:
    """The plan of a dataset's staging, with its bytes and time, and its splits: a part of forms."""
    why, plan, splits = "", None, {}
    try:
        plan = session.stagings.plan(dataset)
        splits = frames_of_splits(session.datasets.get(dataset))
    except FramesiftError as error:
        why = str(error)
    return page(request, "_plan.html", {"plan": plan, "why": why, "splits": splits})


@router.get("/new-job/estimate", rule=READ)
def get_estimate(
    request: Request,
    session: CurrentSession,
    kind: str,
    dataset: str = "",
    frames: Annotated[int, Query(ge=0, lt=1 << 53, description="Of a question.")] = 0,
) -> Response:
    """What earlier jobs like a form's say of its time, and its defaults: a part of the form.

    Of a dataset, or of as many frames as answer the form's question.
    """
    fields = {name: text for name, value in request.query_params.items() if (text := value.strip())}
    estimate = None
    splits = {"": frames} if frames else {}
    with suppress(NotFound):  # the plan beside it says so
        splits = frames_of_splits(session.datasets.get(dataset)) if dataset else splits
        estimate = estimated(session, kind, fields, splits)
    defaults = following(session, kind, fields, splits) if kind in KINDS else {}
    return page(request, "_estimate.html", {"estimate": estimate, "defaults": defaults})


@router.post("/new-job", rule=WRITE)
async def post_new_job(request: Request, session: CurrentSession) -> Response:
    """Begin a job, and go on to its page."""
    form = await form_of(request)

    def begin() -> JobBody:
        return session.jobs.submit(_job_of(session, form).order())

    return gone_on(request, _path((await run_in_threadpool(begin)).name))


@router.post("/new-job/dry-run", rule=WRITE_ALL_ROWS)
async def post_dry_run_part(request: Request, session: CurrentSession) -> Response:
    """The hand-over to the job's backend: a part of the form, or a page of its own."""
    form = await form_of(request)

    def answer() -> Response:
        dry = session.jobs.describe(_job_of(session, form).order())
        template = "_dry_run.html" if is_part(request) else "dry_run.html"
        return page(request, template, {"dry": dry, **_HERE})

    return await run_in_threadpool(answer)


def _job_of(session: Session, form: Form) -> AnyBody:
    """The job that a form asks for, with the question of Find that it holds."""
    if not form.get("asked"):
        return new_job(form)
    search = UrlQuestion.of(parse_qsl(form.get("asked")))
    question = search.question(session.tags.classes_and_groups())
    if search.at is not None:
        question = question.model_copy(update={"snapshot": search.at})
    return new_job(form, question)


@router.get("/jobs/{name}", rule=READ)
def get_job_page(
    name: str,
    request: Request,
    session: CurrentSession,
    log: LogQuery = "",
    find: FindQuery = "",
    classes: Annotated[
        list[str] | None, Query(alias="class", description="Classes of the confusion matrix.")
    ] = None,
) -> Response:
    """A job: its state, curves, result, and the end of a log."""
    fields = _shown(session, name, classes or ())
    job = fields["job"]
    may_draw = job.kind == "train" or (
        job.kind == "run" and (fields["curves"] or job.state not in FINISHED)
    )
    path = _curves_path([name]) if may_draw else ""
    context = {**fields, **_output(session, name, log, find), "curves_path": path, **_HERE}
    return page(request, "job.html", context)


@router.get("/jobs/{name}/part", rule=READ)
def get_job_part(name: str, request: Request, session: CurrentSession) -> Response:
    """The part of the page that changes while the job runs."""
    return page(request, "_job.html", _shown(session, name))


@router.get("/jobs/{name}/output", rule=READ)
def get_job_output(
    name: str,
    request: Request,
    session: CurrentSession,
    log: LogQuery = "",
    find: FindQuery = "",
) -> Response:
    """The names of the logs, and the end of one or its lines with a text: a part of the page."""
    return page(request, "_logs.html", _output(session, name, log, find))


router.get("/jobs/{name}/events", rule=READ)(get_events)
router.get("/jobs/{name}/files/{path:path}", rule=READ)(get_file)


@router.post("/jobs/{name}/cancel", rule=WRITE)
def post_cancel_page(name: str, session: CurrentSession) -> Response:
    """Ask a job to end."""
    session.jobs.cancel(name)
    return elsewhere(_path(name))


@router.post("/jobs/{name}/resume", rule=WRITE)
def post_resume_page(name: str, session: CurrentSession) -> Response:
    """Start a job's next attempt."""
    session.jobs.resume(name)
    return elsewhere(_path(name))


@router.get("/jobs/{name}/frames", rule=READ.but(work="selection"))
def get_cell_frames(
    name: str,
    request: Request,
    session: CurrentSession,
    truth: str = "",
    predicted: str = "",
    cell: Annotated[
        str, Query(max_length=40, description="Places of the classes, in place of their names.")
    ] = "",
    begin: Annotated[int, Query(ge=0, lt=1 << 31, description="The first frame.")] = 0,
) -> Response:
    """The frames behind a cell of a validation's confusion matrix."""
    report = session.jobs.report(name)
    if cell:
        truth, predicted = classes_at(report, cell)
    confused = session.jobs.confused_frames(name, truth, predicted, begin=begin)
    tags = confused.tags
    fkeys = [frame["fkey"] for frame in confused.frames]
    validated = session.pictures.validated(name, _model_of(report), fkeys)
    shown = _look(session, validated, fkeys, tags)
    walked = shown.shown(truth=tags[0], predicted=tags[1])
    views = {fkey: _view(report, tags, validated.layer(fkey)) for fkey in fkeys}
    context = {
        "confused": confused, "path": cell_path(name, truth, predicted), "views": views,
        "validated": validated, "is_error": tags[0] != tags[1],
        "shows_errors": any(view.predicted for view in views.values()),
        "walk": urlencode([("cell", name), *walked.pairs]),
    }  # fmt: skip
    if is_part(request):
        return page(request, "_cell_frames.html", context)
    model = _scored(session, report)
    question = question_path(model, tags, shown) if model else ""
    job = session.jobs.get(name)
    context["predicts"] = can_predict(job.settings)
    context["by_command"] = needs_command(job.settings)
    context["prediction"] = prediction_of_validated(session, job)
    context |= {"job": name, "model": model, "question": question, **_HERE}
    return page(request, "cell.html", context)


@router.post("/jobs/{name}/predict", rule=WRITE)
def post_predict_page(name: str, session: CurrentSession) -> Response:
    """Have a validation's model predict the frames that it was validated on; go on to that job."""
    order = prediction_of(session.jobs.get(name)).order()
    return elsewhere(_path(session.jobs.submit(order).name))


@router.post("/jobs/{name}/scores", rule=WRITE_ALL_ROWS)
async def post_scores_page(name: str, request: Request, session: CurrentSession) -> Response:
    """Make a validation's scores tags of its model; go on to the frames of the form's cell."""
    form = await form_of(request)
    model = (await run_in_threadpool(session.tags.import_scores, name)).model
    tags = form.get("truth"), form.get("predicted")
    if not all(tags):
        return elsewhere(_path(name) + "#result")

    def look() -> UrlQuestion:
        frames = session.jobs.confused_frames(name, *tags).frames
        fkeys = [frame["fkey"] for frame in frames]
        return _look(session, session.pictures.validated(name, model, fkeys), fkeys, tags)

    return elsewhere(question_path(model, tags, await run_in_threadpool(look)))


def _path(name: str) -> str:
    return f"/jobs/{quote(name, safe='')}"


def _shown(session: Session, name: str, classes: Sequence[str] = ()) -> dict[str, Any]:
    job = session.jobs.get(name)
    context: dict[str, Any] = {
        "job": job, "ended": job.state in FINISHED, "curves": _curves(session, job),
        "progress": progress_of(job), "figures": figures_of(job),
        "checkpoints": checkpoints_of(job), "warnings": warnings_of(job),
        "tables": tables_shown(job), "files": files_of(session.jobs.file_sizes(name)),
        "command": command_of(job), "figure": _figure_path(session, job),
        "scanned": _scanned(session, job),
        "report": None, "matrix": None, "model": None, "damage": "",
        "differences": None, "improvable": None, "weakest": (), "scored": (),
    }  # fmt: skip
    if job.kind != "validate" or job.state != "done":
        return context
    try:
        report = session.jobs.report(name)
    except NotFound:
        return context
    except StorageError as error:
        return context | {"damage": str(error)}
    scored = scored_frames(session, report)
    return context | {
        "report": report, "matrix": matrix_of(report, classes[:MOST_SHOWN]),
        "slices": slices_of(report), "chosen_classes": bool(classes),
        "model": _scored(session, report),
        "scored": scored, "frames_views": views_of(session, name, _model_of(report), scored),
        "calibration": calibration_of(report), "object_sizes": sizes_of(report),
        "improvable": improvable_model(job.settings), "weakest": weakest_classes(job.metrics),
        "figures": figures_of(job, has_report=True), "differences": of_comparison(report),
    }  # fmt: skip


def _scanned(session: Session, job: JobBody) -> ScannedSource | None:
    """The source of a scan's job, for users who may see it; None of other jobs."""
    if job.kind != "scan" or not session.caller.sees_all:
        return None
    return scanned_source(session, job)


def _differences(session: Session, names: Sequence[str]) -> Differences | None:
    """The scores of two validations, the first beside the second; None of any other jobs."""
    if len(names) != 2:
        return None
    try:
        this, other = ((name, session.jobs.report(name)) for name in names)
    except (NotFound, StorageError):
        return None
    return of_reports(this, other)


def _figure_path(session: Session, job: JobBody) -> str:
    """The figure of a scaling study; empty for other jobs, and before its first training."""
    if job.kind != "scaling":
        return ""
    try:
        session.jobs.file(job.name, FIGURE)
    except NotFound:
        return ""
    return f"{_path(job.name)}/files/{FIGURE}"


def _output(session: Session, name: str, log: str, find: str) -> dict[str, Any]:
    """The names of a job's logs, and of the one that is shown its end, or the lines with a text."""
    sizes = session.jobs.log_sizes(name).logs
    return {
        "path": _path(name), "logs": [each.name for each in sizes], "log": log, "find": find,
        "end": None if find else session.jobs.log_end(name, log, _LOG_BYTES),
        "found": session.jobs.log_lines(name, log, find) if find else None,
        "plain": without_launcher,
    }  # fmt: skip


def _look(
    session: Session, validated: ValidatedFrames, fkeys: Sequence[str], tags: tuple[str, str]
) -> UrlQuestion:
    """How pages of a validation show all frames of a cell, of which these are the first."""
    model = validated.model
    if validated.scored and not validated.full.issuperset(fkeys):
        return shown_of(f"job:{validated.job}", tags)
    is_known = not validated.is_given and model in session.pictures.models()
    return shown_of(model if is_known else None, tags)


def _view(report: dict[str, Any], tags: tuple[str, str], layer: str) -> View:
    """How the page of a cell shows a frame, with what stands for its prediction."""
    view = shown_of(layer or None, tags).view
    predicted = label_tags(report, tags[1]) if view.predicted else ""
    return replace(view, truth=label_tags(report, tags[0]), predicted=predicted)


def _model_of(report: dict[str, Any]) -> str:
    """The name of the model that was validated."""
    return str(report.get("model", {}).get("name", ""))


def _scored(session: Session, report: dict[str, Any]) -> str | None:
    """The name of the report's model; None where the catalog has no scores of its validation."""
    name = _model_of(report)
    return name if name in session.tags.validated_models() else None


def _curves_path(jobs: Sequence[str]) -> str:
    return "/curves?" + urlencode([("job", name) for name in jobs])


def _curves(session: Session, job: JobBody) -> list[Curve]:
    """The curves of a job, as far as there are any."""
    if job.kind == "run":
        return program_curves(session.jobs.curves(job.name))
    paths: list[Path] = []
    for name in ("metrics.jsonl", "evaluations.jsonl") if job.kind == "train" else ():
        with suppress(NotFound):
            paths.append(session.jobs.file(job.name, name).path)
    return curves_of(paths)
