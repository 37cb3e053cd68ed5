"""/v1/sources: places that hold files."""

from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.sources import (
    NewSource,
    Platform,
    SourceAdded,
    SourceChange,
    SourceChanged,
    SourceContents,
    SourceRemoved,
    SourcesAnswer,
    SourceShown,
)

router = Router(prefix="/v1/sources", tags=["sources"], examples={"name": "a2d2"})


@router.get("", rule=READ_ALL_ROWS)
def get_sources(
    session: CurrentSession,
    page: CurrentPage,
    platform: Annotated[Platform | None, Query(description="Only of this platform.")] = None,
    cluster: Annotated[str | None, Query(description="Only on this cluster.")] = None,
    datasource: Annotated[str | None, Query(description="Only this datasource.")] = None,
) -> SourcesAnswer:
    """Sources by name."""
    sources = session.sources.list(platform=platform, cluster=cluster, datasource=datasource)
    listed, follows = page.page_of_all("sources", sources, lambda source: (source.name,), str)
    return SourcesAnswer(sources=listed, next=follows)


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
def post_source(body: NewSource, session: CurrentSession, response: Response) -> SourceAdded:
    """Add a source; a scan then catalogs its files.

    Where no `layout` is sent, its first names are looked at: the layout that alone fits is taken.

    Who is no admin may name only what this server lets be named: FRAMESIFT_SOURCE_ROOTS,
    FRAMESIFT_SOURCE_SCHEMES and FRAMESIFT_SOURCE_HOSTS.
    """
    added = session.sources.add(**dict(body))
    response.headers["Location"] = f"/v1/sources/{quote(added.name, safe='')}"
    return added


@router.get("/{name}", rule=READ_ALL_ROWS)
def get_source(name: str, session: CurrentSession, response: Response) -> SourceShown:
    """A source, with its layout."""
    return tagged(response, session.sources.get(name))


@router.get("/{name}/contents", rule=READ_ALL_ROWS)
def get_contents(name: str, session: CurrentSession) -> SourceContents:
    """Counts of what hangs on a source: files, frames, tags that people gave, datasets."""
    return session.sources.contents(name)


@router.patch(
    "/{name}",
    rule=WRITE_ALL_ROWS,
    example={
        "uri": "/mnt/new/camera_lidar_semantic",
        "exclude": ["lost+found", ".snapshot"],
    },
)
def patch_source(
    name: str, body: SourceChange, session: CurrentSession, expected: Expected
) -> SourceChanged:
    """Change a source: its root, what it leaves out, the data set it is part of.

    With ``uri`` a source whose files were moved is re-pointed, and its datasets follow. Its files
    are listed at the new place first: where some that are catalogued are missing or changed there,
    nothing is done (422), unless ``differing`` is sent. ``exclude`` replaces the list, and the next
    scan obeys it.
    """
    return session.sources.change(name, expected=expected, **dict(body))


@router.delete("/{name}", rule=WRITE_ALL_ROWS)
def delete_source(name: str, session: CurrentSession, expected: Expected) -> SourceRemoved:
    """Remove a source and its files' rows from the catalog; the files stay where they are.

    `GET /v1/sources/{name}/contents` says beforehand what hangs on it. Tags that people gave are
    kept, and return when the files are catalogued under the same cluster and datasource again.
    """
    return session.sources.remove(name, expected=expected)
