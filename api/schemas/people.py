"""Users, tokens, collections and the audit log as JSON: in the API and behind --json."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, Field

from catalog.accounts.user_tables import AuditEntry, Collection, Token, User
from catalog.records.tables import now


class UserBody(BaseModel):
    """A user."""

    name: str = Field(examples=["anna"])
    roles: list[str] = Field(examples=[["datauser"]])
    disabled: bool
    has_password: bool = Field(description="Else only tokens open the account.")
    created: str = Field(examples=["2026-11-21T14:08:18Z"])

    @classmethod
    def of(cls, user: User) -> "UserBody":
        """A record's."""
        return cls(
            name=user.name,
            roles=user.roles,
            disabled=user.disabled,
            has_password=bool(user.password),
            created=_time(user.created),
        )


class TokenBody(BaseModel):
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
    def of(cls, token: Token, user: str) -> "TokenBody":
        """A record's."""
        state = "expired" if token.expires <= now() else "valid"
        return cls(
            id=token.id,
            user=user,
            name=token.name,
            scope=token.scope,
            state="revoked" if token.revoked else state,
            created=_time(token.created),
            expires=_time(token.expires),
            last_used=_time(token.last_used) if token.last_used else None,
        )


class NewTokenBody(TokenBody):
    """A token that was made just now."""

    token: str = Field(
        description="Shown this once: only its hash is kept.", examples=["fs_Xb1..."]
    )


class CollectionBody(BaseModel):
    """A collection."""

    name: str = Field(examples=["munich"])
    rule: str = Field(examples=["datasource = 'a2d2' and filename like 'camera%'"])
    users: list[str] = Field(examples=[["anna"]])

    @classmethod
    def of(cls, collection: Collection, users: Sequence[str]) -> "CollectionBody":
        """A record's."""
        return cls(name=collection.name, rule=collection.rule, users=list(users))


class AuditBody(BaseModel):
    """A change, or a request that was refused."""

    id: int
    time: str
    who: str = Field(description="The user; empty where nobody was asked, or none was named.")
    address: str
    what: str = Field(description="Method, 'login', or the command.", examples=["POST"])
    target: str = Field(examples=["/v1/datasets"])
    outcome: str = Field(description="HTTP status, or 'done'.", examples=["201"])
    request_id: str
    note: str = Field(
        description="What was made or changed, where the target does not say it.",
        examples=["user anna: roles datauser"],
    )

    @classmethod
    def of(cls, entry: AuditEntry) -> "AuditBody":
        """A record's."""
        return cls(
            id=entry.id,
            time=_time(entry.time),
            who=entry.who,
            address=entry.address,
            what=entry.what,
            target=entry.target,
            outcome=entry.outcome,
            request_id=entry.request_id,
            note=entry.note,
        )


def _time(time: datetime) -> str:
    """A record's time as ISO 8601 in UTC."""
    return time.isoformat(timespec="seconds") + "Z"
