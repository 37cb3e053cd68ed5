"""Links by which a browser is logged in once: a user who can start a server may open its pages.

A link is a record beside those of tokens, with a prefix of its own: it is no token, and a token is
no link.
"""

import secrets
from datetime import timedelta

from sqlalchemy import select

from catalog.accounts.accounts import SCOPES
from catalog.accounts.tokens import digest_of
from catalog.errors import NotAuthenticated
from catalog.records.store import RecordStore
from catalog.records.user_tables import Token, User
from catalog.values import now

MINUTES = 15
"""How long a link may be used."""

_PREFIX = "fl_"
_BYTES = 32


def new_link(records: RecordStore) -> tuple[str, str] | None:
    """The text of a new link, and the name of the user whom it logs in: the oldest admin.

    None where every admin is disabled.
    """
    with records.session() as session:
        users = session.scalars(select(User).where(User.disabled.is_(False)).order_by(User.id))
        user = next((user for user in users if "admin" in user.roles), None)
        if user is None:
            return None
        text = _PREFIX + secrets.token_urlsafe(_BYTES)
        session.add(
            Token(
                user_id=user.id, name=None, digest=digest_of(text), scope=SCOPES[-1],
                expires=now() + timedelta(minutes=MINUTES),
            )
        )  # fmt: skip
        return text, user.name


def user_by(records: RecordStore, text: str) -> User:
    """The user whom a link logs in; the link is used up.

    Raises:
        NotAuthenticated: The link was used, has expired or is unknown, or its user is
            disabled.
    """
    with records.session() as session:
        query = select(Token, User).join(User).where(
            Token.digest == digest_of(text), Token.revoked.is_(None), Token.expires > now(),
            User.disabled.is_(False),
        )  # fmt: skip
        row = session.execute(query).first() if text.startswith(_PREFIX) else None
        if row is None:
            raise NotAuthenticated(
                f"the link was used, is older than {MINUTES} minutes, or its user was disabled or "
                "removed: start the server again for another, or log in with a token or a password"
            )
        row[0].revoked = now()
        user: User = row[1]
        return user
