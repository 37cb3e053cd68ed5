"""Tokens: what a request carries in place of a password."""

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

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
from catalog.records.store import RecordStore
from catalog.records.tables import now
from catalog.records.user_tables import Token, User
from catalog.text.account_name import check_name

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

    token: Token
    user: User


def create(
    records: RecordStore, user_name: str, name: str, scope: str, lasts: timedelta
) -> tuple[Token, str]:
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


def log_in(records: RecordStore, user: User, lasts: timedelta = LOGIN_LASTS) -> str:
    """A token for a user whose password was right."""
    with records.session() as session:
        session.execute(delete(Token).where(Token.name.is_(None), Token.expires < now() - _KEPT))
        return _add(session, user, None, SCOPES[-1], lasts)[1]


def log_out(records: RecordStore, text: str) -> None:
    """Revoke a login's token; one with a name is left as it is."""
    with records.session() as session:
        ours = (Token.digest == digest_of(text), Token.name.is_(None), Token.revoked.is_(None))
        session.execute(update(Token).where(*ours).values(revoked=now()))


def _add(
    session: Session, user: User, name: str | None, scope: str, lasts: timedelta
) -> tuple[Token, str]:
    text = _PREFIX + secrets.token_urlsafe(_BYTES)
    token = Token(
        user_id=user.id, name=name, digest=digest_of(text), scope=scope, expires=now() + lasts
    )
    session.add(token)
    session.flush()
    return token, text


def holder(records: RecordStore, text: str) -> Grant | None:
    """The token and its user; None where it is none, expired or revoked, or the user disabled."""
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


def listed(records: RecordStore, user_name: str | None = None) -> list[tuple[Token, str]]:
    """Tokens with a name and their users' names, oldest first."""
    query = select(Token, User.name).join(User).where(Token.name.is_not(None)).order_by(Token.id)
    with records.reading() as session:
        if user_name is not None:
            query = query.where(Token.user_id == users.get(session, user_name).id)
        return [(token, name) for token, name in session.execute(query)]


def first_token(records: RecordStore) -> str | None:
    """A token of a new user `admin`, who has no password; None where there is any user already."""
    with records.reading() as session:
        if session.scalar(select(User.id).limit(1)) is not None:
            return None
    try:
        users.add(records, _FIRST_ADMIN, ["admin"], None)
    except AlreadyExists:
        return None  # another server, started at the same moment, has it
    return create(records, _FIRST_ADMIN, "first-start", "admin", _FIRST_LASTS)[1]


def recorded(records: RecordStore, number: int) -> tuple[Token, str]:
    """The token of that number and its user's name."""
    with records.reading() as session:
        return _get(session, number)


def revoke(
    records: RecordStore, number: int, expected: ExpectedVersion | None = None
) -> tuple[Token, str]:
    """Revoke a token; its record and its user's name."""
    with records.session() as session:
        token = to_change("token", str(number), expected, lambda: _get(session, number)[0])
        token.revoked = token.revoked or now()
        return _get(session, number)


def _get(session: Session, number: int) -> tuple[Token, str]:
    query = select(Token, User.name).join(User).where(Token.id == number)
    row = session.execute(query).first() if 0 < number < 2**31 else None
    if row is None:
        raise NotFound("token", str(number), "framesift token list shows their numbers")
    return row[0], row[1]


def digest_of(text: str) -> str:
    """The digest of a token, which the records keep."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
