"""/v1/selections: a question in, its frames out, or what it means."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response

from api import bodies
from api.dependencies import At, CurrentWorkspace
from api.new_dataset import ask, described, reason_for_none
from api.workspace import Workspace
from query.operators import OPERATORS, TYPES
from query.selection import Question

router = APIRouter(prefix="/v1", tags=["selections"])


@router.post("/selections", response_model=dict[str, Any])
async def post_selection(
    question: Question, workspace: CurrentWorkspace, at: At = None
) -> Response:
    """The frames that answer a question, the snapshot they are of, and what was asked."""
    body = await run_in_threadpool(_answer, workspace, question, at)
    return await run_in_threadpool(JSONResponse, body)  # as JSON already: checked no second time


@router.post("/selections/describe")
async def post_description(
    question: Question, workspace: CurrentWorkspace, at: At = None
) -> dict[str, Any]:
    """A question as a sentence and as SQL; it is checked, and not run."""
    return bodies.of_description(await run_in_threadpool(described, workspace, question, at))


@router.get("/selections/schema")
async def get_schema() -> dict[str, Any]:
    """The JSON schema of a question."""
    return Question.model_json_schema()


@router.get("/selections/operators")
async def get_operators() -> dict[str, Any]:
    """What tags can be asked, and which of DuckDB's types make which type of tag."""
    return {
        "types": TYPES,
        "operators": [asdict(operator) for operator in OPERATORS.values()],
    }


def _answer(workspace: Workspace, question: Question, at: int | None) -> dict[str, Any]:
    selection = ask(workspace, question, at)
    return bodies.of_selection(
        selection,
        described(workspace, selection.question, answered=True),
        reason_for_none(workspace, selection),
    )
