"""What an answer to a statement of any content must be: rows that fit it, or a refusal by name."""

import re

import pyarrow as pa

from catalog.errors import FramesiftError, InvalidInput, SqlError, UnknownName
from catalog.store import CatalogStore
from query.run.run_sql import run_sql

REFUSALS = (SqlError, InvalidInput, UnknownName)
"""Errors that say that a question is wrong; no other of Framesift's errors does."""

_DB2 = re.compile(r"SQL\d{4}N  .*  SQLSTATE=\w{5}")


def answered_or_refused(store: CatalogStore, text: str, max_rows: int = 10) -> pa.Table | None:
    """The rows of a statement that may be anything; None where it is refused as Db2 does."""
    try:
        answer = run_sql(store, text, max_rows=max_rows, timeout_s=2)
    except SqlError as error:
        check_refusal(error)
        return None
    assert answer.rows.num_rows <= max_rows, text
    assert answer.rows.num_rows == max_rows or not answer.truncated, text
    assert answer.rows.num_columns >= 1, text
    assert answer.snapshot == store.snapshot(), text
    return answer.rows


def check_refusal(error: FramesiftError) -> None:
    """The error is of a kind that says so, and a statement's has Db2's form and numbers."""
    assert type(error) in REFUSALS, repr(error)
    if isinstance(error, SqlError):
        assert _DB2.fullmatch(str(error)), str(error)
        assert error.sqlcode < 0
        assert f"SQL{-error.sqlcode:04}N" in str(error)
        assert re.fullmatch(r"[0-9A-Z]{5}", error.sqlstate), error.sqlstate
