"""/v1/selections: a question in, its frames out."""

from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool

from api import bodies
from api.dependencies import At, CurrentWorkspace
from api.new_dataset import ask
from query.selection import Question

router = APIRouter(prefix="/v1", tags=["selections"])


@router.post("/selections")
async def post_selection(
    question: Question, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """The frames that answer a question, and the snapshot they were asked of."""
    selection = await run_in_threadpool(ask, workspace, question, at)
    return await run_in_threadpool(bodies.of_selection, selection)
