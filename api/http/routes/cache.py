"""/v1/cache: what lies near the jobs."""

from typing import Annotated

from fastapi import Path as InPath
from fastapi import Query

from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import ADMIN_WRITE, READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.base import set_fields
from api.schemas.cache import (
    FILESETS,
    FILESETS_WITH,
    CacheContents,
    CacheEviction,
    CacheLimits,
    CacheLimitsChange,
    CachePin,
    CacheStatusAnswer,
)

router = Router(prefix="/v1/cache", tags=["stagings"], examples={"dataset": "bikes@1"})

CachedDataset = Annotated[str, InPath(description="NAME, or NAME@VERSION.", examples=["bikes@1"])]


@router.get("", rule=READ_ALL_ROWS.but(work="statistics"))
def get_cache(session: CurrentSession) -> CacheStatusAnswer:
    """Space in the server's cache, by dataset and by source, and the jobs that use it."""
    return session.cache.status()


@router.get("/limits", rule=READ_ALL_ROWS)
def get_limits(session: CurrentSession) -> CacheLimits:
    """Limits of the server's cache."""
    return session.cache.limits()


@router.patch(
    "/limits",
    rule=ADMIN_WRITE,
    example={"soft_bytes": 900_000_000_000, "hard_bytes": 1_000_000_000_000},
)
def patch_limits(body: CacheLimitsChange, session: CurrentSession) -> CacheLimits:
    """Set limits of the server's cache, for all who share it; those that are not sent stay."""
    return session.cache.limit(**set_fields(body))


@router.put("/pins/{dataset}", rule=WRITE_ALL_ROWS)
def put_pin(dataset: CachedDataset, session: CurrentSession) -> CachePin:
    """Have a dataset stay in the cache until it is unpinned."""
    return session.cache.pin(dataset)


@router.delete("/pins/{dataset}", rule=WRITE_ALL_ROWS)
def delete_pin(dataset: CachedDataset, session: CurrentSession) -> CachePin:
    """Let a dataset be evicted again."""
    return session.cache.unpin(dataset)


@router.get("/datasets/{dataset}", rule=READ_ALL_ROWS.but(work="statistics"))
def get_cached(
    dataset: CachedDataset,
    session: CurrentSession,
    page: CurrentPage,
    filesets: Annotated[
        list[str] | None,
        Query(
            alias="from",
            max_length=100,
            description=FILESETS_WITH,
            examples=[["afm:ess3000_4M/a2d2_cos"]],
        ),
    ] = None,
    missing: Annotated[bool, Query(description="The files that are not cached instead.")] = False,
) -> CacheContents:
    """The files of a dataset that are cached, by source and key."""
    files = session.cache.contents(dataset, filesets=filesets or (), missing=missing)
    passed = page.number_after("files") or 0
    numbered = list(enumerate(files, 1))[max(0, passed) : passed + page.limit + 1]
    listed, follows = page.page("files", numbered, lambda each: (each[0],))
    return CacheContents(files=[file for _, file in listed], next=follows)


@router.delete("/datasets/{dataset}", rule=WRITE_ALL_ROWS)
def delete_cached(
    dataset: CachedDataset,
    session: CurrentSession,
    filesets: Annotated[
        list[str] | None,
        Query(
            alias="from",
            max_length=100,
            description=FILESETS,
            examples=[["afm:ess3000_4M/a2d2_cos"]],
        ),
    ] = None,
) -> CacheEviction:
    """Evict a dataset: 409 where a running job uses it, or it is pinned.

    Files that other staged datasets name stay. The dataset itself is as it was.
    """
    return session.cache.evict(dataset, filesets=filesets or ())
