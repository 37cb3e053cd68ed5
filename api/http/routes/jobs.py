"""/v1/jobs: long work that a server was asked for, or a command line began."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse, StreamingResponse

from api.http.dependencies import CurrentSession
from api.http.fair_queue import caller_of
from api.http.job_events import Look, events_of
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE, WRITE_ALL_ROWS
from api.schemas.comparisons import ComparisonBody, NewComparison
from api.schemas.jobs import DryRunBody, JobBody, JobsAnswer, Kind
from api.schemas.new_jobs import NewAttempt, NewJob
from api.schemas.timeline import LogSizesAnswer, TimelineAnswer
from api.schemas.validation_reports import ReportAnswer
from catalog.errors import InvalidInput
from pipeline.job_state import JobState

router = Router(prefix="/v1/jobs", tags=["jobs"])

JobName = Annotated[str, InPath(description="The job.", examples=["train-bikes-7"])]

BEGUN: dict[int | str, dict[str, Any]] = {
    202: {
        "description": "The job that does it.",
        "headers": {
            "Location": {"description": "Of the job.", "schema": {"type": "string"}},
        },
    }
}
"""Response of operations that begin a job."""

_TEXT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What was printed.",
        "content": {"text/plain": {"schema": {"type": "string"}, "example": "step 1\n"}},
    }
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


_INERT = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; "
    "img-src data:",
    "X-Content-Type-Options": "nosniff",
}
"""A page that a job made runs nothing, and loads nothing from elsewhere."""


def begun(job: JobBody, response: Response) -> JobBody:
    """The answer to what became a job, with where the job is."""
    response.headers["Location"] = f"/v1/jobs/{quote(job.name, safe='')}"
    return job


@router.get("", rule=READ)
def get_jobs(
    session: CurrentSession,
    page: CurrentPage,
    kind: Annotated[Kind | None, Query(description="Only of this kind.")] = None,
    state: Annotated[JobState | None, Query(description="Only in this state.")] = None,
) -> JobsAnswer:
    """Jobs, newest first."""
    before, limit = page.number_after("jobs"), page.limit + 1
    jobs = session.jobs.list(kind=kind, state=state, before=before, limit=limit)
    listed, follows = page.page("jobs", jobs, lambda job: (job.number,))
    return JobsAnswer(jobs=listed, next=follows)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"kind": "train", "dataset": "bikes@1", "workers": 2, "max_steps": 300},
)
def post_job(body: NewJob, session: CurrentSession, response: Response) -> JobBody:
    """Train on a dataset, validate a model, let it predict, or run a program: a job does it.

    It goes on without this server. A server runs programs only of those whom
    FRAMESIFT_RUN_PROGRAMS allows it.
    """
    return begun(session.jobs.submit(body.order()), response)


@router.post(
    "/dry-run",
    rule=WRITE_ALL_ROWS,
    example={"kind": "train", "dataset": "bikes@1", "backend": "slurm"},
)
def post_dry_run(body: NewJob, session: CurrentSession) -> DryRunBody:
    """The hand-over to a job's backend, with its command lines and scripts; nothing begins."""
    return session.jobs.describe(body.order())


@router.post("/compare", rule=READ, example={"jobs": ["train-bikes-7", "train-bikes-8"]})
def post_comparison(body: NewComparison, session: CurrentSession) -> ComparisonBody:
    """Jobs beside each other: the settings in which they differ, and what they measured."""
    return session.jobs.compare(body.jobs)


@router.get("/{name}", rule=READ)
def get_job(name: JobName, session: CurrentSession) -> JobBody:
    """A job, as it stands now."""
    return session.jobs.get(name)


@router.get("/{name}/timeline", rule=READ)
def get_timeline(name: JobName, session: CurrentSession) -> TimelineAnswer:
    """Every change of state of a job's tasks: its time, attempt and cause."""
    return session.jobs.timeline(name)


@router.delete("/{name}", rule=WRITE, status_code=204)
def delete_job(name: JobName, session: CurrentSession) -> Response:
    """Remove a job that has ended: its record, and its model, report and logs."""
    session.jobs.remove(name)
    return Response(status_code=204)


