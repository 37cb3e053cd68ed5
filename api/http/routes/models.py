"""/v1/models: what was trained."""

from fastapi.concurrency import run_in_threadpool

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.jobs import ModelBody, ModelsAnswer

router = Router(prefix="/v1/models", tags=["jobs"], examples={"name": "train-bikes-7"})


@router.get("", rule=READ)
async def get_models(session: CurrentSession, page: CurrentPage) -> ModelsAnswer:
    """Models, newest first: the training jobs that are done."""
    before, limit = page.number_after("models"), page.limit + 1
    models = await run_in_threadpool(lambda: session.models.list(before=before, limit=limit))
    listed, follows = page.page("models", models, lambda model: (model.number,))
    return ModelsAnswer(models=listed, next=follows)


@router.get("/{name}", rule=READ)
async def get_model(name: str, session: CurrentSession) -> ModelBody:
    """A model, by the name of its training job."""
    return await run_in_threadpool(session.models.get, name)
