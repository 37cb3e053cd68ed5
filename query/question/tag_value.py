"""A value that a tag is compared with: as the tag's type has it, in SQL, and in words."""

import re
from datetime import UTC, datetime
from math import isfinite

from catalog.errors import InvalidInput
from query.question.operators import Operator, TagType

Scalar = bool | int | float | str
"""A value as JSON has it."""

Value = bool | int | float | str | datetime
"""A value as its tag's type has it; a time without a zone: one with an offset is in UTC."""

_EXPECTED: dict[TagType, str] = {
    "number": "a number, such as 30 or 0.5",
    "text": "a text",
    "boolean": "true or false",
    "time": "a time, such as 2018-08-07T14:50:28 or 2018-08-07T16:50:28+02:00",
}
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_ESCAPE = "!"
_SPECIAL = re.compile(f"[%_{_ESCAPE}]")
_EXACT_DIGITS = 15
"""A decimal of more digits is not the nearest DOUBLE's when DuckDB converts it."""


def value_of(tag: str, tag_type: TagType, scalar: Scalar) -> Value:
    """A given value as the tag's type; text is read as that type, as on a command line.

    Raises:
        InvalidInput: It is no value of that type.
    """
    try:
        return _READ[tag_type](scalar)
    except ValueError as error:
        raise InvalidInput(
            f"tag {tag} is a {tag_type}: got {scalar!r}, expected {_EXPECTED[tag_type]}"
        ) from error


def _number(scalar: Scalar) -> int | float:
    if isinstance(scalar, str):
        scalar = int(scalar) if _INTEGER.fullmatch(scalar.strip()) else float(scalar)
    too_large = isinstance(scalar, int) and abs(scalar) >= 2**63
    if isinstance(scalar, bool) or too_large or not isfinite(scalar):
        raise ValueError(scalar)
    return scalar


def _text(scalar: Scalar) -> str:
    if not isinstance(scalar, str) or "\0" in scalar:
        raise ValueError(scalar)
    return scalar


def _boolean(scalar: Scalar) -> bool:
    answer = scalar if isinstance(scalar, bool) else _BOOLEANS.get(str(scalar).strip().lower())
    if answer is None:
        raise ValueError(scalar)
    return answer


def _time(text: Scalar) -> datetime:
    moment = datetime.fromisoformat(_text(text).strip())
    try:
        moment = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError as error:  # "9999-12-31T23:59-01:00"
        raise ValueError(text) from error
    if moment.year < 1000:
        raise ValueError(text)
    return moment


_READ = {"number": _number, "text": _text, "boolean": _boolean, "time": _time}


def sql_value(value: Value, operator: Operator) -> str:
    """The value as a constant of Db2's SQL, beside a tag's column or its text in metaocean_view."""
    if isinstance(value, bool):
        return f"'{str(value).lower()}'"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _sql_float(value)
    if isinstance(value, datetime):
        return f"'{time_text(value)}'"
    if not operator.pattern:  # blanks at the end count in LIKE only
        return quoted(value if "like" in operator.sql else value.rstrip(" "))
    escaped = _SPECIAL.sub(lambda match: _ESCAPE + match[0], value)
    escape = f" escape '{_ESCAPE}'" if escaped != value else ""
    return quoted(operator.pattern.replace("{}", escaped)) + escape


def _sql_float(value: float) -> str:
    text = repr(value)
    if "e" in text or len(re.sub("[^0-9]", "", text).lstrip("0")) <= _EXACT_DIGITS:
        return text
    return text + "e0"


def quoted(text: str) -> str:
    """A text constant of SQL."""
    return "'" + text.replace("'", "''") + "'"


def time_text(value: datetime) -> str:
    """A time as metaocean_view shows one."""
    text = value.isoformat(sep=" ")
    return text.rstrip("0") if value.microsecond else text


def words_value(value: Value) -> str:
    """The value in a sentence."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"'{' '.join(value.splitlines())}'"
    return time_text(value) if isinstance(value, datetime) else f"{value:,}"
