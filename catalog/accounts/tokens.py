"""Tokens: what a request carries in place of a password."""

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from catalog.accounts import users
from catalog.accounts.accounts import MOST_DAYS, SCOPES
from catalog.errors import (
    AlreadyExists,
    CatalogBusy,
    InvalidInput,
    NotFound,
    StorageError,
    UnknownName,
)
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.kinds import TOKENS
from catalog.records.reading import Records, ids_in
from catalog.text.account_name import check_name
from catalog.values import now

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from sqlalchemy.orm import Session

    from catalog.records.store import RecordStore
    from catalog.records.user_tables import Token, User

LOGIN_LASTS = timedelta(hours=1)
_FIRST_ADMIN, _FIRST_LASTS = "admin", timedelta(days=1)
"""Life of a login's token, the same as Spectrum Discover's."""


_PREFIX = "fs_"
"""Begins every token, so that tools which look for forgotten secrets find them."""

_BYTES = 32
_KEPT = timedelta(days=1)
_USE_NOTED = timedelta(minutes=1)


@dataclass(frozen=True)
class Grant:
    """Valid token and its user."""

    token: "Token"
    user: "User"


def create(
    records: "RecordStore", user_name: str, name: str, scope: str, lasts: timedelta
) -> "tuple[Token, str]":
    """A new token with a name.

    Args:
        name: Tells a user's tokens apart.
        scope: Of SCOPES.

    Returns:
        Its record, and the token itself, which nothing shows again.

    Raises:
        UnknownName: An unknown scope.
        InvalidInput: The name cannot be used, or it would last too long.
        AlreadyExists: The user has a token of that name, though it may be revoked.
    """
    from sqlalchemy import select

    from catalog.records.user_tables import Token

    check_name("token", name)
    if scope not in SCOPES:
        raise UnknownName("scope", scope, SCOPES)
    if not timedelta() < lasts <= timedelta(days=MOST_DAYS):
        raise InvalidInput(f"a token of {lasts.days} days: expected 1 to {MOST_DAYS}")
    with records.session() as session:
        user = users.get(session, user_name)
        if session.scalar(select(Token).where(Token.user_id == user.id, Token.name == name)):
            raise AlreadyExists("token", name, f"user {user_name} has it; choose another name")
        return _add(session, user, name, scope, lasts)


def log_in(records: "RecordStore", user: "User", lasts: timedelta = LOGIN_LASTS) -> str:
    """A token for a user whose password was right."""
    from sqlalchemy import delete

    from catalog.records.user_tables import Token

    with records.session() as session:
        session.execute(delete(Token).where(Token.name.is_(None), Token.expires < now() - _KEPT))
        return _add(session, user, None, SCOPES[-1], lasts)[1]


def log_out(records: "RecordStore", text: str) -> None:
    """Revoke a login's token; one with a name is left as it is."""
    from sqlalchemy import update

    from catalog.records.user_tables import Token

    with records.session() as session:
        ours = (Token.digest == digest_of(text), Token.name.is_(None), Token.revoked.is_(None))
        session.execute(update(Token).where(*ours).values(revoked=now()))


def _add(
    session: "Session", user: "User", name: str | None, scope: str, lasts: timedelta
) -> "tuple[Token, str]":
    from catalog.records.user_tables import Token

    text = _PREFIX + secrets.token_urlsafe(_BYTES)
    token = Token(
        user_id=user.id, name=name, digest=digest_of(text), scope=scope, expires=now() + lasts
    )
    session.add(token)
    session.flush()
    return token, text


def holder(records: "RecordStore", text: str) -> Grant | None:
    """The token and its user; None where it is none, expired or revoked, or the user disabled."""
    from sqlalchemy import select, update

    from catalog.records.user_tables import Token, User

    if not text.startswith(_PREFIX):
        return None
    with records.reading() as session:
        row = session.execute(
            select(Token, User).join(User).where(Token.digest == digest_of(text))
        ).first()
    if row is None:
        return None
    token, user = row
    if token.revoked is not None or token.expires <= now() or user.disabled:
        return None
    if token.last_used is None or now() - token.last_used > _USE_NOTED:
        # A request that only reads must not wait for a writer, nor fail on a full disk: the next
        # one notes it.
        with suppress(CatalogBusy, StorageError), records.session(waits=False) as session:
            # Not through the record: that it is used makes no other version of it.
            session.execute(update(Token).where(Token.id == token.id).values(last_used=now()))
    return Grant(token, user)


def listed(records: Records, user_name: str | None = None) -> "list[tuple[Token, str]]":
    """Tokens with a name and their users' names, oldest first."""
    where = "name IS NOT NULL"
    if user_name is not None:
        where = f"{where} AND user_id = {users.recorded(records, user_name).id}"
    return _with_names(records, where)


def first_token(records: "RecordStore") -> str | None:
    """A token of a new user `admin`, who has no password; None where there is any user already."""
    if records.rows("SELECT id FROM users LIMIT 1"):
        return None
    try:
        users.add(records, _FIRST_ADMIN, ["admin"], None)
    except AlreadyExists:
        return None  # another server, started at the same moment, has it
    return create(records, _FIRST_ADMIN, "first-start", "admin", _FIRST_LASTS)[1]


def recorded(records: Records, number: int) -> "tuple[Token, str]":
    """The token of that number and its user's name."""
    rows = _with_names(records, f"id = {number}") if 0 < number < 2**31 else []
    if not rows:
        raise _missing(number)
    return rows[0]


def _with_names(records: Records, where: str) -> "list[tuple[Token, str]]":
    """Tokens and their users' names, oldest first."""
    tokens = records.select(TOKENS, where, order="id")
    of_these = ids_in("id", {token.user_id for token in tokens})
    names = dict(records.rows(f"SELECT id, name FROM users WHERE {of_these}"))
    # A user who was removed meanwhile took the tokens along.
    return [(token, names[token.user_id]) for token in tokens if token.user_id in names]


def _missing(number: int) -> NotFound:
    return NotFound("token", str(number), "framesift token list shows their numbers")


def revoke(
    records: "RecordStore", number: int, expected: ExpectedVersion | None = None
) -> "tuple[Token, str]":
    """Revoke a token; its record and its user's name."""
    with records.session() as session:
        token = to_change("token", str(number), expected, lambda: _get(session, number)[0])
        token.revoked = token.revoked or now()
        return _get(session, number)


def _get(session: "Session", number: int) -> "tuple[Token, str]":
    from sqlalchemy import select

    from catalog.records.user_tables import Token, User

    query = select(Token, User.name).join(User).where(Token.id == number)
    row = session.execute(query).first() if 0 < number < 2**31 else None
    if row is None:
        raise _missing(number)
    return row[0], row[1]


def digest_of(text: str) -> str:
    """The digest of a token, which the records keep."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
