"""DuckDB expressions for Db2's dates and times: conversions, labelled durations, VARCHAR_FORMAT.

DATE, TIMESTAMP   read ISO texts, Db2's own 2020-01-31-10.11.12 and, for a date, the American
and the European form; DATE of a number counts days from 0001-01-01
d + 1 MONTH       stays in the month: 2020-01-31 + 1 MONTH is 2020-02-29
d1 - d2           of dates is a duration, DECIMAL(8,0) as yyyymmdd; DAYS(d1) - DAYS(d2) counts
CURRENT DATE      in UTC, as the times of files are
"""

import re

from sqlglot import exp

from catalog.errors import SqlError
from query.db2 import types as db2_types
from query.db2.templates import Typed, fill, number
from query.db2.types import DATE, TEXT, TIME, TIMESTAMP, Db2Type

OUT_OF_RANGE = "SQL0183N"
"""Text of the DuckDB error that the query raises where a date leaves the years 1 to 9999."""

NO_DATE = "SQL0180N:"
"""Prefix of the DuckDB error that the query raises on a text that is no date or time; the text
follows."""

NOW = "make_timestamp(epoch_us(current_timestamp))"

_NOT_READ = f"WHEN {{x}} IS NOT NULL THEN error('{NO_DATE}' || {{x}}) END"

# Templates of templates.fill, so with braces doubled where the pattern has them.
_YMD = "[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}"
_ISO_TIME = f"{_YMD}([ T][0-9]{{{{1,2}}}}:[0-9]{{{{2}}}}(:[0-9]{{{{2}}}}([.][0-9]+)?)?)?"
_DB2_TIME = "([0-9-]{{10}})-([0-9]{{2}})[.]([0-9]{{2}})[.]([0-9]{{2}}([.][0-9]+)?)"
_CLOCK = "[0-9]{{1,2}}[:.][0-9]{{2}}([:.][0-9]{{2}})?"


def _cases(*cases: tuple[str, str]) -> str:
    """``result`` for text of the form ``pattern``, which may have blanks around it."""
    branches = (f"WHEN regexp_full_match({{x}}, ' *{form} *') THEN {to}" for form, to in cases)
    return f"CASE {' '.join(branches)} {_NOT_READ}"


_OF_TEXT = {
    "DATE": _cases(
        (_YMD, "CAST(trim({x}) AS DATE)"),
        (f"{_YMD}[ T-][0-9:. ]*", f"CAST(regexp_extract({{x}}, '{_YMD}') AS DATE)"),
        ("[0-9]{{2}}/[0-9]{{2}}/[0-9]{{4}}", "CAST(strptime(trim({x}), '%m/%d/%Y') AS DATE)"),
        ("[0-9]{{2}}[.][0-9]{{2}}[.][0-9]{{4}}", "CAST(strptime(trim({x}), '%d.%m.%Y') AS DATE)"),
    ),
    "TIMESTAMP": _cases(
        (_ISO_TIME, "CAST(trim({x}) AS TIMESTAMP)"),
        (_DB2_TIME,
         f"CAST(regexp_replace(trim({{x}}), '{_DB2_TIME}', '\\1 \\2:\\3:\\4') AS TIMESTAMP)"),
    ),
    "TIME": _cases(
        (_CLOCK, "CAST(rpad(replace(trim({x}), '.', ':'), 8, ':00') AS TIME)"),
        (_ISO_TIME, "CAST(CAST(trim({x}) AS TIMESTAMP) AS TIME)"),
        (_DB2_TIME,
         f"CAST(regexp_replace(trim({{x}}), '{_DB2_TIME}', '\\2:\\3:\\4') AS TIME)"),
    ),
}  # fmt: skip

_DB2_LITERAL = re.compile(
    r" *(\d{4}-\d\d-\d\d)-(\d\d)\.(\d\d)\.(\d\d(?:\.\d{1,12})?) *|"
    r" *(\d\d)/(\d\d)/(\d{4}) *|"
    r" *(\d\d)\.(\d\d)\.(\d{4}) *"
)

_FORMAT = re.compile(r"YYYY|YY|MM|DDD|DD|HH24|HH12|HH|MI|SS|NNNNNN|FF6|AM|PM|[-./,;: T_]")
_STRFTIME = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "HH12": "%I",
    "HH": "%I", "MI": "%M", "SS": "%S", "NNNNNN": "%f", "FF6": "%f", "AM": "%p", "PM": "%p",
}  # fmt: skip


def invalid() -> SqlError:
    """Db2's error for a calculation that dates and times do not have."""
    return SqlError(
        -182,
        "42816",
        "An expression with a datetime value or a labeled duration is not valid. "
        "Expected: a date or timestamp, + or -, and a duration such as 7 DAYS.",
    )


