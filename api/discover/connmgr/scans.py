"""/connmgr/v1/scan: scans of connections: started, looked at, stopped, whole or in part."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.discover.bodies import body_as, body_schema
from api.discover.replies import (
    discover_router,
    failure,
    in_json,
    in_text,
    product_time,
)
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.home_orders import Scan
from api.schemas.scans import ScanStatus
from api.schemas.sources import SourceBody
from api.services.session import Session
from catalog.errors import InvalidInput, NotFound
from catalog.text.bounded import Text
from catalog.values import OBJECT_PLATFORMS

router = discover_router("connmgr", examples={"action": "stop"})

_SCAN = {
    "connection": "nfs1",
    "status": "Running",
    "scanned_records": 75,
    "indexed_records": 75,
    "start_time": "2020-03-27_11:12:10",
}

_STATES = {"done": "Complete", "failed": "Failed", "running": "Running", "stopped": "Stopped"}


class Folder(BaseModel):
    """A folder of a file system."""

    dir: Text = Field(description="Its path, from the mount point or below it.")
    recursive: bool = Field(default=True, description="With the folders in it.")


class Partial(BaseModel):
    """The partitions of a connection to scan."""

    partitions: list[Text | Folder] = Field(min_length=1, max_length=100, fail_fast=True)


_DIRS = {"partitions": ["dir1"]}


CheckImages = Annotated[
    bool,
    Query(
        description="Open each camera image to see that it is whole and fits its label; Spectrum "
        "Discover has no such parameter."
    ),
]


@router.post("/scan", rule=WRITE_ALL_ROWS, refuses=True)
@router.post("/scan/", rule=WRITE_ALL_ROWS, include_in_schema=False)
async def post_nothing() -> Response:
    """A scan of what?"""
    raise InvalidInput("Must specify a connection name for the scan endpoint.")


@router.get("/scan", rule=READ_ALL_ROWS, answers=json_answer([_SCAN]))
def get_scans(session: CurrentSession) -> Response:
    """The scans that are running."""
    return in_json([_document(scan) for scan in session.scans.running()])


@router.get("/scan/{connection}", rule=READ_ALL_ROWS, answers=json_answer(_SCAN))
def get_scan(connection: str, session: CurrentSession) -> Response:
    """Where the connection's newest scan stands, while it runs and afterwards."""
    source = _source(session, connection)
    status = None if source is None else session.scans.status(connection)
    if status is None:
        return _not_found(f"No scan is in progress for {connection[:128]}.")
    return in_json(_document(status))


@router.post("/scan/{connection}", rule=WRITE_ALL_ROWS, answers=text_answer("null"))
def post_scan(
    connection: str, session: CurrentSession, check_images: CheckImages = True
) -> Response:
    """Scan a connection, as a job; null once it has begun."""
    source = _source(session, connection)
    if source is None:
        return _nowhere(connection)
    order = Scan(source=connection, check_images=check_images)
    session.scans.begin_alone(order)
    return in_text("null")


@router.post(
    "/scan/{connection}/partial",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(Partial, _DIRS),
    answers=text_answer("null"),
)
async def post_partial(
    connection: str, request: Request, session: CurrentSession, check_images: CheckImages = True
) -> Response:
    """Scan some folders of a connection; of a frame always all of its scene."""
    body = await body_as(Partial, request)
    source = await run_in_threadpool(_source, session, connection)
    if source is None:
        return _nowhere(connection)
    folders, flat_folders = _folders(source, body)
    order = Scan(
        source=connection, folders=folders, flat_folders=flat_folders, check_images=check_images
    )
    session.scans.begin_alone(order)
    return in_text("null")


@router.put("/scan/{connection}", rule=WRITE_ALL_ROWS, refuses=True)
async def put_nothing(connection: str) -> Response:
    """To do what with the scan?"""
    raise InvalidInput(
        f"Must specify an action for the scan endpoint. {connection[:128]}/stop is there."
    )


@router.put("/scan/{connection}/{action}", rule=WRITE_ALL_ROWS, answers=text_answer("null"))
def put_action(connection: str, action: str, session: CurrentSession) -> Response:
    """End a scan (stop); what it has committed stays, and the next one goes on from there."""
    source = _source(session, connection)
    if source is None:
        return _nowhere(connection)
    if action != "stop":
        raise InvalidInput(f"Unsupported action {action[:40]}.")
    session.scans.stop(connection)
    return in_text("null")


def _source(session: Session, connection: str) -> SourceBody | None:
    try:
        return session.sources.get(connection)
    except NotFound:
        return None


def _nowhere(connection: str) -> Response:
    return _not_found(
        f"Could not locate connection document for {connection[:128]}. Aborting scan."
    )


def _not_found(why: str) -> Response:
    return Response(failure(why), 404, media_type="application/json")


def _folders(source: SourceBody, body: Partial) -> tuple[list[str], list[str]]:
    """The folders that are scanned with those in them, and those that are scanned without."""
    deep: list[str] = []
    flat: list[str] = []
    for partition in body.partitions:
        folder = partition if isinstance(partition, str) else partition.dir
        recursive = isinstance(partition, str) or partition.recursive
        (deep if recursive else flat).append(_below_root(source, folder))
    return deep, flat


def _below_root(source: SourceBody, folder: str) -> str:
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


def _document(scan: ScanStatus) -> dict[str, Any]:
    document = {
        "connection": scan.source,
        "status": _STATES[scan.state],
        "scanned_records": scan.files,
        "indexed_records": scan.indexed,
        "start_time": product_time(scan.started),
    }
    if scan.finished is not None:
        document["end_time"] = product_time(scan.finished)
    return document | ({"error": scan.error} if scan.error else {})
