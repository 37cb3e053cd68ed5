"""/v1/families: tags that were written together, by an extractor or an import."""

from typing import Annotated

from fastapi import Path
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field

from api.http.dependencies import CurrentWorkspace
from api.http.pages import CurrentPage, PageAnswer
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from catalog.errors import NotFound
from catalog.tags import families
from catalog.tags.families import Family

router = Router(prefix="/v1/families", tags=["tags"])

Name = Annotated[str, Path(description="The tag family.", examples=["weather"])]


class FamilyBody(BaseModel):
    """A tag family."""

    name: str = Field(examples=["weather"])
    columns: dict[str, str] = Field(
        description="Its tags and their types.", examples=[{"weather": "VARCHAR"}]
    )
    rows: int = Field(description="Files that have a row in it.", examples=[24])

    @classmethod
    def of(cls, family: Family) -> "FamilyBody":
        """The catalog's."""
        return cls(name=family.name, columns=dict(family.columns), rows=family.rows)


class FamiliesAnswer(PageAnswer):
    """Tag families in order of creation."""

    families: list[FamilyBody]


class FamilyDropped(BaseModel):
    """A tag family that is no more."""

    model_config = ConfigDict(extra="forbid")

    family: str = Field(examples=["weather"])
    rows: int = Field(description="Files that had a row in it.", examples=[24])


@router.get("", rule=READ_ALL_ROWS)
async def get_families(workspace: CurrentWorkspace, page: CurrentPage) -> FamiliesAnswer:
    """Tag families that extractors and imports wrote, in order of creation."""
    found = await run_in_threadpool(families.families, workspace.catalog)
    numbered = list(enumerate(found))
    shown, follows = page.page_of_all("families", numbered, lambda each: (each[0],), int)
    return FamiliesAnswer(families=[FamilyBody.of(each) for _, each in shown], next=follows)


@router.get("/{family}", rule=READ_ALL_ROWS)
async def get_family(family: Name, workspace: CurrentWorkspace) -> FamilyBody:
    """A tag family."""
    for found in await run_in_threadpool(families.families, workspace.catalog):
        if found.name == family:
            return FamilyBody.of(found)
    raise NotFound("tag family", family[:80], "GET /v1/families lists them")


@router.delete("/{family}", rule=WRITE_ALL_ROWS)
async def delete_family(family: Name, workspace: CurrentWorkspace) -> FamilyDropped:
    """Remove a tag family with its tags and values; older snapshots keep it."""
    rows = await run_in_threadpool(families.drop, workspace.catalog, family)
    return FamilyDropped(family=family, rows=rows)
