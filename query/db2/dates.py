"""DuckDB expressions for Db2's dates and times: conversions, labelled durations, VARCHAR_FORMAT.

DATE, TIMESTAMP   read ISO texts, Db2's own 2020-01-31-10.11.12 and, for a date, the American
and the European form; DATE of a number counts days from 0001-01-01
d + 1 MONTH       stays in the month: 2020-01-31 + 1 MONTH is 2020-02-29
d1 - d2           of dates is a duration, DECIMAL(8,0) as yyyymmdd; DAYS(d1) - DAYS(d2) counts
t1 - t2           of timestamps is one, too, DECIMAL(20,6) as yyyymmddhhmmss.ffffff
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
    integral = {"SECOND": "CAST({n} AS DOUBLE)"}.get(unit, "CAST(trunc({n}) AS BIGINT)")
    if unit in ("YEAR", "MONTH", "DAY"):
        integral = "CAST(trunc({n}) AS INTEGER)"
    sign = "-" if isinstance(node, exp.Sub) else "+"
    shifted = f"CAST({{d}} {sign} to_{unit.lower()}s({integral}) AS {value.kind})"
    return fill(shifted if value is TIME else _in_range(shifted), d=node.this, n=count), value


def _in_range(date: str) -> str:
    outside = f"year({date}) NOT BETWEEN 1 AND 9999"
    return f"CASE WHEN {outside} THEN error('{OUT_OF_RANGE}') ELSE {date} END"


def difference(node: exp.Expr, left: Db2Type, right: Db2Type) -> Typed:
    """One date or timestamp less another: years, months, days... as digits of a decimal.

    Raises:
        SqlError: SQL0182N, where they are not both dates or both timestamps.
    """
    parts = {"a": node.this, "b": node.expression}
    kinds = {"a": left, "b": right}
    for side, other in (("a", "b"), ("b", "a")):
        if kinds[side] is TEXT and kinds[other] in (DATE, TIMESTAMP):
            parts[side], kinds[side] = convert(parts[side], kinds[other].kind, TEXT, None)
    if kinds["a"] is not kinds["b"] or kinds["a"] not in (DATE, TIMESTAMP):
        raise invalid()
    digits = _yyyymmdd if kinds["a"] is DATE else _microseconds
    duration = (
        f"CASE WHEN {{a}} >= {{b}} THEN {digits('age({a}, {b})')} "
        f"ELSE -({digits('age({b}, {a})')}) END"
    )
    if kinds["a"] is DATE:
        return fill(f"CAST({duration} AS DECIMAL(8, 0))", **parts), db2_types.decimal(8, 0)
    scaled = f"CAST({duration} AS DECIMAL(26, 0)) * 0.000001::DECIMAL(6, 6)"
    return fill(f"CAST({scaled} AS DECIMAL(20, 6))", **parts), db2_types.decimal(20, 6)


def _yyyymmdd(age: str) -> str:
    return f"year({age}) * 10000 + month({age}) * 100 + day({age})"


def _microseconds(age: str) -> str:
    # The microseconds of an interval include its seconds.
    clock = f"(({_yyyymmdd(age)}) * 100 + hour({age})) * 100 + minute({age})"
    return f"({clock})::HUGEINT * 100000000 + microsecond({age})"


_UNITS = {
    1: "{seconds} * 1000000 + {micros}", 2: "{seconds}", 4: "{minutes}", 8: "{hours}",
    16: "{days}", 32: "(d + mo * 30) // 7 + y * 52", 64: "mo + y * 12", 128: "(mo + y * 12) // 3",
    256: "y",
}  # fmt: skip
"""TIMESTAMPDIFF's units, of a duration's years y, months mo, days d..."""


def timestamp_difference(unit: exp.Expr, duration: exp.Expr, kind: Db2Type) -> Typed:
    """TIMESTAMPDIFF(unit, duration), and the type.

    Raises:
        SqlError: SQL0171N, no unit that there is.
    """
    literal = unit.unnest()
    digits = literal.name if isinstance(literal, exp.Literal) and not literal.is_string else ""
    if not (digits.isdecimal() and len(digits) < 4 and int(digits) in _UNITS):
        raise SqlError(
            -171, "42815", "The first argument of TIMESTAMPDIFF is not valid. Expected: "
            f"{', '.join(map(str, _UNITS))}.",
        )  # fmt: skip
    if kind is TEXT:
        trimmed = "CAST(trim({x}) AS DECIMAL(26, 6))"
        value = fill(
            "CASE WHEN regexp_full_match(trim({x}), '[+-]?[0-9]{{1,14}}([.][0-9]{{0,6}})?') "
            f"THEN {trimmed} WHEN {{x}} IS NOT NULL THEN error('{NO_DATE}' || {{x}}) END",
            x=duration,
        )
    else:
        value = fill("CAST({x} AS DECIMAL(26, 6))", x=duration)
    magnitude = "abs(CAST(trunc({v}) AS BIGINT))"
    fields = {"y": (10**10, 10**4), "mo": (10**8, 100), "d": (10**6, 100), "h": (10**4, 100),
              "mi": (100, 100), "s": (1, 100)}  # fmt: skip
    named = {name: f"({magnitude} // {by} % {size})" for name, (by, size) in fields.items()}
    days = "(d + mo * 30 + y * 365)"
    hours = f"(h + {days} * 24)"
    minutes = f"(mi + {hours} * 60)"
    micros = "CAST(abs({v} - trunc({v})) * 1000000 AS BIGINT)"
    formula = _UNITS[int(digits)].format(
        days=days, hours=hours, minutes=minutes, seconds=f"(s + {minutes} * 60)", micros="us"
    )
    counted_ = re.sub(r"\b(y|mo|d|h|mi|s|us)\b", lambda m: {**named, "us": micros}[m[1]], formula)
    return fill(f"CAST(sign({{v}}) * ({counted_}) AS INTEGER)", v=value), db2_types.INTEGER


def months_later(value: exp.Expr, kind: Db2Type, months: exp.Expr) -> Typed:
    """ADD_MONTHS(value, months), and the type.

    Raises:
        SqlError: SQL0171N, no date or timestamp.
    """
    if kind is TEXT:
        value, kind = convert(value, "DATE", kind, None)
    if kind not in (DATE, TIMESTAMP):
        raise _no_date("ADD_MONTHS")
    later = "{x} + to_months(CAST(trunc({n}) AS INTEGER))"
    if kind is TIMESTAMP:
        end = f"CAST(last_day({later}) AS TIMESTAMP) + ({{x}} - date_trunc('day', {{x}}))"
    else:
        end = f"last_day({later})"
    is_last = "CAST({x} AS DATE) = last_day({x})"
    shifted = f"CAST(CASE WHEN {is_last} THEN {end} ELSE {later} END AS {kind.kind})"
    return fill(_in_range(shifted), x=value, n=months), kind


_TRUNCATED = {
    **dict.fromkeys(("CC", "SCC"), "make_date((year({x}) - 1) // 100 * 100 + 1, 1, 1)"),
    **dict.fromkeys(
        ("YEAR", "SYEAR", "YYYY", "SYYYY", "YYY", "YY", "Y"), "date_trunc('year', {x})"
    ),
    **dict.fromkeys(("IYYY", "IYY", "IY", "I"), "date_trunc('isoyear', {x})"),
    "Q": "date_trunc('quarter', {x})",
    **dict.fromkeys(("MONTH", "MON", "MM", "RM"), "date_trunc('month', {x})"),
    "WW": "date_trunc('day', {x}) - to_days(CAST((dayofyear({x}) - 1) % 7 AS INTEGER))",
    "IW": "date_trunc('week', {x})",
    "W": "date_trunc('day', {x}) - to_days(CAST((day({x}) - 1) % 7 AS INTEGER))",
    **dict.fromkeys(("DDD", "DD", "J"), "date_trunc('day', {x})"),
    **dict.fromkeys(
        ("DAY", "DY", "D"), "date_trunc('day', {x}) - to_days(CAST(dayofweek({x}) AS INTEGER))"
    ),
    **dict.fromkeys(("HH", "HH12", "HH24"), "date_trunc('hour', {x})"),
    "MI": "date_trunc('minute', {x})",
    "SS": "date_trunc('second', {x})",
}
"""Units of TRUNC."""


def truncated(value: exp.Expr, kind: Db2Type, unit: exp.Expr | None) -> Typed:
    """TRUNC(value, unit), to the day unless given, and the type.

    Raises:
        SqlError: SQL0171N, no date or timestamp, or no unit that there is.
    """
    if kind is TEXT:
        value, kind = convert(value, "TIMESTAMP", kind, None)
    if kind not in (DATE, TIMESTAMP):
        raise _no_date("TRUNC")
    name = "DD" if unit is None else (unit.name.upper() if _is_text(unit) else "")
    if name not in _TRUNCATED:
        raise SqlError(
            -171, "42815", f"The unit {'' if unit is None else unit.sql()[:40]} of TRUNC is not "
            f"valid. Expected: a constant, one of {', '.join(_TRUNCATED)}.",
        )  # fmt: skip
    return fill(f"CAST({_TRUNCATED[name]} AS {kind.kind})", x=value), kind


def read(value: exp.Expr, pattern: exp.Expr | None) -> Typed:
    """TO_DATE(value, pattern), and the type; what the format lacks is that of the month of now."""
    usual = exp.Literal.string("YYYY-MM-DD HH24:MI:SS")
    format_ = _strftime(usual if pattern is None else pattern)
    known = set(re.findall("%.", format_))
    has_year, has_month = known & {"%Y", "%y"}, known & {"%m", "%j"}
    before = ("" if has_year else "%Y") + ("" if has_month else "%m")
    text, full_format = "CAST({x} AS VARCHAR)", format_
    if before:
        text, full_format = f"strftime({NOW}, '{before} ') || {text}", f"{before} {format_}"
    time = f"try_strptime(trim({text}), {{p}})"
    if "%y" in format_:  # of this century
        time = f"CASE WHEN year({time}) < 2000 THEN {time} + to_years(100) ELSE {time} END"
    checked = (
        f"CASE WHEN {time} IS NULL AND {{x}} IS NOT NULL "
        f"THEN error('{NO_DATE}' || CAST({{x}} AS VARCHAR)) ELSE {time} END"
    )
    return fill(checked, x=value, p=exp.Literal.string(full_format)), TIMESTAMP


def _no_date(function: str) -> SqlError:
    return SqlError(
        -171, "42815", f"The first argument of {function} is not valid. Expected: a date or "
        "timestamp.",
    )  # fmt: skip


def formatted(value: exp.Expr, kind: Db2Type, pattern: exp.Expr) -> exp.Expr:
    """VARCHAR_FORMAT(value, pattern).

    Raises:
        SqlError: SQL0171N, no date or time, or a format that is not known.
    """
    format_ = exp.Literal.string(_strftime(pattern))
    if not kind.is_datetime:
        raise _no_date("VARCHAR_FORMAT")
    return fill("strftime({x}, {p})", x=value, p=format_)


def _strftime(pattern: exp.Expr) -> str:
    text = pattern.name.upper() if _is_text(pattern) else ""
    parts = _FORMAT.findall(text)
    if not text or "".join(parts) != text:
        raise SqlError(
            -171,
            "42815",
            f"The format {pattern.sql()[:40]} is not valid. Expected: a constant "
            f"of {', '.join(_STRFTIME)} and signs between them.",
        )
    return "".join(_STRFTIME.get(directive, directive) for directive in parts)
