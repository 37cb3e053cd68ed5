"""/v1/selections: a question in, its frames out, or what it means."""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
from fastapi import Query, Request
from fastapi.responses import Response

from api.http.dependencies import At, CurrentSession
from api.http.negotiation import VARY, pieces_answer, row_contents, row_format, rows_answer
from api.http.openapi.examples import EXAMPLE_FRAME, QUESTION
from api.http.routing import Router
from api.http.rules import READ
from api.schemas.selections import DescriptionAnswer, OperatorsAnswer, SelectionAnswer
from query.question.question import Question
from query.run.result_format import encoded

router = Router(prefix="/v1", tags=["selections"])


_SCHEMA = {"example": {"title": "Question", "type": "object", "properties": {"limit": {}}}}

_SELECTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The answer; in other formats than JSON its frames.",
        "headers": {
            "Framesift-Snapshot": {
                "description": "Of other formats than JSON: the catalog snapshot.",
                "schema": {"type": "integer"},
            }
        },
        "content": row_contents({}, EXAMPLE_FRAME | {"car": 18614, "bicycle": 0}),
    },
    406: {"description": "Accept names no format that the server has."},
}

_ENCODED_ROWS = 2_000
"""Made into JSON at once. All of them would be in memory twice, and json.dumps lets no other thread
run until it has done: 41,277 frames took it seconds."""


Columns = Annotated[
    str,
    Query(
        max_length=20_000,
        description="Tags and columns of metaocean, with commas between, beside those that each "
        "frame has.",
        examples=["frame_number,mtime"],
    ),
]


@router.post(
    "/selections",
    rule=READ.but(work="selection"),
    response_model=SelectionAnswer,
    responses=_SELECTED,
    example=QUESTION,
)
def post_selection(
    request: Request,
    question: Question,
    session: CurrentSession,
    at: At = None,
    columns: Columns = "",
) -> Response:
    """The frames that answer a question, the snapshot they are of, and what was asked.

    Other formats than JSON hold the frames alone.
    """
    format_ = row_format(request)
    more = columns.split(",")
    answer = session.selections.ask(question, at=at, columns=more)
    if format_ != "json":
        headers = {"Framesift-Snapshot": str(answer.snapshot)}
        return rows_answer(format_, answer.to_arrow(), headers)
    return _document(answer.about, answer.to_arrow())


@router.post(
    "/selections/describe",
    rule=READ.but(work="selection"),
    example=QUESTION,
)
def post_description(
    question: Question, session: CurrentSession, at: At = None
) -> DescriptionAnswer:
    """A question as a sentence and as SQL; it is checked, and not run."""
    return session.selections.describe(question, at=at)


@router.get(
    "/selections/schema",
    rule=READ.but(work="selection"),
    responses={200: {"content": {"application/json": _SCHEMA}}},
)
async def get_schema() -> dict[str, Any]:
    """The JSON schema of a question."""
    return Question.model_json_schema()


@router.get("/selections/operators", rule=READ.but(work="selection"))
async def get_operators(session: CurrentSession) -> OperatorsAnswer:
    """The operators of conditions on tags, and the DuckDB types that make each type of tag."""
    return session.selections.operators()


def _document(about: dict[str, Any], frames: pa.Table) -> Response:
    return pieces_answer(_pieces(about, frames), "application/json", VARY)


def _pieces(about: dict[str, Any], frames: pa.Table) -> Iterator[bytes]:
    yield json.dumps(about)[:-1].encode() + b', "frames": '
    yield from encoded("json", frames.schema, frames.to_batches(_ENCODED_ROWS))
    yield b"}"
