"""Values of rows as text, one by one."""

import json
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON can hold it: decimals as numbers, times as text, no number as null."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return value


def csv_field(value: Any) -> str:
    """The value's text in CSV, unquoted; never of a missing one."""
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(plain(value)) if isinstance(value, date | time) else str(value)


def json_value(value: Any) -> str:
    """The value in JSON."""
    if type(value) is int:  # most are
        return str(value)
    return _encoded(plain(value))


_encoded = json.JSONEncoder(ensure_ascii=False).encode
"""`json.dumps`, which makes an encoder each time that it is not asked for its defaults."""
