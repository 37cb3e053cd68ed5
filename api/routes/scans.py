"""/v1/scans: what ingest and watch did, and are doing."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool

from api import bodies
from api.dependencies import CurrentWorkspace

router = APIRouter(prefix="/v1", tags=["scans"])

_MOST = 1000


@router.get("/scans")
async def get_scans(
    workspace: CurrentWorkspace,
    source: Annotated[str | None, Query(description="Only scans of this source.")] = None,
    before: Annotated[
        int | None, Query(ge=1, lt=2**63, description="Only scans with a smaller number.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="At most so many scans.")] = 100,
) -> dict[str, Any]:
    """Scans, newest first; ``next`` is what ``before`` must be to get those that follow."""
    found = await run_in_threadpool(
        workspace.records.scans, source=source, before=before, limit=limit
    )
    more = found[-1][0].id if len(found) == limit else None
    return {"scans": [bodies.of_scan(scan, name) for scan, name in found], "next": more}


@router.get("/scans/{number}")
async def get_scan(number: int, workspace: CurrentWorkspace) -> dict[str, Any]:
    """A scan: its state, counts, rates, duration, and how long it will take while it runs."""
    scan, name = await run_in_threadpool(workspace.records.scan, number)
    return bodies.of_scan(scan, name)


@router.get("/scans/{number}/problems")
async def get_problems(
    number: int,
    workspace: CurrentWorkspace,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="At most so many problems.")] = 100,
    offset: Annotated[int, Query(ge=0, lt=2**63, description="Problems to pass over.")] = 0,
) -> dict[str, Any]:
    """What the scan met that is still wrong, in the order it was met."""
    await run_in_threadpool(workspace.records.scan, number)
    found = await run_in_threadpool(
        workspace.records.problems, scan_id=number, limit=limit, offset=offset
    )
    return {"problems": [{"kind": p.kind, "key": p.key, "reason": p.reason} for p in found]}
