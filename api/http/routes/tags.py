"""/v1/tags: which there are, new ones, their kinds, and their values."""

import asyncio
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from fastapi import HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import At, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ, WRITE_ALL_ROWS
from api.schemas import bodies
from api.schemas.answers import ImportBody, TagBody, TagsAnswer
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotFound
from catalog.lake.views import tag_columns
from catalog.tags import tags
from catalog.tags.tag_kinds import kinds
from catalog.tags.tag_rules import DEFAULT, OWN_FAMILY
from catalog.text.bounded import MOST_MANY, Name, Text
from ingest.imports.options import Key
from ingest.imports.tag_import import import_tags, parse_types

router = Router(prefix="/v1/tags", tags=["tags"], examples={"type": ["weather=VARCHAR"]})

_MOST_BYTES = 256 * 2**20
"""Of the body, and of what Parquet's values take: its few bytes may stand for any number."""

_SUFFIXES = {
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
}


Kind = Literal["Open", "Restricted", "Characteristics"]


class NewTag(BaseModel):
    """A tag to be added."""

    model_config = ConfigDict(extra="forbid")

    tag: Name = Field(description="Lower-case letters, digits, '_' and '-'.", examples=["weather"])
    type: Literal["integer", "real", "text", "timestamp", "boolean"] = "text"
    kind: Name = Field(
        default=DEFAULT.kind,
        description="Open (256 characters), Restricted, or Characteristics (4,096).",
        examples=["Restricted"],
    )
    values: list[Text] = Field(
        default=[],
        max_length=MOST_MANY,
        fail_fast=True,
        description="Of a Restricted tag.",
        examples=[["sun", "rain", "fog"]],
    )
    family: Name = Field(default=OWN_FAMILY, description="Tag family to put it in.")


class TagChange(BaseModel):
    """What a tag is to be."""

    model_config = ConfigDict(extra="forbid")

    kind: Name = Field(description="Open, Restricted or Characteristics.", examples=["Restricted"])
    values: list[Text] = Field(
        default=[],
        max_length=MOST_MANY,
        fail_fast=True,
        description="All values of a Restricted tag.",
        examples=[["sun", "rain"]],
    )


class TagRemoved(BaseModel):
    """A tag that is no more."""

    model_config = ConfigDict(extra="forbid")

    tag: str = Field(examples=["weather"])
    files: int = Field(description="Files that had a value of it.", examples=[24])


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
async def get_tags(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    family: Annotated[str | None, Query(description="Only of this family.")] = None,
    kind: Annotated[Kind | None, Query(description="Only of this kind.")] = None,
    at: At = None,
) -> TagsAnswer:
    """Tags by name."""
    found = [
        tag
        for tag in await run_in_threadpool(_tags, workspace, at)
        if family in (None, tag.family) and kind in (None, tag.kind)
    ]
    shown, follows = page.page_of_all("tags", found, lambda tag: (tag.tag,), str)
    return TagsAnswer(tags=shown, next=follows)


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
async def post_tag(wanted: NewTag, workspace: CurrentWorkspace, response: Response) -> TagBody:
    """Add a tag that no file has a value of yet."""
    await run_in_threadpool(
        tags.add_tag,
        workspace.catalog,
        wanted.tag,
        wanted.type,
        wanted.kind,
        wanted.values,
        wanted.family,
    )
    response.headers["Location"] = f"/v1/tags/{wanted.tag}"
    return await run_in_threadpool(_tag, workspace, wanted.tag)


