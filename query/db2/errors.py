"""Errors that DuckDB raises of the data or the statement, in Db2's words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from catalog.errors import SqlError
from query.db2.dates import NO_DATE, OUT_OF_RANGE
from query.db2.row_width import MAX_ROW, TOO_WIDE
from query.db2.templates import DIVISION_BY_ZERO, MAX_TEXT, NOT_A_NUMBER, TOO_LONG

_BY_TEXT: tuple[tuple[str, int, str, str], ...] = (
    (DIVISION_BY_ZERO, -801, "22012", "Division by zero was attempted."),
    (TOO_LONG, -137, "54006",
     f"The length resulting from an operation is greater than {MAX_TEXT} bytes."),
    (OUT_OF_RANGE, -183, "22008",
     "A datetime arithmetic operation gave a result that is not in the years 1 to 9999."),
    ("Max expression depth limit", -101, "54001", "The statement is too long or too complex."),
    ("More than one row returned by a subquery", -811, "21000",
     "A scalar subquery, SELECT INTO or VALUES INTO gave more than one row."),
    ("must appear in the GROUP BY clause", -119, "42803",
     "A column of the SELECT or HAVING clause is neither in GROUP BY nor in a function."),
    ("cannot contain aggregates", -120, "42903",
     "An aggregate function is not allowed in this place."),
    ("aggregate function calls cannot be nested", -112, "42607",
     "The operand of an aggregate function includes another one."),
    ("Subquery returns", -412, "42823", "A subquery used as one value has several columns."),
    ("same number of result columns", -421, "42826",
     "The operands of a set operator do not have the same number of columns."),
)  # fmt: skip
"""Found in DuckDB's message -> SQLCODE, SQLSTATE and text."""

_BY_CLASS: tuple[tuple[type[duckdb.Error], int, str, str], ...] = (
    (duckdb.OutOfRangeException, -802, "22003",
     "Arithmetic overflow or other arithmetic exception."),
    (duckdb.OutOfMemoryException, -955, "57011",
     "Sort memory cannot be allocated to process the statement."),
)  # fmt: skip

_QUOTED = re.compile(r"""string ['"](.*)['"] (?:to |can't be cast|to be)""", re.DOTALL)
_TIME = re.compile(r"(?:timestamp|date|time)\b.*field (?:format|value)", re.IGNORECASE)


@contextmanager
def in_db2s_words() -> Iterator[None]:
    """Raise Db2's errors for the engine's.

    Raises:
        SqlError: The statement failed.
        duckdb.IOException: A file of the store cannot be read; the store knows what that means.
    """
    try:
        yield
    except duckdb.IOException:
        raise
    except duckdb.Error as error:
        raise translated(error) from error


def translated(error: duckdb.Error) -> SqlError:
    """Db2's error for one of DuckDB's, but for an interruption."""
    text = " ".join(str(error).partition("\n\nLINE 1:")[0].split())
    text = text.partition(" Candidate functions:")[0]
    for excerpt, sqlcode, sqlstate, message in _BY_TEXT:
        if excerpt in text:
            return SqlError(sqlcode, sqlstate, message)
    told = _with_value(str(error))
    if told is not None:
        return told
    if isinstance(error, duckdb.ConversionException):
        return _not_converted(text)
    for kind, sqlcode, sqlstate, message in _BY_CLASS:
        if isinstance(error, kind):
            return SqlError(sqlcode, sqlstate, message)
    if isinstance(error, duckdb.ParserException):
        return SqlError(-104, "42601", f"The statement is not valid: {text[:300]}")
    if isinstance(error, duckdb.BinderException):
        return SqlError(-401, "42818", f"The operands are not compatible: {text[:300]}")
    return SqlError(-901, "58004", f"The statement failed: {text[:300]}")


def _with_value(text: str) -> SqlError | None:
    """The error that a query raises itself on a value, which it names."""
    if TOO_WIDE in text:
        size = re.match(r"\d+", text.partition(TOO_WIDE)[2])
        return SqlError(
            -670, "54010", f"A row of the result has {size[0] if size else 'more'} bytes. "
            f"Expected: at most {MAX_ROW}. Ask for fewer columns or shorter texts.",
        )  # fmt: skip
    if NOT_A_NUMBER in text:
        return _not_a_number(text.partition(NOT_A_NUMBER)[2])
    if NO_DATE in text:
        value = text.partition(NO_DATE)[2][:100]
        return SqlError(-180, "22007", f'The text of a date or time is not valid: "{value}".')
    return None


def _not_a_number(value: str) -> SqlError:
    return SqlError(
        -420, "22018", f'Invalid character found in a character string argument: "{value[:100]}".'
    )


def _not_converted(text: str) -> SqlError:
    if _TIME.search(text):
        return SqlError(-180, "22007", f"The text of a date or time is not valid: {text[:200]}")
    quoted = _QUOTED.search(text)
    if quoted is not None and "out of range" not in text:
        return _not_a_number(quoted[1])
    return SqlError(-413, "22003", "Overflow occurred during numeric data type conversion.")
