"""If-Match and ETags by versions: which version a client has, and which one it means to change."""

from typing import Annotated, TypeVar

from fastapi import Depends, Header, Response

from api.http.middleware.etags import tags_in
from api.schemas.base import Versioned
from catalog.records.expected_version import ExpectedVersion

_Body = TypeVar("_Body", bound=Versioned)


async def _expected(
    if_match: Annotated[
        str | None,
        Header(
            alias="If-Match",
            description='ETag of the version that is to be changed, and no other; "*" for any.',
            examples=['"0f8fad5bd9cb469fa16570867728950e-5d41402abc4b2a76"'],
        ),
    ] = None,
) -> ExpectedVersion | None:
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return ExpectedVersion()
    # What follows the dash is of the document, which shows more than can be changed by it.
    return ExpectedVersion(frozenset(tag.partition("-")[0] for tag in tags_in(if_match)))


Expected = Annotated[ExpectedVersion | None, Depends(_expected)]
"""The version that If-Match names; None without the header."""


def tagged(response: Response, body: _Body) -> _Body:
    """A document whose ETag begins with its version; middleware.etags adds the rest."""
    response.headers["ETag"] = f'"{body.version}"'
    return body