@router.post("/values", rule=WRITE_ALL_ROWS.but(body="file"), openapi_extra=_TABLE)
async def post_values(
    request: Request,
    workspace: CurrentWorkspace,
    family: Annotated[str, Query(description="Tag family to write.", examples=["weather"])],
    key: Annotated[
        Key | None,
        Query(
            description="What names a file: its name, its path with name, or its fkey; its fkey "
            "where the table has that column, else its name."
        ),
    ] = None,
    key_column: Annotated[
        str | None, Query(description="Column of the key; else of the key's name, or the first.")
    ] = None,
    type: Annotated[  # noqa: A002
        list[str] | None, Query(description="TAG=TYPE; repeatable; else inferred.")
    ] = None,
    prefix: Annotated[str, Query(description="Put before every tag's name.")] = "",
    datasource: Annotated[
        str | None, Query(description="Match files of this datasource only.")
    ] = None,
) -> ImportBody:
    """Import a table's columns as tags: CSV or Parquet, as Content-Type says; one commit."""
    types = parse_types(type or ())
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in _SUFFIXES:
        raise HTTPException(
            415, f"Content-Type '{sent[:80]}': expected one of {', '.join(_SUFFIXES)}"
        )
    with tempfile.TemporaryDirectory(prefix="framesift-") as folder:
        file = Path(folder, "body" + _SUFFIXES[sent])
        await _received(request, file)

        def imported() -> ImportBody:
            result = import_tags(
                workspace.catalog,
                file,
                family,
                key=key,
                key_column=key_column,
                types=types,
                prefix=prefix,
                datasource=datasource,
                most_bytes=_MOST_BYTES,
                stopped=left.is_set,
            )
            return ImportBody(**bodies.of_tag_import(result))

        left = threading.Event()
        watching = asyncio.create_task(_watch(request, left))
        try:
            return await run_in_threadpool(imported)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(file), "the body")) from error
        finally:
            watching.cancel()


@router.get("/{tag}", rule=READ)
async def get_tag(
    tag: Annotated[str, InPath(examples=["weather"])], workspace: CurrentWorkspace, at: At = None
) -> TagBody:
    """A tag."""
    return await run_in_threadpool(_tag, workspace, tag, at)


@router.patch(
    "/{tag}", rule=WRITE_ALL_ROWS, example={"kind": "Restricted", "values": ["sun", "rain", "snow"]}
)
async def patch_tag(
    tag: Annotated[str, InPath(examples=["weather"])],
    wanted: TagChange,
    workspace: CurrentWorkspace,
) -> TagBody:
    """Give a tag another kind or other values; refused where files have values it would refuse."""

    def change() -> TagBody:
        tags.set_kind(workspace.catalog, tag, wanted.kind, wanted.values)
        return _tag(workspace, tag)

    return await run_in_threadpool(change)


@router.delete("/{tag}", rule=WRITE_ALL_ROWS)
async def delete_tag(
    tag: Annotated[str, InPath(examples=["weather"])], workspace: CurrentWorkspace
) -> TagRemoved:
    """Remove a tag with its values; older snapshots keep it.

    Refused (409) for those that scans and extractors give: they would not give it again.
    """
    files = await run_in_threadpool(tags.drop_tag, workspace.catalog, tag)
    return TagRemoved(tag=tag, files=files)


async def _received(request: Request, file: Path) -> None:
    """Write the body aside."""
    size = 0
    async with await anyio.open_file(file, "wb") as out:
        async for chunk in request.stream():
            size += len(chunk)
            if size > _MOST_BYTES:
                raise HTTPException(413, f"the body has more than {_MOST_BYTES:,} bytes")
            await out.write(chunk)


async def _watch(request: Request, left: threading.Event) -> None:
    """Say when the client, whose body has come, is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


def _tags(workspace: Workspace, at: int | None = None) -> list[TagBody]:
    titles = workspace.class_names()
    with workspace.catalog.reading(at) as cursor:
        given = kinds(cursor)
        return [
            TagBody(
                tag=column.tag,
                family=column.table,
                type=column.type.lower(),
                kind=given.get(column.tag, DEFAULT).kind,
                values=list(given.get(column.tag, DEFAULT).allowed),
                title=titles.get(column.tag, ""),
            )
            for column in tag_columns(cursor)
        ]


def _tag(workspace: Workspace, tag: str, at: int | None = None) -> TagBody:
    for found in _tags(workspace, at):
        if found.tag == tag:
            return found
    raise NotFound("tag", tag[:80], "GET /v1/tags lists them")
