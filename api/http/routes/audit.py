"""/v1/audit: changes, and requests that were refused. Admins only."""

from typing import Annotated

from fastapi import Query
from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_READ
from api.schemas.base import PageAnswer
from api.schemas.people import AuditBody
from catalog.accounts import audit_log

router = Router(prefix="/v1/audit", tags=["users"])


class AuditAnswer(PageAnswer):
    """Entries, newest first."""

    entries: list[AuditBody]


@router.get("", rule=ADMIN_READ)
async def get_audit(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    who: Annotated[str | None, Query(description="Only of this user.")] = None,
    outcome: Annotated[
        str | None,
        Query(
            pattern=r"^([1-5][0-9]{2}|done)$",
            description="Only with this outcome: done, or a status such as 403.",
        ),
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Only with a smaller number.")
    ] = None,
) -> AuditAnswer:
    """Who changed what, and who was refused."""
    found = await run_in_threadpool(
        audit_log.entries,
        workspace.records,
        who=who,
        outcome=outcome,
        before=_smaller(before, page.number_after("entries")),
        limit=page.limit + 1,
    )
    shown, follows = page.page("entries", found, lambda entry: (entry.id,))
    return AuditAnswer(entries=[AuditBody.of(entry) for entry in shown], next=follows)


def _smaller(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
