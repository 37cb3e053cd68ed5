"""/v1/jobs: long work that a server was asked for, or a command line began."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.fair_queue import caller_of
from api.http.job_events import Look, events_of
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.answers import JobBody, JobsAnswer
from api.schemas.computed_answers import ReportAnswer
from api.services.job_files import joined_logs, report_file
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.records.tables import Job
from catalog.text.bounded import Name
from pipeline.jobs.follow import cancel, refresh, refresh_all
from pipeline.jobs.run import submit_training, submit_validation
from pipeline.jobs.state import JobState
from pipeline.jobs.submit import resume
from pipeline.jobs.train_settings import TrainSettings

router = Router(prefix="/v1/jobs", tags=["jobs"])

Kind = Literal["train", "validate", "scan", "stage", "extract", "policy"]

JobName = Annotated[str, InPath(description="The job.", examples=["train-bikes-7"])]

_MOST_WORKERS = 1024
_MOST = 2**31 - 1


class _NewJob(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dataset: Name = Field(description="NAME, or NAME@VERSION.", examples=["bikes@1"])
    workers: int = Field(default=2, ge=1, le=_MOST_WORKERS, description="Processes.")
    name: Name | None = Field(default=None, description="The job's; made up by default.")
    backend: Name = Field(default="local", description="Where it runs.")


class NewTraining(_NewJob):
    """A network to be trained on a dataset's split."""

    kind: Literal["train"] = Field(examples=["train"])
    batch_size: int = Field(default=4, ge=1, le=_MOST, description="Frames per worker and step.")
    max_steps: int | None = Field(
        default=None,
        ge=1,
        le=_MOST,
        description="Steps; 300 by default, or one epoch where that is more.",
    )
    epochs: int | None = Field(
        default=None, ge=1, le=_MOST, description="The length in epochs, instead of max_steps."
    )
    learning_rate: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="Of one worker."
    )
    height: int | None = Field(default=None, ge=1, le=65_535, description="Network input [pixels].")
    width: int | None = Field(default=None, ge=1, le=65_535, description="Network input [pixels].")
    seed: int = Field(default=0, ge=0, le=_MOST, description="Seed of weights and order.")
    split: Name | None = Field(
        default=None,
        description="Split to train on; train, or all frames of a dataset that is not divided.",
    )
    continue_from: Name | None = Field(
        default=None,
        description="Name of a training job: begin a new run with the weights of its model.",
    )


class NewValidation(_NewJob):
    """A model to be validated on a dataset's split."""

    kind: Literal["validate"] = Field(examples=["validate"])
    model: Name = Field(description="Name of a training job.", examples=["train-bikes-7"])
    split: Name | None = Field(
        default=None,
        description="Split to validate on; validation, or all frames of a dataset not divided.",
    )


NewJob = Annotated[NewTraining | NewValidation, Field(discriminator="kind")]

BEGUN: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "The job that does it.",
        "headers": {
            "Location": {"description": "Of the job.", "schema": {"type": "string"}},
        },
    }
}
"""What an operation that begins a job answers."""

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"description": "What was printed.", "content": {"text/plain": {"example": "step 1\n"}}}
}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`event: job` with the job as `data` on every change; a comment at least "
        "every 15 seconds; the end after a state that does not change any more.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: 1f0e\nevent: job\ndata: {"name": "train-bikes-7"}\n\n',
            }
        },
    },
    204: {"description": "The job has ended, and Last-Event-ID is of its last event."},
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "image/png": {"schema": {"type": "string", "format": "binary"}},
            "text/html": {
                "schema": {"type": "string"},
                "example": "<!doctype html>\n<title>train-bikes-7</title>\n",
            },
            "application/json": {"schema": {"type": "object"}, "example": {"miou": 0.43}},
        },
    }
}


def job_begun(workspace: Workspace, job: Job, response: Response) -> JobBody:
    """The answer to what became a job: where it is, and the job."""
    response.headers["Location"] = f"/v1/jobs/{quote(job.name, safe='')}"
    return JobBody.of(job, workspace.place)


@router.get("", rule=READ)
async def get_jobs(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    kind: Annotated[Kind | None, Query(description="Only of this kind.")] = None,
    state: Annotated[JobState | None, Query(description="Only in this state.")] = None,
) -> JobsAnswer:
    """Jobs, newest first."""
    return await run_in_threadpool(_listed, workspace, page, kind, state)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"kind": "train", "dataset": "bikes@1", "workers": 2, "max_steps": 300},
)
async def post_job(wanted: NewJob, workspace: CurrentWorkspace, response: Response) -> JobBody:
    """Train on a dataset, or validate a model: a job does it, and goes on without this server."""
    return job_begun(workspace, await run_in_threadpool(_submitted, workspace, wanted), response)


@router.get("/{name}", rule=READ)
async def get_job(name: JobName, workspace: CurrentWorkspace) -> JobBody:
    """A job, as it stands now."""
    return JobBody.of(await run_in_threadpool(_current, workspace, name), workspace.place)


@router.post("/{name}/cancel", rule=WRITE, status_code=202, responses=BEGUN)
async def post_cancel(name: JobName, workspace: CurrentWorkspace, response: Response) -> JobBody:
    """Ask a job to end; nothing happens where it has ended.

    Its programs have two minutes to keep what they have, such as a checkpoint.
    """

    def ask() -> Job:
        return cancel(workspace.records, workspace.records.job(name))

    return job_begun(workspace, await run_in_threadpool(ask), response)


