"""/v1/sources: places that hold files."""

from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import Query, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentCaller, CurrentWorkspace
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.answers import SourceBody, SourceContents, SourcesAnswer
from api.schemas.wanted_source import NewSource, SourceChange
from api.services.new_source import add_source, change_source
from api.services.source_contents import contents_of
from catalog.records.tables import Source
from ingest.scan.change_source import remove_source

router = Router(prefix="/v1/sources", tags=["sources"], examples={"name": "a2d2"})

Platform = Literal["IBM COS", "S3", "NFS", "Spectrum Scale", "SMB/CIFS", "local"]


class SourceChanged(BaseModel):
    """A source as it is now; where it was moved, what lies there of what is catalogued."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["a2d2"])
    uri: str = Field(examples=["/mnt/new/camera_lidar_semantic"])
    exclude: list[str] = Field(
        description="What the next scan leaves out.", examples=[["lost+found", ".snapshot"]]
    )
    part_of: str = Field(description="Data set that it is a part of.", examples=["a2d2"])
    same: int | None = Field(
        description="Files that are as they are catalogued; this and the following null where no "
        "`uri` was sent.",
        examples=[48],
    )
    changed: int | None = Field(
        description="Files of another size, ETag or time of last change.", examples=[0]
    )
    missing: int | None = Field(
        description="Files that are catalogued and not there.", examples=[0]
    )
    new: int | None = Field(description="Files that are there and not catalogued.", examples=[2])


class SourceRemoved(BaseModel):
    """A source that is no more."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["a2d2"])
    files_removed: int = Field(description="Rows taken out of the catalog.", examples=[48])


@router.get("", rule=READ_ALL_ROWS)
async def get_sources(
    workspace: CurrentWorkspace,
    page: CurrentPage,
    platform: Annotated[Platform | None, Query(description="Only of this platform.")] = None,
    cluster: Annotated[str | None, Query(description="Only on this cluster.")] = None,
    datasource: Annotated[str | None, Query(description="Only this datasource.")] = None,
) -> SourcesAnswer:
    """Sources by name."""
    wanted = {"platform": platform, "cluster": cluster, "datasource": datasource}
    found = await run_in_threadpool(workspace.records.sources)
    matching = [source for source in found if _fits(source, wanted)]
    shown, follows = page.page_of_all("sources", matching, lambda source: (source.name,), str)
    return SourcesAnswer(sources=[SourceBody.of(source) for source in shown], next=follows)


@router.post(
    "",
    rule=WRITE_ALL_ROWS.but(idempotency_key="takes"),
    status_code=201,
    example={
        "name": "a2d2",
        "uri": "s3://a2d2/camera_lidar_semantic",
        "platform": "IBM COS",
        "endpoint_url": "https://s3.eu-de.cloud-object-storage.appdomain.cloud",
    },
)
async def post_source(
    wanted: NewSource, caller: CurrentCaller, workspace: CurrentWorkspace, response: Response
) -> SourceBody:
    """Add a source; a scan then catalogs its files.

    Who is no admin may name only what this server lets be named: FRAMESIFT_SOURCE_ROOTS,
    FRAMESIFT_SOURCE_SCHEMES and FRAMESIFT_SOURCE_HOSTS.
    """
    added = await run_in_threadpool(add_source, workspace, wanted, caller)
    response.headers["Location"] = f"/v1/sources/{quote(added.name, safe='')}"
    return SourceBody.of(added)


@router.get("/{name}", rule=READ_ALL_ROWS)
async def get_source(name: str, workspace: CurrentWorkspace) -> SourceBody:
    """A source."""
    return SourceBody.of(await run_in_threadpool(workspace.records.source, name))


@router.get("/{name}/contents", rule=READ_ALL_ROWS)
async def get_contents(name: str, workspace: CurrentWorkspace) -> SourceContents:
    """What hangs on a source: files, frames, tags that people gave, datasets."""
    return SourceContents(**await run_in_threadpool(contents_of, workspace, name))


@router.patch(
    "/{name}",
    rule=WRITE_ALL_ROWS,
    example={
        "uri": "/mnt/new/camera_lidar_semantic",
        "exclude": ["lost+found", ".snapshot"],
    },
)
async def patch_source(
    name: str, wanted: SourceChange, caller: CurrentCaller, workspace: CurrentWorkspace
) -> SourceChanged:
    """Change a source: where its files lie, what is left out, which data set it is a part of.

    With ``uri`` a source whose files were moved is re-pointed, and its datasets follow. Its files
    are listed at the new place first: where some that are catalogued are missing or changed there,
    nothing is done (422), unless ``differing`` is sent. ``exclude`` replaces the list, and the next
    scan obeys it.
    """
    changed = await run_in_threadpool(change_source, workspace, name, wanted, caller)
    return SourceChanged(**changed)


@router.delete("/{name}", rule=WRITE_ALL_ROWS)
async def delete_source(name: str, workspace: CurrentWorkspace) -> SourceRemoved:
    """Remove a source and its files' rows from the catalog; the files stay where they are.

    `GET /v1/sources/{name}/contents` says beforehand what hangs on it. Tags that people gave are
    kept, and return when the files are catalogued under the same cluster and datasource again.
    """
    removed = await run_in_threadpool(remove_source, workspace.catalog, workspace.records, name)
    return SourceRemoved(name=name, files_removed=removed)


def _fits(source: Source, wanted: dict[str, str | None]) -> bool:
    return all(value in (None, getattr(source, field)) for field, value in wanted.items())
