"""Regular expressions by name, and what one may be: RE2, whose time grows with the text alone."""

from contextlib import closing

import duckdb

from catalog.errors import InvalidInput
from catalog.records.kinds import REGEXES
from catalog.records.named import Named
from catalog.records.policy_tables import Regex
from catalog.records.store import RecordStore
from catalog.text.account_name import check_name

LONGEST = 4_096
"""Characters of a pattern."""

_REGEXES = Named("regex", REGEXES, "GET /policyengine/v1/regex lists them", "change it by PUT")
listed, recorded, remove = _REGEXES.listed, _REGEXES.recorded, _REGEXES.remove


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
    return _REGEXES.add(records, Regex(name=name, pattern=pattern, description=description))


def change(records: RecordStore, name: str, pattern: str | None, description: str | None) -> Regex:
    """Give it another pattern or description; None keeps what it has."""
    if pattern is not None:
        check_pattern(pattern)
    values = {"pattern": pattern, "description": description}
    columns = {column: text for column, text in values.items() if text is not None}
    return _REGEXES.change(records, name, **columns)
