"""/v1/audit: changes, and requests that were refused. Admins only (api.callers)."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.dependencies import CurrentWorkspace
from api.people import AuditBody
from catalog import audit_log

router = APIRouter(prefix="/v1/audit", tags=["users"])


class AuditAnswer(BaseModel):
    """Entries, newest first."""

    entries: list[AuditBody]
    next: int | None = Field(description="What `before` must be to get those that follow.")


@router.get("")
async def get_audit(
    workspace: CurrentWorkspace,
    who: Annotated[str | None, Query(description="Only of this user.")] = None,
    outcome: Annotated[str | None, Query(description="Only with this outcome, as 403.")] = None,
    before: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Only entries with a smaller number.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most so many entries.")] = 100,
) -> AuditAnswer:
    """Who changed what, and who was refused."""
    found = await run_in_threadpool(
        audit_log.entries,
        workspace.records,
        who=who,
        outcome=outcome,
        before=before,
        limit=limit,
    )
    return AuditAnswer(
        entries=[AuditBody.of(entry) for entry in found],
        next=found[-1].id if len(found) == limit else None,
    )
