"""/policyengine/v1/tags: which tags there are, of which kind, and new ones.

Which there are is the same for all, whatever rows they see.
"""

import json
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from api.discover.db2whrest.search import body_schema, read_as
from api.discover.json_text import ALSO_IN_TEXT
from api.discover.replies import discover_router, in_json, in_text, json_of
from api.discover.whole_home import WholeHome
from api.http.dependencies import CurrentWorkspace
from api.http.openapi.discover import json_answer, text_answer
from api.http.rules import READ, WRITE_ALL_ROWS
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.lake.views import tag_columns
from catalog.tags import tag_kinds, tags
from catalog.tags.tag_rules import DEFAULT
from catalog.text.bounded import MOST_MANY, Name, Text

router = discover_router("policyengine", examples={"tag": "chargeback"})

_TAG = {"tag": "chargeback", "type": "Restricted", "value": json.dumps(["dept1", "dept2"])}


_Values = Annotated[list[Text], Field(max_length=MOST_MANY, fail_fast=True), ALSO_IN_TEXT]


class TagBody(BaseModel):
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
async def get_tags(workspace: WholeHome) -> Response:
    """Every tag, in order of creation."""
    return in_json(list((await run_in_threadpool(_tags, workspace)).values()))


@router.get("/tags/{tag}", rule=READ, answers=json_answer(_TAG))
async def get_tag(tag: str, workspace: WholeHome) -> Response:
    """One tag."""
    return in_json(await run_in_threadpool(_tag, workspace, tag))


@router.post(
    "/tags",
    rule=WRITE_ALL_ROWS,
    status_code=201,
    openapi_extra=body_schema(TagBody, _NEW),
    answers=text_answer("Tag department added", status=201),
)
async def post_tag(request: Request, workspace: CurrentWorkspace) -> Response:
    """Add a tag that no file has a value of yet."""
    body = read_as(TagBody, await json_of(request))
    await run_in_threadpool(
        tags.add_tag, workspace.whole_catalog, body.tag.lower(), "text", body.type, body.value
    )
    return in_text(f"Tag {body.tag} added", 201)


@router.put(
    "/tags/{tag}",
    rule=WRITE_ALL_ROWS,
    openapi_extra=body_schema(TagChange, _CHANGE),
    answers=text_answer("Tag department updated"),
)
async def put_tag(tag: str, request: Request, workspace: CurrentWorkspace) -> Response:
    """Give a Restricted tag other values; refused where files have one that is not among them."""
    body = read_as(TagChange, await json_of(request))
    await run_in_threadpool(_change, workspace, tag, body)
    return in_text(f"Tag {tag} updated")


def _tags(workspace: Workspace) -> dict[str, dict[str, Any]]:
    with workspace.catalog.reading() as cursor:
        kinds = tag_kinds.kinds(cursor)
        documents = {}
        for column in tag_columns(cursor):
            kind = kinds.get(column.tag, DEFAULT)
            value = json.dumps(list(kind.allowed))
            documents[column.tag] = {"tag": column.tag, "type": kind.kind, "value": value}
        return documents


def _tag(workspace: Workspace, tag: str) -> dict[str, Any]:
    document = _tags(workspace).get(tag.lower())
    if document is None:
        raise NotFound("tag", tag[:80])
    return document


def _change(workspace: Workspace, tag: str, body: TagChange) -> None:
    document = _tag(workspace, tag)
    if body.type not in (None, document["type"]):
        raise InvalidInput(f"tag '{tag}' is {document['type']}: the type of a tag cannot change")
    tags.set_kind(workspace.whole_catalog, document["tag"], document["type"], body.value)
