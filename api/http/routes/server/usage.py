"""/v1/usage: what jobs used of machines."""

from typing import Annotated

from fastapi import Query

from api.http.dependencies import CurrentSession
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.accounts.usage import By, UsageAnswer

router = Router(prefix="/v1/usage", tags=["jobs"])


@router.get("", rule=READ)
def get_usage(
    session: CurrentSession, by: Annotated[By, Query(description="What the sums are of.")] = "user"
) -> UsageAnswer:
    """Core-, GPU- and wait-seconds of jobs on record, of their attempts that have ended."""
    return UsageAnswer(usage=session.jobs.usage(by))
