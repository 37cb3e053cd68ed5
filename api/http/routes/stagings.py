"""/v1/stagings: datasets' files brought near the jobs."""

from typing import Annotated

from fastapi import Path, Query, Response
from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.jobs import JobBody
from api.schemas.stagings import NewStaging, StagingBody, StagingsAnswer

router = Router(prefix="/v1/stagings", tags=["stagings"])


@router.get("", rule=READ)
async def get_stagings(
    session: CurrentSession,
    page: CurrentPage,
    dataset: Annotated[str | None, Query(description="Only of this NAME or NAME@VERSION.")] = None,
) -> StagingsAnswer:
    """Stagings that are done, newest first; those under way are jobs of kind stage."""
    before, limit = page.number_after("stagings"), page.limit + 1
    stagings = await run_in_threadpool(
        lambda: session.stagings.list(dataset=dataset, before=before, limit=limit)
    )
    listed, follows = page.page("stagings", stagings, lambda staging: (staging.staging,))
    return StagingsAnswer(stagings=listed, next=follows)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"dataset": "bikes@1"},
)
async def post_staging(body: NewStaging, session: CurrentSession, response: Response) -> JobBody:
    """Fetch a dataset's images and labels into the server's cache: a job does it."""
    return begun(await run_in_threadpool(lambda: session.stagings.begin(**dict(body))), response)


@router.get("/{number}", rule=READ)
async def get_staging(
    number: Annotated[int, Path(description="The staging.", examples=[2])],
    session: CurrentSession,
) -> StagingBody:
    """A staging."""
    return await run_in_threadpool(session.stagings.get, number)
