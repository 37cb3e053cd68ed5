"""/v1/models: what was trained."""

from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.answers import ModelBody, ModelsAnswer
from api.workspace import Workspace
from catalog.errors import NotFound
from pipeline.jobs.follow import refresh, refresh_all

router = Router(prefix="/v1/models", tags=["jobs"], examples={"name": "train-bikes-7"})


@router.get("", rule=READ)
async def get_models(workspace: CurrentWorkspace, page: CurrentPage) -> ModelsAnswer:
    """Models, newest first: the training jobs that are done."""
    return await run_in_threadpool(_listed, workspace, page)


@router.get("/{name}", rule=READ)
async def get_model(name: str, workspace: CurrentWorkspace) -> ModelBody:
    """A model, by the name of its training job."""
    return await run_in_threadpool(_model, workspace, name)


def _listed(workspace: Workspace, page: CurrentPage) -> ModelsAnswer:
    refresh_all(workspace.records)
    found = workspace.records.jobs(
        kind="train",
        states=["done"],
        before=page.number_after("models"),
        limit=page.limit + 1,
    )
    shown, follows = page.page("models", found, lambda job: (job.id,))
    return ModelsAnswer(models=[ModelBody.of(job, workspace.place) for job in shown], next=follows)


def _model(workspace: Workspace, name: str) -> ModelBody:
    job = refresh(workspace.records, workspace.records.job(name))
    if job.kind != "train" or job.state != "done":
        raise NotFound("model", name, f"job {name} is of kind {job.kind}, and {job.state}")
    return ModelBody.of(job, workspace.place)
