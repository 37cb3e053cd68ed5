"""/v1/scans: what ingest and watch did, and are doing; and scans that are asked for."""

from typing import Annotated, Literal

from fastapi import Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, job_begun
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.answers import (
    JobBody,
    ProblemBody,
    ProblemsAnswer,
    ScanBody,
    ScansAnswer,
)
from api.workspace import Workspace
from catalog.records.scans import recorded_problems, recorded_scan, recorded_scans
from catalog.records.tables import Job
from catalog.text.bounded import Name
from ingest.scan.removal_guard import MOST_REMOVED
from pipeline.jobs.command_job import submit_command

router = Router(prefix="/v1/scans", tags=["scans"])

Number = Annotated[int, Path(description="The scan.", examples=[3])]
State = Literal["running", "done", "failed"]


class NewScan(BaseModel):
    """A scan to be made."""

    model_config = ConfigDict(extra="forbid")

    source: Name = Field(description="The source.", examples=["a2d2"])
    full: bool = Field(default=False, description="Count every label again, changed or not.")
    max_removed: float = Field(
        default=MOST_REMOVED,
        ge=0,
        le=1,
        description="Share of the source's catalogued files that may be removed at once; where "
        "more are gone, none is, and the job fails. With 1 all may.",
        examples=[0.05],
    )
    errors: bool = Field(
        default=False, description="List what is wrong with its files, and scan nothing."
    )


@router.get("", rule=READ_ALL_ROWS)
async def get_scans(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    source: Annotated[str | None, Query(description="Only scans of this source.")] = None,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
) -> ScansAnswer:
    """Scans, newest first."""

    def listed() -> ScansAnswer:
        found = recorded_scans(
            workspace.records,
            source=source,
            state=state,
            before=page.number_after("scans"),
            limit=page.limit + 1,
        )
        shown, follows = page.page("scans", found, lambda each: (each[0].id,))
        return ScansAnswer(scans=[ScanBody.of(*each) for each in shown], next=follows)

    return await run_in_threadpool(listed)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"source": "a2d2"},
)
async def post_scan(wanted: NewScan, workspace: CurrentWorkspace, response: Response) -> JobBody:
    """Catalog a source's files: a job does it; its `metrics.scan` is the scan's number."""
    return job_begun(workspace, await run_in_threadpool(_submitted, workspace, wanted), response)


@router.get("/{number}", rule=READ_ALL_ROWS)
async def get_scan(number: Number, workspace: CurrentWorkspace) -> ScanBody:
    """A scan: its state, counts, rates, duration, and how long it will take while it runs."""
    return ScanBody.of(*await run_in_threadpool(recorded_scan, workspace.records, number))


@router.get("/{number}/problems", rule=READ_ALL_ROWS)
async def get_problems(
    number: Number, workspace: CurrentWorkspace, page: CurrentPage
) -> ProblemsAnswer:
    """What the scan met that is still wrong, in the order it was met."""

    def listed() -> ProblemsAnswer:
        recorded_scan(workspace.records, number)
        passed = page.number_after("problems") or 0
        found = recorded_problems(
            workspace.records, scan_id=number, limit=page.limit + 1, offset=max(0, passed)
        )
        numbered = list(enumerate(found, passed + 1))
        shown, follows = page.page("problems", numbered, lambda each: (each[0],))
        problems = [ProblemBody(kind=p.kind, key=p.key, reason=p.reason) for _, p in shown]
        return ProblemsAnswer(problems=problems, next=follows)

    return await run_in_threadpool(listed)


def _submitted(workspace: Workspace, wanted: NewScan) -> Job:
    source = workspace.records.source(wanted.source)
    options = [*(["--full"] if wanted.full else []), *(["--errors"] if wanted.errors else [])]
    options += ["--max-removed", str(wanted.max_removed)]
    return submit_command(
        workspace.records,
        workspace.job_queue,
        "scan",
        f"scan-{source.name}",
        ("ingest", "--json", *options, "--", source.name),
        environment=workspace.variables,
        settings=wanted.model_dump(),
    )
