"""/healthz and /readyz."""

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from api.dependencies import CurrentWorkspace

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(workspace: CurrentWorkspace) -> dict[str, object]:
    """The catalog answers; its newest snapshot."""
    snapshot = await run_in_threadpool(workspace.catalog.snapshot)
    return {"status": "ready", "snapshot": snapshot}
