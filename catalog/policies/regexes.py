"""Regular expressions by name, and what one may be: RE2, whose time grows with the text alone."""

from contextlib import closing

import duckdb
from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.errors import AlreadyExists, InvalidInput, NotFound
from catalog.records.policy_tables import Regex
from catalog.records.store import RecordStore
from catalog.text.account_name import check_name, is_name

LONGEST = 4_096
"""Characters of a pattern."""


def check_pattern(pattern: str) -> None:
    """The text is a regular expression that can be run on anybody's data.

    Raises:
        InvalidInput: It is none, or has what would take exponential time: RE2 knows neither
            backreferences nor looking around.
    """
    excerpt = " ".join(pattern[:80].encode(errors="replace").decode().split())
    if not pattern or len(pattern) > LONGEST:
        raise InvalidInput(
            f"pattern '{excerpt}' has {len(pattern):,} characters; expected 1 to {LONGEST:,}"
        )
    try:
        pattern.encode()
        with closing(duckdb.connect(":memory:")) as engine:
            engine.execute("SELECT regexp_matches('', ?)", [pattern]).fetchall()
    except (duckdb.Error, UnicodeError) as error:
        reason = " ".join(str(error).split()).removeprefix("Invalid Input Error: ")[:200]
        raise InvalidInput(
            f"pattern '{excerpt}' is no regular expression of RE2 "
            f"(https://github.com/google/re2/wiki/Syntax): {reason}"
        ) from error


def add(records: RecordStore, name: str, pattern: str, description: str) -> Regex:
    """Keep a new one.

    Raises:
        AlreadyExists: The name is taken.
    """
    check_name("regex", name)
    check_pattern(pattern)
    regex = Regex(name=name, pattern=pattern, description=description)
    with records.session() as session:
        if session.get(Regex, name) is not None:
            raise AlreadyExists("regex", name, "change it by PUT")
        session.add(regex)
    return regex


def listed(records: RecordStore) -> list[Regex]:
    """Every one, by name."""
    with records.reading() as session:
        return list(session.scalars(select(Regex).order_by(Regex.name)))


def recorded(records: RecordStore, name: str) -> Regex:
    """The one of that name."""
    with records.reading() as session:
        return _get(session, name)


def change(records: RecordStore, name: str, pattern: str | None, description: str | None) -> Regex:
    """Give it another pattern or description; None keeps what it has."""
    if pattern is not None:
        check_pattern(pattern)
    with records.session() as session:
        regex = _get(session, name)
        regex.pattern = regex.pattern if pattern is None else pattern
        regex.description = regex.description if description is None else description
        return regex


def remove(records: RecordStore, name: str) -> None:
    """Forget it."""
    with records.session() as session:
        session.delete(_get(session, name))


def _get(session: Session, name: str) -> Regex:
    regex = session.get(Regex, name) if is_name(name) else None
    if regex is None:
        raise NotFound("regex", name[:140], "GET /policyengine/v1/regex lists them")
    return regex
