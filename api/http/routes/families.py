"""/v1/families: tags that were written together, by an extractor or an import."""

from typing import Annotated

from fastapi import Path, Response

from api.http.conditions import Expected, tagged
from api.http.dependencies import CurrentSession
from api.http.pages import CurrentPage
from api.http.routing import Router
from api.http.rules import READ_ALL_ROWS, WRITE_ALL_ROWS
from api.schemas.tags import FamiliesAnswer, FamilyBody, FamilyDropped

router = Router(prefix="/v1/families", tags=["tags"])

Name = Annotated[str, Path(description="The tag family.", examples=["weather"])]


@router.get("", rule=READ_ALL_ROWS)
def get_families(session: CurrentSession, page: CurrentPage) -> FamiliesAnswer:
    """Tag families that extractors and imports wrote, in order of creation."""
    numbered = list(enumerate(session.tags.families()))
    listed, follows = page.page_of_all("families", numbered, lambda each: (each[0],), int)
    return FamiliesAnswer(families=[family for _, family in listed], next=follows)


@router.get("/{family}", rule=READ_ALL_ROWS)
def get_family(family: Name, session: CurrentSession, response: Response) -> FamilyBody:
    """A tag family."""
    return tagged(response, session.tags.family(family))


@router.delete("/{family}", rule=WRITE_ALL_ROWS)
def delete_family(family: Name, session: CurrentSession, expected: Expected) -> FamilyDropped:
    """Remove a tag family with its tags and values; older snapshots keep it."""
    return session.tags.drop(family, expected=expected)
