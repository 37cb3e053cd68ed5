"""What an answer to a statement of any content must be: rows that fit it, or a refusal by name."""

import re

import pyarrow as pa

from catalog.errors import FramesiftError, InvalidInput, SqlError, UnknownName
from catalog.store import CatalogStore
from query.run.run_sql import run_sql

REFUSALS = (SqlError, InvalidInput, UnknownName)
"""Errors that say that a question is wrong; no other of Framesift's errors does."""

_DB2 = re.compile(r"SQL\d{4}N  .*  SQLSTATE=\w{5}")

_ENGINES = re.compile(
    r"Binder|Catalog Error|Parser Error|Conversion Error|Invalid Input|Error:|LINE \d|DuckDB|HINT"
    r"|[Cc]andidate|DECODE_CASE|struct_|list_|_row_|part_[a-z]|operands\b.*->|_col_|HUGEINT"
    r"|TINYINT|STRING_LITERAL|UBIGINT|sqlglot|Traceback|lake\.|regexp_|strptime|quantile"
)
"""Words of the engine, of the parser and of what statements become."""


def answered_or_refused(store: CatalogStore, text: str, max_rows: int = 10) -> pa.Table | None:
    """The rows of a statement that may be anything; None where it is refused as Db2 does."""
    try:
        answer = run_sql(store, text, max_rows=max_rows, timeout_s=2)
    except SqlError as error:
        check_refusal(error, text)
        return None
    assert answer.rows.num_rows <= max_rows, text
    assert answer.rows.num_rows == max_rows or not answer.truncated, text
    assert answer.rows.num_columns >= 1, text
    assert answer.snapshot == store.snapshot(), text
    return answer.rows


def check_refusal(error: FramesiftError, text: str) -> None:
    """The error is of a kind that says so, in Db2's form, without words of the engine's own."""
    assert type(error) in REFUSALS, repr(error)
    foreign = _ENGINES.search(str(error))
    assert foreign is None or foreign[0].lower() in text.lower(), (text, str(error))
    if isinstance(error, SqlError):
        assert _DB2.fullmatch(str(error)), str(error)
        assert error.sqlcode < 0
        assert f"SQL{-error.sqlcode:04}N" in str(error)
        assert re.fullmatch(r"[0-9A-Z]{5}", error.sqlstate), error.sqlstate
