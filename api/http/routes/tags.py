"""/v1/tags: which there are, new ones, their kinds, and their values."""

from functools import partial
from typing import Annotated, Any

from fastapi import Path as InPath
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api.http.conditions import Expected, tagged
from api.http.dependencies import At, CurrentContext, CurrentSession
from api.http.disconnect_watcher import run_while_connected
from api.http.openapi.examples import EXAMPLE_FRAME
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE_ALL_ROWS
from api.http.sent_file import sent_file
from api.schemas.tags import (
    ImportBody,
    Kind,
    Marks,
    NewGroup,
    NewScores,
    NewTag,
    ScoresBody,
    TagBody,
    TagChange,
    TagRemoved,
    TagsAnswer,
    TagValuesAnswer,
)
from ingest.imports.options import Key
from ingest.imports.tag_import import parse_types

router = Router(prefix="/v1/tags", tags=["tags"])

_MOST_BYTES = 256 * 2**20
"""Most memory that a body's Parquet values take [bytes]: few bytes may stand for any number."""

_SUFFIXES = {
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
}


_TABLE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {
                "schema": {"type": "string"},
                "example": "filename,weather\nx.png,rain\n",
            },
            "application/vnd.apache.parquet": {
                "schema": {"type": "string", "format": "binary"},
                "example": "the bytes of a Parquet file",
            },
        },
    }
}


@router.get("", rule=READ)
def get_tags(
    session: CurrentSession,
    page: CurrentPage,
    family: Annotated[str | None, Query(description="Only of this family.")] = None,
    kind: Annotated[Kind | None, Query(description="Only of this kind.")] = None,
    at: At = None,
) -> TagsAnswer:
    """Tags by name."""
    tags = [
        tag
        for tag in session.tags.list(at=at)
        if family in (None, tag.family) and kind in (None, tag.kind)
    ]
    listed, follows = page.page_of_all("tags", tags, lambda tag: (tag.tag,), str)
    return TagsAnswer(tags=listed, next=follows)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={
        "tag": "weather",
        "kind": "Restricted",
        "values": ["sun", "rain", "fog"],
    },
)
def post_tag(body: NewTag, session: CurrentSession, response: Response) -> TagBody:
    """Add a tag that no file has a value of yet."""
    more: dict[str, Any] = {"kind": body.kind, "values": body.values, "family": body.family}
    tag = session.tags.add(body.tag, body.type, **more)
    response.headers["Location"] = f"/v1/tags/{body.tag}"
    return tag


@router.post(
    "/groups",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={"tag": "two_wheelers", "classes": ["bicycle", "motorcycle"]},
)
def post_group(body: NewGroup, session: CurrentSession, response: Response) -> TagBody:
    """Define a class group, a tag that is the sum of the pixels of classes.

    ``DELETE /v1/tags/{tag}`` removes it; older snapshots keep it.
    """
    group = session.tags.group(body.tag, body.classes)
    response.headers["Location"] = f"/v1/tags/{body.tag}"
    return group


class TableQuery(BaseModel):
    """The columns of a table that are files and tags."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: str = Field(description="Tag family to write.", examples=["weather"])
    key: Key | None = Field(
        default=None,
        description="What names a file: its name, its path with name, or its fkey; its fkey where "
        "the table has that column, else its name.",
    )
    key_column: str | None = Field(
        default=None, description="Column of the key; else of the key's name, or the first."
    )
    type: list[str] = Field(
        default=[],
        description="TAG=TYPE; repeatable; else inferred.",
        examples=[["weather=VARCHAR"]],
    )
    prefix: str = Field(default="", description="Put before every tag's name.")
    datasource: str | None = Field(default=None, description="Match files of this datasource only.")


@router.post("/values", rule=WRITE_ALL_ROWS.but(body="file"), openapi_extra=_TABLE)
async def post_values(
    request: Request, query: Annotated[TableQuery, Query()], session: CurrentSession
) -> ImportBody:
    """Import a table's columns as tags: CSV or Parquet, as Content-Type says; one commit."""
    parse_types(query.type)  # before the body is read
    async with sent_file(request, _SUFFIXES) as file:
        imported = partial(session.tags.import_values, file, **dict(query), most_bytes=_MOST_BYTES)
        return await run_while_connected(request.receive, imported)


@router.post(
    "/scores",
    rule=WRITE_ALL_ROWS,
    example={"job": "validate-streets-1"},
)
def post_scores(body: NewScores, session: CurrentSession) -> ScoresBody:
    """Make a validation's scores of frames tags of its model, with what it took for what."""
    return session.tags.import_scores(body.job)


@router.post(
    "/marks",
    rule=WRITE_ALL_ROWS,
    example={"fkeys": [EXAMPLE_FRAME["fkey"]], "values": {"quality": "bad"}},
)
def post_marks(body: Marks, session: CurrentSession, context: CurrentContext) -> ImportBody:
    """Give frames values of tags, in one commit; a new tag becomes one of the users' own."""
    context.about = f"{', '.join(body.values)} of {len(body.fkeys)} frames"
    return session.tags.mark(body.fkeys, body.values)


@router.get("/{tag}", rule=READ)
def get_tag(
    tag: Annotated[str, InPath(examples=["weather"])],
    session: CurrentSession,
    response: Response,
    at: At = None,
) -> TagBody:
    """A tag."""
    return tagged(response, session.tags.get(tag, at=at))


@router.get("/{tag}/values", rule=READ.but(work="statistics"))
def get_values(
    tag: Annotated[str, InPath(examples=["weather"])],
    session: CurrentSession,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many values.")] = 100,
    at: At = None,
) -> TagValuesAnswer:
    """The most frequent values of a tag, and how many files have each."""
    return session.tags.values(tag, at=at, limit=limit)


@router.patch(
    "/{tag}", rule=WRITE_ALL_ROWS, example={"kind": "Restricted", "values": ["sun", "rain", "snow"]}
)
def patch_tag(
    tag: Annotated[str, InPath(examples=["weather"])],
    body: TagChange,
    session: CurrentSession,
    expected: Expected,
) -> TagBody:
    """Change a tag's kind or values; refused if files have values that are then not allowed."""
    return session.tags.set(tag, body.kind, values=body.values, expected=expected)


@router.delete("/{tag}", rule=WRITE_ALL_ROWS)
def delete_tag(
    tag: Annotated[str, InPath(examples=["weather"])], session: CurrentSession, expected: Expected
) -> TagRemoved:
    """Remove a tag with its values; older snapshots keep it.

    Refused (409) for those that scans and extractors give: they would not give it again.
    """
    return session.tags.remove(tag, expected=expected)
