"""Errors that DuckDB raises of the data or the statement, in Db2's words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from catalog.errors import SqlError
from query.db2 import texts
from query.db2.calls import MAX_TEXT
from query.db2.dates import NO_DATE, OUT_OF_RANGE
from query.db2.regexes import BAD_START, LONG_TEXT, MOST_LISTED_BYTES
from query.db2.row_width import MAX_ROW, TOO_WIDE
from query.db2.templates import DIVISION_BY_ZERO, NOT_A_NUMBER, TOO_LONG
from query.db2.types import of_engine

_BY_TEXT: tuple[tuple[str, int, str, str], ...] = (
    (DIVISION_BY_ZERO, -801, "22012", "Division by zero was attempted."),
    (TOO_LONG, -137, "54006",
     f"The length resulting from an operation is greater than {MAX_TEXT} bytes."),
    (OUT_OF_RANGE, -183, "22008",
     "A datetime arithmetic operation gave a result that is not in the years 1 to 9999."),
    (texts.OUT_OF_RANGE, -138, "22011",
     "An argument of SUBSTR or SUBSTRING is out of range: a part is not in the text."),
    (texts.BAD_LENGTH, -171, "42815",
     f"The length of LPAD or RPAD is not valid. Expected: 0 to {MAX_TEXT}."),
    (texts.BAD_ESCAPE, -130, "22025",
     "The escape character of LIKE is not followed by %, _ or itself."),
    (texts.BAD_PATTERN, -134, "22001",
     "The pattern of LIKE is too long. Expected: 4,000 bytes at most."),
    (LONG_TEXT, -171, "22001",
     f"A text is too long to list its matches. Expected: {MOST_LISTED_BYTES:,} bytes at most."),
    (BAD_START, -171, "42815",
     "The start of a regular expression's search is not valid. Expected: 1 or more."),
    ("Max expression depth limit", -101, "54001", "The statement is too long or too complex."),
    ("Maximum grouping set count", -101, "54001", "The statement has too many grouping sets."),
    ("More than one row returned by a subquery", -811, "21000",
     "A scalar subquery, SELECT INTO or VALUES INTO gave more than one row."),
    ("must appear in the GROUP BY clause", -119, "42803",
     "A column of the SELECT or HAVING clause is neither in GROUP BY nor in a function."),
    ("cannot contain aggregates", -120, "42903",
     "An aggregate function is not allowed in this place."),
    ("cannot contain window function calls", -120, "42903",
     "An OLAP function, one with OVER, is not allowed as the operand of an aggregate function."),
    ("cannot contain window functions", -120, "42903",
     "An OLAP function, one with OVER, is not allowed in this place."),
    ("GROUPING statement cannot", -119, "42803",
     "The argument of GROUPING is not valid. Expected: an expression of the GROUP BY clause."),
    ("GROUPING child", -119, "42803",
     "The argument of GROUPING is not valid. Expected: an expression of the GROUP BY clause."),
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
    (duckdb.ParserException, -104, "42601", "The statement is not valid SQL."),
    (duckdb.OutOfMemoryException, -955, "57011",
     "Sort memory cannot be allocated to process the statement."),
)  # fmt: skip

_PATTERN_FAULTS = (
    "missing )", "missing ]", "unexpected )", "trailing \\", "no argument for repetition",
    "invalid repetition size", "bad repetition operator", "invalid perl operator",
    "invalid escape sequence", "invalid character class", "invalid named capture",
    "pattern too large", "invalid UTF-8",
)  # fmt: skip
"""What RE2 says of a regular expression that it does not take."""

_TYPE = re.compile(
    r"\bDECIMAL\(\d+,\s?\d+\)|\b(?:VARCHAR|TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|FLOAT|DOUBLE"
    r"|DATE|TIMESTAMP|TIME|BOOLEAN)\b"
)

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
    # What follows is DuckDB's statement, in which the texts of errors that it raises stand.
    raised = str(error).partition("\n\nLINE ")[0]
    text = " ".join(raised.split())
    text = text.partition(" Candidate functions:")[0]
    for excerpt, sqlcode, sqlstate, message in _BY_TEXT:
        if excerpt in text:
            return SqlError(sqlcode, sqlstate, message)
    translated_error = _with_value(raised)
    if translated_error is not None:
        return translated_error
    if isinstance(error, duckdb.ConversionException):
        return _not_converted(text)
    for kind, sqlcode, sqlstate, message in _BY_CLASS:
        if isinstance(error, kind):
            return SqlError(sqlcode, sqlstate, message)
    if isinstance(error, duckdb.BinderException):
        return _not_compatible(text)
    fault = next((fault for fault in _PATTERN_FAULTS if fault in text), "")
    if fault and isinstance(error, duckdb.InvalidInputException):
        return SqlError(-171, "2201S", f"A regular expression is not valid: {fault}.")
    return SqlError(-901, "58004", "The statement failed because of a system error.")


def _not_compatible(text: str) -> SqlError:
    """Operands or arguments of types that do not go together, which are named."""
    types = dict.fromkeys(_db2_name(name) for name in _TYPE.findall(text))
    named = f": {', '.join(types)}" if types else ""
    return SqlError(
        -401, "42818", f"The types of operands or arguments are not compatible{named}. Convert "
        "one of them, such as by INTEGER(x), VARCHAR(x) or TIMESTAMP(x).",
    )  # fmt: skip


def _db2_name(engine_type: str) -> str:
    """Db2's name of a type."""
    kind = of_engine(engine_type.replace(" ", ""))
    if kind.kind == "DECIMAL":
        return f"DECIMAL({kind.precision},{kind.scale})"
    return {"TEXT": "VARCHAR", "OTHER": "BOOLEAN"}.get(kind.kind, kind.kind)


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
        quoted = re.search(r"""["']([^"']{1,100})["']""", text)
        value = f': "{quoted[1]}"' if quoted else ""
        return SqlError(-180, "22007", f"The text of a date or time is not valid{value}.")
    quoted = _QUOTED.search(text)
    if quoted is not None and "out of range" not in text:
        return _not_a_number(quoted[1])
    return SqlError(-413, "22003", "Overflow occurred during numeric data type conversion.")
