"""/v1/stagings: datasets' files brought near the jobs."""

from typing import Annotated

from fastapi import Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routes.jobs import BEGUN, job_begun
from api.http.routing import Router
from api.http.rules import READ, WRITE
from api.schemas.answers import JobBody, StagingBody, StagingsAnswer
from api.workspace import Workspace
from catalog.records.stagings import recorded_staging, recorded_stagings
from catalog.records.tables import Job
from catalog.text.bounded import Name
from pipeline.jobs.command_job import submit_command

router = Router(prefix="/v1/stagings", tags=["stagings"])


class NewStaging(BaseModel):
    """A dataset to be staged."""

    model_config = ConfigDict(extra="forbid")

    dataset: Name = Field(description="NAME, or NAME@VERSION.", examples=["bikes@1"])
    workers: int = Field(default=4, ge=1, le=256, description="Files copied at once.")


@router.get("", rule=READ)
async def get_stagings(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    dataset: Annotated[str | None, Query(description="Only of this NAME or NAME@VERSION.")] = None,
) -> StagingsAnswer:
    """Stagings that are done, newest first; those under way are jobs of kind stage."""
    return await run_in_threadpool(_listed, workspace, page, dataset)


@router.post(
    "",
    rule=WRITE.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"dataset": "bikes@1"},
)
async def post_staging(
    wanted: NewStaging, workspace: CurrentWorkspace, response: Response
) -> JobBody:
    """Copy a dataset's images and labels into the server's cache: a job does it."""
    return job_begun(workspace, await run_in_threadpool(_submitted, workspace, wanted), response)


@router.get("/{number}", rule=READ)
async def get_staging(
    number: Annotated[int, Path(description="The staging.", examples=[2])],
    workspace: CurrentWorkspace,
) -> StagingBody:
    """A staging."""
    return StagingBody.of(
        *await run_in_threadpool(recorded_staging, workspace.records, number), workspace.place
    )


def _listed(workspace: Workspace, page: CurrentPage, dataset: str | None) -> StagingsAnswer:
    records = workspace.records
    found = recorded_stagings(
        records,
        dataset_id=None if dataset is None else records.dataset(dataset).id,
        before=page.number_after("stagings"),
        limit=page.limit + 1,
    )
    shown, follows = page.page("stagings", found, lambda each: (each[0].id,))
    return StagingsAnswer(
        stagings=[StagingBody.of(*each, workspace.place) for each in shown], next=follows
    )


def _submitted(workspace: Workspace, wanted: NewStaging) -> Job:
    dataset = workspace.records.whole_dataset(wanted.dataset)
    name = f"{dataset.name}@{dataset.version}"
    return submit_command(
        workspace.records,
        workspace.job_queue,
        "stage",
        f"stage-{dataset.name}",
        ("stage", "--json", "--workers", str(wanted.workers), "--", name),
        environment=workspace.variables,
        dataset=dataset,
        settings={"workers": wanted.workers},
    )
