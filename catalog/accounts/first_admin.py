"""The first user of a home that has none, and the token by which it is let in."""

from datetime import timedelta

from sqlalchemy import select

from catalog.accounts import tokens, users
from catalog.errors import AlreadyExists
from catalog.records.store import RecordStore
from catalog.records.user_tables import User

NAME = "admin"
LASTS = timedelta(days=1)


def first_token(records: RecordStore) -> str | None:
    """A token of a new user `admin`, who has no password; None where there is any user already."""
    with records.reading() as session:
        if session.scalar(select(User.id).limit(1)) is not None:
            return None
    try:
        users.add(records, NAME, ["admin"], None)
    except AlreadyExists:
        return None  # another server, started at the same moment, has it
    return tokens.create(records, NAME, "first-start", "admin", LASTS)[1]
