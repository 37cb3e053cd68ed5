"""/healthz and /readyz."""

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.dependencies import CurrentWorkspace
from api.errors import problem

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get(
    "/readyz",
    response_model=dict[str, object],
    responses={503: {"description": "The server is stopping: send nothing more to it."}},
)
async def readyz(request: Request, workspace: CurrentWorkspace) -> dict[str, object] | Response:
    """The catalog answers; its newest snapshot."""
    if request.app.state.stopping.begun:
        return problem(503, "Stopping", "the server is stopping: ask another one, or later")
    snapshot = await run_in_threadpool(workspace.catalog.snapshot)
    return {"status": "ready", "snapshot": snapshot}
