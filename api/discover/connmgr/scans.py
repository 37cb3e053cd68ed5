"""/connmgr/v1/scan: scans of connections: started, looked at, stopped, whole or in part."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field
from sqlalchemy import select

from api.discover.db2whrest.search import body_schema, read_as
from api.discover.replies import discover_router, failure, in_json, in_text, json_of
from api.http.dependencies import CurrentWorkspace
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.workspace import Workspace
from catalog.errors import CatalogBusy, InvalidInput, NotFound
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.tables import Job, Scan, Source
from catalog.text.bounded import Text
from catalog.values import OBJECT_PLATFORMS
from ingest.scan.scan_lock import scan_lock
from ingest.scan.scan_record import SCAN
from ingest.sources.partial import Part
from ingest.sources.recorded import open_recorded
from pipeline.jobs.command_job import submit_command
from pipeline.jobs.follow import cancel, refresh
from pipeline.jobs.state import FINISHED

router = discover_router("connmgr", examples={"action": "stop"})

_SCAN = {
    "connection": "nfs1",
    "status": "Running",
    "scanned_records": 75,
    "indexed_records": 75,
    "start_time": "2020-03-27_11:12:10",
}

_STATES = {"done": "Complete", "failed": "Failed", "running": "Running"}
_LOOKED_AT = 1_000
"""Newest scan jobs among which that of a connection is looked for."""


class Folder(BaseModel):
    """A folder of a file system."""

    dir: Text = Field(description="Its path, from the mount point or below it.")
    recursive: bool = Field(default=True, description="With the folders in it.")


class Partial(BaseModel):
    """The partitions of a connection to scan."""

    partitions: list[Text | Folder] = Field(min_length=1, max_length=100, fail_fast=True)


_DIRS = {"partitions": ["dir1"]}


@router.post("/scan", rule=WRITE_ALL_ROWS, refuses=True)
@router.post("/scan/", rule=WRITE_ALL_ROWS, include_in_schema=False)
async def post_nothing() -> Response:
    """A scan of what?"""
    raise InvalidInput("Must specify a connection name for the scan endpoint.")


@router.get("/scan", rule=READ_ALL_ROWS, answers=json_answer([_SCAN]))
async def get_scans(workspace: CurrentWorkspace) -> Response:
    """The scans that are running."""
    return in_json(await run_in_threadpool(_running, workspace))


@router.get("/scan/{connection}", rule=READ_ALL_ROWS, answers=json_answer(_SCAN))
async def get_scan(connection: str, workspace: CurrentWorkspace) -> Response:
    """Where the connection's newest scan stands, while it runs and afterwards."""
    source = await run_in_threadpool(_source, workspace, connection)
    status = None if source is None else await run_in_threadpool(_status, workspace, source)
    if status is None:
        return _not_found(f"No scan is in progress for {connection[:128]}.")
    return in_json(status)


@router.post("/scan/{connection}", rule=WRITE_ALL_ROWS, answers=text_answer("null"))
async def post_scan(connection: str, workspace: CurrentWorkspace) -> Response:
    """Scan a connection, as a job; null once it has begun."""
    source = await run_in_threadpool(_source, workspace, connection)
    if source is None:
        return _nowhere(connection)
    await run_in_threadpool(_start, workspace, source, ())
    return in_text("null")


@router.post(
    "/scan/{connection}/partial",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(Partial, _DIRS),
    answers=text_answer("null"),
)
async def post_partial(connection: str, request: Request, workspace: CurrentWorkspace) -> Response:
    """Scan some folders of a connection; of a frame always all of its scene."""
    body = read_as(Partial, await json_of(request))
    source = await run_in_threadpool(_source, workspace, connection)
    if source is None:
        return _nowhere(connection)
    arguments = await run_in_threadpool(_arguments, workspace, source, body)
    await run_in_threadpool(_start, workspace, source, arguments)
    return in_text("null")


@router.put("/scan/{connection}", rule=WRITE_ALL_ROWS, refuses=True)
async def put_nothing(connection: str) -> Response:
    """To do what with the scan?"""
    raise InvalidInput(
        f"Must specify an action for the scan endpoint. {connection[:128]}/stop is there."
    )


@router.put("/scan/{connection}/{action}", rule=WRITE_ALL_ROWS, answers=text_answer("null"))
async def put_action(connection: str, action: str, workspace: CurrentWorkspace) -> Response:
    """End a scan (stop); what it has committed stays, and the next one goes on from there."""
    source = await run_in_threadpool(_source, workspace, connection)
    if source is None:
        return _nowhere(connection)
    if action != "stop":
        raise InvalidInput(f"Unsupported action {action[:40]}.")
    await run_in_threadpool(_stop, workspace, source)
    return in_text("null")


def _source(workspace: Workspace, connection: str) -> Source | None:
    try:
        return recorded_source(workspace.records, connection)
    except NotFound:
        return None


def _nowhere(connection: str) -> Response:
    return _not_found(
        f"Could not locate connection document for {connection[:128]}. Aborting scan."
    )


def _not_found(why: str) -> Response:
    return Response(failure(why), 404, media_type="application/json")


