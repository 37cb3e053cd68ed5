"""DuckDB expressions for Db2's texts: parts, padding, and LIKE with a pattern of each row.

SUBSTR('camera', 9)     SQL0138N: it begins beyond what the text may have
SUBSTR(x, 2, 20)        20 characters, blanks where x has fewer
CHAR(12), CAST(x AS CHAR(9))  blanks up to a fixed length
"""

import re

from sqlglot import exp

from catalog.errors import SqlError
from query.db2.calls import MAX_TEXT, Db2Cast
from query.db2.templates import fill
from query.db2.types import DOUBLE, TIMESTAMP, Db2Type

OUT_OF_RANGE = "SQL0138N"
"""Text of the DuckDB error that the query raises on a part that a text cannot have."""

BAD_LENGTH = "SQL0171N:length"
"""Text of the DuckDB error that the query raises on a length that no text has."""

BAD_ESCAPE = "SQL0130N"
"""Text of the DuckDB error that the query raises where ESCAPE stands before no sign."""

BAD_PATTERN = "SQL0134N"
"""Text of the DuckDB error that the query raises on a pattern of LIKE that is too long."""

_LENGTHS = {"SMALLINT": 6, "INTEGER": 11, "BIGINT": 20, "DATE": 10, "TIME": 8, "TIMESTAMP": 26}
_MOST_CHAR = 255
_MOST_PATTERN = 4_000
_META = r"([.+*?()|{}^$\[\]\\])"
_PERCENT, _UNDERLINE, _ESCAPED = "\ue000", "\ue001", "\ue002"
"""Signs of nobody's text that stand in for others while a pattern is translated."""


def substr(text: exp.Expr, most: int, start: exp.Expr, length: exp.Expr | None) -> exp.Expr:
    """SUBSTR(text, start, length) of a text that may have at most so many characters."""
    begins = f"{{s}} < 1 OR {{s}} > greatest({most}, 1)"
    if length is None:
        cut = f"CASE WHEN {begins} THEN error('{OUT_OF_RANGE}') ELSE substr({{x}}, {{s}}) END"
        return fill(cut, x=text, s=integer(start))
    outside = f"{begins} OR {{n}} < 0 OR {{n}} > {most} - {{s}} + 1"
    cut = (
        f"CASE WHEN {outside} THEN error('{OUT_OF_RANGE}') "
        "ELSE rpad(substr({x}, {s}, {n}), {n}, ' ') END"
    )
    return fill(cut, x=text, s=integer(start), n=integer(length))


def substring(text: exp.Expr, start: exp.Expr, length: exp.Expr | None) -> exp.Expr:
    """SUBSTRING(text, start, length): what the text has of it."""
    if length is None:
        return fill("substr({x}, greatest({s}, 1))", x=text, s=integer(start))
    cut = "substr({x}, greatest({s}, 1), greatest({s} + {n} - greatest({s}, 1), 0))"
    cut = f"CASE WHEN {{n}} < 0 THEN error('{OUT_OF_RANGE}') ELSE {cut} END"
    return fill(cut, x=text, s=integer(start), n=integer(length))


def integer(value: exp.Expr) -> exp.Expr:
    """A number cut at the point, as Db2 converts to INTEGER; a constant stays one."""
    inner = value.unnest()
    if isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdecimal():
        return value
    return fill("CAST(trunc(CAST({x} AS DOUBLE)) AS INTEGER)", x=value)


def padded(text: exp.Expr, length: exp.Expr, pad: exp.Expr | None, *, left: bool) -> exp.Expr:
    """LPAD and RPAD; an empty pad leaves a short text as it is."""
    function = "lpad" if left else "rpad"
    template = (
        f"CASE WHEN {{n}} < 0 OR {{n}} > {MAX_TEXT} THEN error('{BAD_LENGTH}') "
        f"WHEN {{p}} = '' THEN left({{x}}, {{n}}) ELSE {function}({{x}}, {{n}}, {{p}}) END"
    )
    blank = exp.Literal.string(" ")
    return fill(template, x=text, n=integer(length), p=blank if pad is None else pad)


def to_char(cast: Db2Cast, argument: Db2Type, text: exp.Expr) -> exp.Expr:
    """CHAR(x): the text of x with blanks up to its length.

    Args:
        argument: The type of what it converts.
        text: That as text.

    Raises:
        SqlError: SQL0171N, the length is no constant up to 255.
    """
    width = cast.args.get("precision")
    if width is not None:
        digits = width.name if isinstance(width, exp.Literal) and not width.is_string else ""
        if not (digits.isdecimal() and len(digits) < 9 and 1 <= int(digits) <= _MOST_CHAR):
            raise SqlError(
                -171, "42815", f'The length "{width.sql()[:40]}" of CHAR is not valid. '
                f"Expected: a number from 1 to {_MOST_CHAR}.",
            )  # fmt: skip
        return fill(f"rpad({{x}}, {digits}, ' ')", x=text)
    length = _LENGTHS.get(argument.kind, 0)
    if argument.kind == "DECIMAL":
        length = argument.precision + 2
    if argument is DOUBLE:
        length = 24
    if not length:
        return text  # as long as it is
    return fill(f"rpad({{x}}, {length}, ' ')", x=text)


def as_text(value: exp.Expr, kind: Db2Type) -> exp.Expr:
    """A value's text."""
    if kind is TIMESTAMP:
        return fill("strftime({x}, '%Y-%m-%d-%H.%M.%S.%f')", x=value)
    return fill("CAST({x} AS VARCHAR)", x=value)


def like(text: exp.Expr, pattern: exp.Expr, escape: str) -> exp.Expr:
    """LIKE with a pattern that is another in each row, in time that grows with the text.

    The pattern becomes a regular expression: DuckDB's own LIKE takes exponential time.
    """
    parts = {"x": text, "p": pattern, "meta": _string(_META), "quoted": _string(r"\\\1")}
    source = "{p}"
    if escape:
        mark = re.escape(escape)
        wrong = rf"(?s)^([^{mark}]|{mark}[%_{mark}])*{mark}([^%_{mark}]|$)"
        parts |= {
            "wrong": _string(wrong),
            "escapes": _string(f"{mark}([%_{mark}])"),
            "marked": _string(rf"{_ESCAPED}\1"),
        }
        source = (
            f"CASE WHEN regexp_matches({{p}}, {{wrong}}) THEN error('{BAD_ESCAPE}') "
            "ELSE regexp_replace({p}, {escapes}, {marked}, 'g') END"
        )
    # What is escaped gets a sign of its own, so that it is no % and no _ any more.
    for sign, stand_in in (("%", _PERCENT), ("_", _UNDERLINE), ("", "")):
        source = f"replace({source}, '{_ESCAPED}{sign}', '{stand_in}')"
    source = f"regexp_replace({source}, {{meta}}, {{quoted}}, 'g')"
    source = f"replace(regexp_replace({source}, '%+', '.*', 'g'), '_', '.')"
    source = f"replace(replace({source}, '{_PERCENT}', '%'), '{_UNDERLINE}', '_')"
    too_long = f"strlen({{p}}) > {_MOST_PATTERN}"
    source = f"CASE WHEN {too_long} THEN error('{BAD_PATTERN}') ELSE {source} END"
    return fill(f"regexp_full_match({{x}}, {source}, 's')", **parts)


def _string(value: str) -> exp.Literal:
    return exp.Literal.string(value)
