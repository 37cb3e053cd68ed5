"""/v1/classes: what the labels hold."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from api.dependencies import At, CurrentWorkspace
from catalog.frames import class_shares

router = APIRouter(prefix="/v1", tags=["classes"])


@router.get("/classes")
async def get_classes(workspace: CurrentWorkspace, at: At = None) -> dict[str, Any]:
    """Frames and pixel share (0 to 1) of every class, in class order."""
    names = await run_in_threadpool(workspace.records.class_names)
    shares = await run_in_threadpool(class_shares, workspace.catalog, names, at)
    return {"classes": [asdict(share) for share in shares]}