def _start(workspace: Workspace, source: Source, arguments: Sequence[str]) -> None:
    # One at a time, also of several servers: what is looked for is there before the next one looks.
    with workspace.whole_catalog.lock(f"start-scan-{source.id}", "a scan is being started"):
        status = _status(workspace, source)
        if status is not None and status["status"] == "Running":
            raise InvalidInput(f"Scan already currently in-progress for {source.name}.")
        submit_command(
            workspace.records,
            workspace.job_queue,
            "scan",
            f"scan-{source.name}",
            ("ingest", "--json", *arguments, "--", source.name),
            environment=workspace.variables,
            settings={"source": source.name},
        )


def _stop(workspace: Workspace, source: Source) -> None:
    job = _newest_job(workspace, source)
    if job is None or job.state in FINISHED:
        if _is_held(workspace, source):
            raise InvalidInput(f"The scan of {source.name} was begun at a terminal: end it there.")
        raise InvalidInput(f"No scan is currently in progress for {source.name}.")
    cancel(workspace.records, job)


def _arguments(workspace: Workspace, source: Source, body: Partial) -> list[str]:
    """Options of `framesift ingest` for a part of a source.

    Raises:
        InvalidInput: A folder is not there.
    """
    deep: list[str] = []
    flat: list[str] = []
    for partition in body.partitions:
        folder = partition if isinstance(partition, str) else partition.dir
        recursive = isinstance(partition, str) or partition.recursive
        (deep if recursive else flat).append(_below_root(source, folder))
    portion = Part.of(deep, flat)
    files = open_recorded(source, workspace.indexes)
    for folder in (*portion.whole, *portion.flat):
        if next(iter(files.list(folder)), None) is None:
            raise InvalidInput(f"partition '{folder[:200]}' of {source.name} is not found")
    # In one word each: a folder may be called --full.
    return [
        *(f"--folder={folder}" for folder in portion.whole),
        *(f"--flat-folder={folder}" for folder in portion.flat),
    ]


def _below_root(source: Source, folder: str) -> str:
    """A folder as clients name it: from the mount point, the bucket, or below these."""
    roots = [source.uri.removeprefix("file://").rstrip("/")]
    if source.platform in OBJECT_PLATFORMS:
        roots.append(source.datasource)
    for root in roots:
        if folder.rstrip("/") == root:
            return ""
        if root and folder.startswith(f"{root}/"):
            return folder.removeprefix(f"{root}/")
    return folder


def _running(workspace: Workspace) -> list[dict[str, Any]]:
    states = [_status(workspace, source) for source in recorded_sources(workspace.records)]
    return [status for status in states if status is not None and status["status"] == "Running"]


def _status(workspace: Workspace, source: Source) -> dict[str, Any] | None:
    """Where the newest scan stands; None where there never was one."""
    job, scan = _newest_job(workspace, source), _newest_scan(workspace, source)
    if job is not None and (scan is None or scan.started < job.created):
        # Not begun yet, or ended before it could begin.
        status = "Running" if job.state not in FINISHED else _ended(job)
        return _document(source, status, job.error, job.created, job.finished, {})
    if scan is None:
        return None
    status, error = _STATES[scan.state], scan.error
    if scan.state == "running" and not _is_held(workspace, source):
        stopped = job is not None and job.state == "cancelled"
        status, error = ("Stopped", "") if stopped else ("Failed", "its process ended")
    return _document(source, status, error, scan.started, scan.finished, scan.counts)


def _ended(job: Job) -> str:
    return {"done": "Complete", "cancelled": "Stopped"}.get(job.state, "Failed")


def _document(
    source: Source,
    status: str,
    error: str,
    started: datetime,
    finished: datetime | None,
    counts: dict[str, Any],
) -> dict[str, Any]:
    indexed = sum(counts.get(change) or 0 for change in ("added", "changed", "unchanged"))
    document = {
        "connection": source.name,
        "status": status,
        "scanned_records": counts.get("files") or 0,
        "indexed_records": indexed,
        "start_time": f"{started:%Y-%m-%d_%H:%M:%S}",
    }
    if finished is not None:
        document["end_time"] = f"{finished:%Y-%m-%d_%H:%M:%S}"
    return document | ({"error": error} if error and status == "Failed" else {})


def _newest_scan(workspace: Workspace, source: Source) -> Scan | None:
    query = select(Scan).where(Scan.source_id == source.id, Scan.kind == SCAN)
    with workspace.records.reading() as session:
        return session.scalar(query.order_by(Scan.id.desc()).limit(1))


def _newest_job(workspace: Workspace, source: Source) -> Job | None:
    """The newest job that scans the source."""
    query = select(Job).where(Job.kind == "scan").order_by(Job.id.desc()).limit(_LOOKED_AT)
    with workspace.records.reading() as session:
        jobs = session.scalars(query).all()
    job = next((job for job in jobs if _command(job)[-1:] == [source.name]), None)
    return None if job is None else refresh(workspace.records, job)


def _command(job: Job) -> list[str]:
    return list(job.request["stages"][0]["commands"][0])


def _is_held(workspace: Workspace, source: Source) -> bool:
    """Return whether a process scans the source."""
    try:
        with scan_lock(workspace.whole_catalog, source):
            return False
    except CatalogBusy:
        return True
