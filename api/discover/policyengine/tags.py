"""/policyengine/v1/tags: which tags there are, of which kind, and new ones.

Which there are is the same for all, whatever rows they see.
"""

import json
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.discover.bodies import body_as, body_schema
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.replies import discover_router, in_json, in_text
from api.http.dependencies import CurrentSession
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ, WRITE_ALL_ROWS
from api.schemas.tags import TagBody
from api.services.session import Session
from catalog.errors import InvalidInput
from catalog.text.bounded import MOST_MANY, Name, Text

router = discover_router("policyengine", examples={"tag": "chargeback"})

_TAG = {"tag": "chargeback", "type": "Restricted", "value": json.dumps(["dept1", "dept2"])}


_Values = Annotated[list[Text], Field(max_length=MOST_MANY, fail_fast=True), ALSO_IN_TEXT]


class NewTag(BaseModel):
    """A new tag."""

    tag: Name = Field(description="Its name; kept in lower case.")
    type: Literal["Open", "Restricted", "Characteristics"]
    value: _Values = Field(default=[], description="Values of a Restricted tag.")


class TagChange(BaseModel):
    """Fields of a tag that may change."""

    value: _Values = Field(description="All values of a Restricted tag.")
    type: Name | None = Field(default=None, description="The one it has: types do not change.")


_NEW = {"tag": "department", "type": "Restricted", "value": ["Finance", "HR", "IT"]}
_CHANGE = {"value": ["dept1", "dept2", "dept3", "dept4"]}


@router.get("/tags", rule=READ, answers=json_answer([_TAG]))
def get_tags(session: CurrentSession) -> Response:
    """Every tag, in order of creation."""
    return in_json([_document(tag) for tag in session.tags.by_creation()])


@router.get("/tags/{tag}", rule=READ, answers=json_answer(_TAG))
def get_tag(tag: str, session: CurrentSession) -> Response:
    """One tag."""
    return in_json(_document(session.tags.get(tag.lower())))


@router.post(
    "/tags",
    rule=WRITE_ALL_ROWS,
    status_code=201,
    openapi_extra=body_schema(NewTag, _NEW),
    answers=text_answer("Tag department added", status=201),
)
async def post_tag(request: Request, session: CurrentSession) -> Response:
    """Add a tag that no file has a value of yet."""
    body = await body_as(NewTag, request)
    await run_in_threadpool(session.tags.add, body.tag.lower(), kind=body.type, values=body.value)
    return in_text(f"Tag {body.tag} added", 201)


@router.put(
    "/tags/{tag}",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(TagChange, _CHANGE),
    answers=text_answer("Tag department updated"),
)
async def put_tag(tag: str, request: Request, session: CurrentSession) -> Response:
    """Give a Restricted tag other values; refused where files have one that is not among them."""
    body = await body_as(TagChange, request)
    await run_in_threadpool(_change, session, tag, body)
    return in_text(f"Tag {tag} updated")


def _document(tag: TagBody) -> dict[str, Any]:
    return {"tag": tag.tag, "type": tag.kind, "value": json.dumps(tag.values)}


def _change(session: Session, name: str, body: TagChange) -> None:
    tag = session.tags.get(name.lower())
    if body.type not in (None, tag.kind):
        raise InvalidInput(f"tag '{name}' is {tag.kind}: the type of a tag cannot change")
    session.tags.set(tag.tag, tag.kind, values=body.value)
