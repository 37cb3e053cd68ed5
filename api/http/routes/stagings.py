"""/v1/stagings: datasets' files brought near the jobs."""

from typing import Annotated

from fastapi import Path, Query, Response

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.home_orders import Staging
from api.schemas.jobs import JobBody
from api.schemas.stagings import (
    ForesightBody,
    NewStaging,
    RunningStagingBody,
    RunningStagingsAnswer,
    StagingBody,
    StagingsAnswer,
)
from pipeline.staging.workers import MOST_WORKERS

router = Router(prefix="/v1/stagings", tags=["stagings"])

RunningName = Annotated[
    str,
    Path(description="As /v1/stagings/running names it.", examples=["stage-bikes-8"]),
]


@router.get("", rule=READ)
def get_stagings(
    session: CurrentSession,
    page: CurrentPage,
    dataset: Annotated[str | None, Query(description="Only of this NAME or NAME@VERSION.")] = None,
) -> StagingsAnswer:
    """Stagings that are done or failed, newest first; /v1/stagings/running has those under way."""
    before, limit = page.number_after("stagings"), page.limit + 1
    stagings = session.stagings.list(dataset=dataset, before=before, limit=limit)
    listed, follows = page.page("stagings", stagings, lambda staging: (staging.staging,))
    return StagingsAnswer(stagings=listed, next=follows)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"dataset": "bikes@1"},
)
def post_staging(body: NewStaging, session: CurrentSession, response: Response) -> JobBody:
    """Fetch a dataset's images and labels into the server's cache: a job does it."""
    order = Staging(**dict(body))
    return begun(session.stagings.begin(order), response)


@router.get("/plan", rule=READ)
def get_plan(
    session: CurrentSession,
    dataset: Annotated[
        str, Query(description="NAME, or NAME@VERSION.", max_length=256, examples=["bikes@1"])
    ],
    workers: Annotated[int, Query(ge=1, le=MOST_WORKERS, description="Files fetched at once.")] = 4,
) -> ForesightBody:
    """The plan of a staging as it would run now; the server fetches and evicts nothing."""
    return session.stagings.plan(dataset, workers=workers)


@router.get("/running", rule=READ)
def get_running_stagings(session: CurrentSession) -> RunningStagingsAnswer:
    """Stagings into the server's cache that run or wait to, with plan and progress.

    Whoever runs them: jobs of this server, commands, other homes and hosts that share the cache.
    """
    return RunningStagingsAnswer(running=session.stagings.running())


@router.get("/running/{name}", rule=READ)
def get_running_staging(name: RunningName, session: CurrentSession) -> RunningStagingBody:
    """A staging that runs or waits to."""
    return session.stagings.get_running(name)


@router.post("/running/{name}/cancel", rule=WRITE, status_code=202)
def post_cancel(name: RunningName, session: CurrentSession) -> RunningStagingBody:
    """Ask a staging to end; what has come stays in the cache, and the next one fetches the rest."""
    return session.stagings.cancel(name)


@router.get("/{number}", rule=READ)
def get_staging(
    number: Annotated[int, Path(description="The staging.", examples=[2])],
    session: CurrentSession,
) -> StagingBody:
    """A staging."""
    return session.stagings.get(number)