@router.post("/{name}/cancel", rule=WRITE, status_code=202, responses=BEGUN)
def post_cancel(name: JobName, session: CurrentSession, response: Response) -> JobBody:
    """Ask a job to end; nothing happens where it has ended.

    Its programs have two minutes to keep what they have, such as a checkpoint.
    """
    return begun(session.jobs.cancel(name), response)


@router.post(
    "/{name}/resume",
    rule=WRITE,
    status_code=202,
    responses=BEGUN,
    example={"workers": 4},
)
def post_resume(
    name: JobName, session: CurrentSession, response: Response, body: NewAttempt | None = None
) -> JobBody:
    """Start the next attempt of a job that failed or was cancelled; it goes on where that ended.

    A training goes on from its checkpoint, with other `workers` too, a validation validates the
    shards that are missing, and scans, stagings and extractions do the rest. `bad_frames` has a
    training, validation or prediction go on that failed for its limit.
    """
    changes = {} if body is None else dict(body)
    return begun(session.jobs.resume(name, **changes), response)


@router.get("/{name}/logs", rule=READ, response_class=Response, responses=_TEXT)
def get_logs(
    name: JobName,
    session: CurrentSession,
    command: Annotated[
        str | None, Query(description="Only this log, such as train-0; its text as it is.")
    ] = None,
    offset: Annotated[
        int, Query(ge=0, lt=2**63, description="Bytes to pass over; with `command`.")
    ] = 0,
) -> Response:
    """The output of a job's commands, each log under a heading; or the output of one of them.

    With `command`, `offset` and the answer's length say where the next request goes on.
    """
    if offset and command is None:
        raise InvalidInput("offset: counts in one log: say with command in which")
    size, chunks = session.jobs.joined_logs(name, command, offset)
    headers = {"Content-Length": str(size), "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(chunks, 200, headers, "text/plain; charset=utf-8")


@router.get("/{name}/logs/sizes", rule=READ)
def get_log_sizes(name: JobName, session: CurrentSession) -> LogSizesAnswer:
    """The names of a job's logs and their sizes now, for a client that follows them."""
    return session.jobs.log_sizes(name)


@router.get("/{name}/events", rule=READ, response_class=Response, responses=_EVENTS)
async def get_events(
    request: Request,
    name: JobName,
    session: CurrentSession,
    last_event_id: Annotated[
        str | None, Header(description="Of the last event that the client has.")
    ] = None,
) -> Response:
    """A job's changes as they come (server-sent events)."""
    state, user = request.app.state, caller_of(request.scope)
    # Who may not listen to the job is told so; what is looked at is the same for all others.
    job = await run_in_threadpool(session.jobs.get, name)
    key, body = (job.name, session.workspace.is_limited), session.jobs.follower(job.name)
    look: Callable[[], Awaitable[Look]] = partial(state.listeners.look, key, body)
    may_listen = partial(request.state.authentication.is_same, request.state.context)
    first = await look()
    return events_of(look, first, last_event_id, state.stopping, state.listeners, user, may_listen)


@router.get(
    "/{name}/report", rule=READ, response_model=None, responses={200: {"model": ReportAnswer}}
)
def get_report(name: JobName, session: CurrentSession) -> dict[str, Any]:
    """A validation's report as data."""
    return session.jobs.report(name)


@router.get("/{name}/files/{path:path}", rule=READ, response_class=Response, responses=_FILE)
def get_file(
    name: JobName,
    path: Annotated[str, InPath(description="Its name.", examples=["report.html"])],
    session: CurrentSession,
) -> Response:
    """A file that a job made.

    Of a validation report.html, report.json, metrics.json, confusion_matrix.png and
    frame_scores.parquet; of a training metrics.json, metrics.jsonl, its record run.json (not for
    users limited to collections), mlperf.log, where it scores its model on the way
    evaluations.jsonl, and where it skips bad frames bad_frames.json; of a user's program
    result.json and output/PATH for each file that this names, before that output/metrics.jsonl and
    the checkpoints that it names; of other jobs result.json, the
    document that their command ended with.
    """
    file = session.jobs.file(name, path)
    return FileResponse(file.path, media_type=file.media_type, headers=_INERT)
