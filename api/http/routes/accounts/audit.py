"""/v1/audit: changes, and requests that were refused. Admins only."""

from typing import Annotated

from fastapi import Query

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_READ
from api.schemas.accounts.audit import AuditAnswer

router = Router(prefix="/v1/audit", tags=["users"])


@router.get("", rule=ADMIN_READ)
def get_audit(
    session: CurrentSession,
    page: CurrentPage,
    who: Annotated[str | None, Query(description="Only of this user.")] = None,
    outcome: Annotated[
        str | None,
        Query(
            pattern=r"^([1-5][0-9]{2}|done|failed|interrupted)$",
            description="Only with this outcome: a status such as 403; of commands done, failed or "
            "interrupted.",
        ),
    ] = None,
    before: Annotated[
        int | None, Query(ge=1, lt=2**31, description="Only entries before this number.")
    ] = None,
) -> AuditAnswer:
    """The audit log: changes, with their users, and refusals."""
    before = _smaller(before, page.number_after("entries"))
    entries = session.audit.list(who=who, outcome=outcome, before=before, limit=page.limit + 1)
    listed, follows = page.page("entries", entries, lambda entry: (entry.id,))
    return AuditAnswer(entries=listed, next=follows)


def _smaller(*numbers: int | None) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