def convert(value: exp.Expr, kind: str, value_type: Db2Type, clock: exp.Expr | None) -> Typed:
    """DATE(x), TIME(x), TIMESTAMP(x) and TIMESTAMP(date, time), and the type."""
    if clock is not None:
        date, _ = convert(value, "DATE", value_type, None)
        time = fill(_OF_TEXT["TIME"], x=clock) if _is_text(clock) else clock
        return fill("CAST({d} AS DATE) + CAST({t} AS TIME)", d=date, t=time), TIMESTAMP
    result = {"DATE": DATE, "TIME": TIME, "TIMESTAMP": TIMESTAMP}[kind]
    if value_type is TEXT:
        return fill(_OF_TEXT[kind], x=value), result
    if value_type.is_number and kind == "DATE":
        days = "CAST(DATE '0001-01-01' + CAST(trunc({x}) - 1 AS INTEGER) AS DATE)"
        return fill(_in_range(days), x=value), DATE
    return fill(f"CAST({{x}} AS {kind})", x=value), result


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def as_iso(literal: exp.Literal) -> exp.Literal:
    """A text beside a date, in the form that DuckDB reads: Db2 knows others as well."""
    match = _DB2_LITERAL.fullmatch(literal.name)
    if match is None:
        return literal
    day, hour, minute, second, m1, d1, y1, d2, m2, y2 = match.groups()
    if day:
        return exp.Literal.string(f"{day} {hour}:{minute}:{second}")
    return exp.Literal.string(f"{y1}-{m1}-{d1}" if y1 else f"{y2}-{m2}-{d2}")


def shift(node: exp.Expr, value: Db2Type, amount: Db2Type) -> Typed:
    """``value`` plus or minus a labelled duration.

    Args:
        node: An Add or Sub whose right side is a Db2Duration.
        value: The type of its left side.
        amount: The type of the duration's number.

    Raises:
        SqlError: SQL0182N, no date, or hours added to one.
    """
    duration = node.expression
    unit: str = duration.args["unit"]
    clock = unit in ("HOUR", "MINUTE", "SECOND", "MICROSECOND")
    if not value.is_datetime or (value is DATE and clock) or (value is TIME and not clock):
        raise invalid()
    if not (amount.is_number or amount is TEXT):
        raise invalid()
    count = number(duration.this) if amount is TEXT else duration.this
    whole = {"SECOND": "CAST({n} AS DOUBLE)"}.get(unit, "CAST(trunc({n}) AS BIGINT)")
    if unit in ("YEAR", "MONTH", "DAY"):
        whole = "CAST(trunc({n}) AS INTEGER)"
    sign = "-" if isinstance(node, exp.Sub) else "+"
    shifted = f"CAST({{d}} {sign} to_{unit.lower()}s({whole}) AS {value.kind})"
    return fill(shifted if value is TIME else _in_range(shifted), d=node.this, n=count), value


def _in_range(date: str) -> str:
    outside = f"year({date}) NOT BETWEEN 1 AND 9999"
    return f"CASE WHEN {outside} THEN error('{OUT_OF_RANGE}') ELSE {date} END"


def difference(node: exp.Expr, left: Db2Type, right: Db2Type) -> Typed:
    """One date less another: DECIMAL(8,0), years, months and days as yyyymmdd.

    Raises:
        SqlError: SQL0182N, where one is no date.
    """
    if not (left is DATE and right is DATE):
        raise invalid()
    duration = (
        "CASE WHEN {a} >= {b} THEN " + _yyyymmdd("age({a}, {b})") + " ELSE -("
        + _yyyymmdd("age({b}, {a})") + ") END"
    )  # fmt: skip
    return fill(f"CAST({duration} AS DECIMAL(8, 0))", a=node.this, b=node.expression), (
        db2_types.decimal(8, 0)
    )


def _yyyymmdd(age: str) -> str:
    return f"year({age}) * 10000 + month({age}) * 100 + day({age})"


def formatted(value: exp.Expr, kind: Db2Type, pattern: exp.Expr) -> exp.Expr:
    """VARCHAR_FORMAT(value, pattern).

    Raises:
        SqlError: SQL0171N, no date or time, or a format that is not known.
    """
    format_ = exp.Literal.string(_strftime(pattern))
    if not kind.is_datetime:
        raise SqlError(
            -171, "42815", "The first argument of VARCHAR_FORMAT is not valid. Expected: a "
            "date or timestamp.",
        )  # fmt: skip
    return fill("strftime({x}, {p})", x=value, p=format_)


def _strftime(pattern: exp.Expr) -> str:
    text = pattern.name.upper() if _is_text(pattern) else ""
    parts = _FORMAT.findall(text)
    if not text or "".join(parts) != text:
        raise SqlError(
            -171,
            "42815",
            f"The format {pattern.sql()[:40]} of VARCHAR_FORMAT is not valid. Expected: a constant "
            f"of {', '.join(_STRFTIME)} and signs between them.",
        )
    return "".join(_STRFTIME.get(directive, directive) for directive in parts)
