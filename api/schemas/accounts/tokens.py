"""Tokens as JSON."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.base import PageAnswer, Versioned, iso_time
from catalog.accounts.accounts import MOST_DAYS
from catalog.text.bounded import Name
from catalog.values import now

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.user_tables import Token

DAYS = 365
"""Days for which a token is valid by default."""


class TokenBody(Versioned):
    """A token, without what it is made of."""

    id: int
    user: str = Field(examples=["anna"])
    name: str | None = Field(examples=["notebook"])
    scope: str = Field(examples=["read"])
    state: str = Field(description="valid, expired or revoked", examples=["valid"])
    created: str = Field(examples=["2026-11-21T14:08:18Z"])
    expires: str = Field(examples=["2027-11-21T14:08:18Z"])
    last_used: str | None = Field(description="To the minute.", examples=["2026-11-21T15:00:00Z"])

    @classmethod
    def of(cls, token: "Token", user: str) -> "TokenBody":
        """A record's."""
        state = "expired" if token.expires <= now() else "valid"
        return cls(
            id=token.id,
            user=user,
            name=token.name,
            scope=token.scope,
            state="revoked" if token.revoked else state,
            created=iso_time(token.created),
            expires=iso_time(token.expires),
            last_used=iso_time(token.last_used) if token.last_used else None,
        ).of_version(token.version)


class NewTokenBody(TokenBody):
    """A token that was made just now."""

    token: str = Field(
        description="Shown this once: only its hash is kept.", examples=["fs_Xb1..."]
    )


class TokensAnswer(PageAnswer):
    """Tokens, oldest first."""

    tokens: list[TokenBody]


class NewToken(BaseModel):
    """A token to be made."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(examples=["notebook"])
    scope: Name = Field(default="read", description="read, write or admin; each has those before.")
    days: int = Field(default=DAYS, ge=1, le=MOST_DAYS, description="Until it expires.")
    user: Name | None = Field(
        default=None, description="The token's user; the caller where it is left out."
    )
