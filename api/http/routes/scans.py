"""/v1/scans: what ingest and watch did, and are doing; and scans that are asked for."""

from typing import Annotated

from fastapi import Path, Query, Response

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, begun
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.home_orders import Scan
from api.schemas.jobs import JobBody
from api.schemas.scans import NewScan, ProblemsAnswer, ScanBody, ScansAnswer, ScanState

router = Router(prefix="/v1/scans", tags=["scans"])

Number = Annotated[int, Path(description="The scan.", examples=[3])]


@router.get("", rule=READ_ALL_ROWS)
def get_scans(
    session: CurrentSession,
    page: CurrentPage,
    source: Annotated[str | None, Query(description="Only scans of this source.")] = None,
    state: Annotated[ScanState | None, Query(description="Only in this state.")] = None,
) -> ScansAnswer:
    """Scans, newest first."""
    before, limit = page.number_after("scans"), page.limit + 1
    scans = session.scans.list(source=source, state=state, before=before, limit=limit)
    listed, follows = page.page("scans", scans, lambda scan: (scan.scan,))
    return ScansAnswer(scans=listed, next=follows)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"source": "a2d2"},
)
def post_scan(body: NewScan, session: CurrentSession, response: Response) -> JobBody:
    """Catalog a source's files: a job does it; its `metrics.scan` is the scan's number."""
    order = Scan(**dict(body))
    return begun(session.scans.begin(order), response)


@router.get("/{number}", rule=READ_ALL_ROWS)
def get_scan(number: Number, session: CurrentSession) -> ScanBody:
    """A scan: its state, counts, rates, duration, and how long it will take while it runs."""
    return session.scans.get(number)


@router.get("/{number}/problems", rule=READ_ALL_ROWS)
def get_problems(number: Number, session: CurrentSession, page: CurrentPage) -> ProblemsAnswer:
    """Problems that the scan met and that are still there, in the order it met them."""
    passed = page.number_after("problems") or 0
    problems = session.scans.problems(number, offset=max(0, passed), limit=page.limit + 1)
    numbered = list(enumerate(problems, passed + 1))
    listed, follows = page.page("problems", numbered, lambda each: (each[0],))
    return ProblemsAnswer(problems=[problem for _, problem in listed], next=follows)
