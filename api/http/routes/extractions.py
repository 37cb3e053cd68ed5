"""/v1/extractions: tags read from the files of a source's frames, by extractors."""

from fastapi import Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.routes.jobs import BEGUN, job_begun
from api.http.routing import Router
from api.http.rules import WRITE_ALL_ROWS
from api.schemas.answers import JobBody
from api.workspace import Workspace
from catalog.records.tables import Job
from catalog.text.bounded import Name
from ingest.extractors.registry import check_known
from pipeline.jobs.command_job import submit_command

router = Router(prefix="/v1/extractions", tags=["tags"])

_MOST_WORKERS = 64


class NewExtraction(BaseModel):
    """Tags to be read."""

    model_config = ConfigDict(extra="forbid")

    source: Name = Field(description="The source.", examples=["a2d2"])
    extractors: list[Name] = Field(
        min_length=1,
        max_length=100,
        fail_fast=True,
        description="Of those that are installed on the server.",
        examples=[["image", "bus"]],
    )
    full: bool = Field(default=False, description="Read frames done before, too.")
    workers: int = Field(default=2, ge=1, le=_MOST_WORKERS, description="Frames read at once.")
    errors: bool = Field(
        default=False, description="List the files that were bad, and read nothing."
    )


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=202,
    responses=BEGUN,
    example={"source": "a2d2", "extractors": ["image"]},
)
async def post_extraction(
    wanted: NewExtraction, workspace: CurrentWorkspace, response: Response
) -> JobBody:
    """Read tags from the files of every catalogued frame, only new and changed ones: a job does."""
    return job_begun(workspace, await run_in_threadpool(_submitted, workspace, wanted), response)


def _submitted(workspace: Workspace, wanted: NewExtraction) -> Job:
    source = workspace.records.source(wanted.source)
    for name in wanted.extractors:
        check_known(name)
    options = [*(["--full"] if wanted.full else []), *(["--errors"] if wanted.errors else [])]
    options += ["--workers", str(wanted.workers)]
    return submit_command(
        workspace.records,
        workspace.job_queue,
        "extract",
        f"extract-{source.name}",
        ("tags", "extract", "--json", *options, "--", source.name, *wanted.extractors),
        environment=workspace.variables,
        settings=wanted.model_dump(),
    )