@router.post("/{name}/resume", rule=WRITE, status_code=202, responses=BEGUN)
async def post_resume(name: JobName, workspace: CurrentWorkspace, response: Response) -> JobBody:
    """Start the next attempt of a job that failed or was cancelled; it goes on where that ended.

    A training goes on from its checkpoint, a validation validates the shards that are missing, and
    scans, stagings and extractions do the rest.
    """

    def begin() -> Job:
        job = workspace.records.job(name)
        return resume(workspace.records, workspace.job_queue, job)

    return job_begun(workspace, await run_in_threadpool(begin), response)


@router.get("/{name}/logs", rule=READ, response_class=Response, responses=_TEXT)
async def get_logs(
    name: JobName,
    workspace: CurrentWorkspace,
    command: Annotated[
        str | None, Query(description="Only this log, such as train-0; its text as it is.")
    ] = None,
    offset: Annotated[
        int, Query(ge=0, lt=2**63, description="Bytes to pass over; with `command`.")
    ] = 0,
) -> Response:
    """What a job's commands printed, each log under a heading; or what one of them printed.

    With `command`, `offset` and the answer's length say where the next request goes on.
    """
    if offset and command is None:
        raise InvalidInput("offset: counts in one log: say with command in which")
    job = await run_in_threadpool(workspace.records.job, name)
    size, chunks = await run_in_threadpool(joined_logs, Path(job.paths["logs"]), command, offset)
    headers = {"Content-Length": str(size), "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(chunks, 200, headers, "text/plain; charset=utf-8")


@router.get("/{name}/events", rule=READ, response_class=Response, responses=_EVENTS)
async def get_events(
    request: Request,
    name: JobName,
    workspace: CurrentWorkspace,
    last_event_id: Annotated[
        str | None, Header(description="Of the last event that the client has.")
    ] = None,
) -> Response:
    """A job's changes as they come (server-sent events)."""
    state, who = request.app.state, caller_of(request.scope)
    # Who may not listen to the job is told so; what is looked at is the same for all others.
    job = await run_in_threadpool(workspace.records.job, name)
    records, is_limited = state.workspace.records, workspace.is_limited

    def body() -> JobBody:
        return JobBody.of(refresh(records, records.job(job.name)), workspace.place)

    def look() -> Awaitable[Look]:
        looked: Awaitable[Look] = state.listeners.look((job.name, is_limited), body)
        return looked

    return events_of(look, await look(), last_event_id, state.stopping, state.listeners, who)


@router.get(
    "/{name}/report", rule=READ, response_model=None, responses={200: {"model": ReportAnswer}}
)
async def get_report(name: JobName, workspace: CurrentWorkspace) -> dict[str, Any]:
    """A validation's report as data."""
    return await run_in_threadpool(
        lambda: report_file(_current(workspace, name), "report.json").document()
    )


@router.get("/{name}/files/{path:path}", rule=READ, response_class=Response, responses=_FILE)
async def get_file(
    name: JobName,
    path: Annotated[str, InPath(description="Its name.", examples=["report.html"])],
    workspace: CurrentWorkspace,
) -> Response:
    """A file that a job made.

    Of a validation report.html, report.json, metrics.json, confusion_matrix.png and
    frame_scores.parquet; of a training metrics.json and metrics.jsonl; of other jobs result.json,
    the document that their command ended with.
    """
    return await run_in_threadpool(lambda: report_file(_current(workspace, name), path).response())


def _listed(
    workspace: Workspace, page: CurrentPage, kind: str | None, state: str | None
) -> JobsAnswer:
    records = workspace.records
    refresh_all(records)
    found = records.jobs(
        kind=kind,
        states=None if state is None else [state],
        before=page.number_after("jobs"),
        limit=page.limit + 1,
    )
    shown, follows = page.page("jobs", found, lambda job: (job.id,))
    return JobsAnswer(jobs=[JobBody.of(job, workspace.place) for job in shown], next=follows)


def _submitted(workspace: Workspace, wanted: NewTraining | NewValidation) -> Job:
    records = workspace.records
    dataset = records.whole_dataset(wanted.dataset)
    if isinstance(wanted, NewTraining):
        parent = wanted.continue_from
        settings = TrainSettings(
            workers=wanted.workers,
            batch_size=wanted.batch_size,
            max_steps=wanted.max_steps,
            epochs=wanted.epochs,
            learning_rate=wanted.learning_rate,
            height=wanted.height,
            width=wanted.width,
            seed=wanted.seed,
            split=wanted.split,
            continue_from=None if parent is None else _training(workspace, parent),
        )
        return submit_training(
            records,
            workspace.job_queue,
            dataset,
            settings,
            name=wanted.name,
            backend_name=wanted.backend,
        )
    return submit_validation(
        records,
        workspace.job_queue,
        _training(workspace, wanted.model),
        dataset,
        workers=wanted.workers,
        split=wanted.split,
        name=wanted.name,
        backend_name=wanted.backend,
    )


def _training(workspace: Workspace, name: str) -> str:
    """The name of a training job; over REST no folder may be named.

    Raises:
        NotFound: There is none of that name.
        InvalidInput: The job is none.
    """
    try:
        job = workspace.records.job(name)
    except NotFound as error:
        raise NotFound(
            "model",
            name,
            "expected the name of a training job that is done; GET /v1/models lists them",
        ) from error
    if job.kind != "train":
        raise InvalidInput(f"model {job.name}: is a job of kind {job.kind}, not train")
    return job.name


def _current(workspace: Workspace, name: str) -> Job:
    return refresh(workspace.records, workspace.records.job(name))
