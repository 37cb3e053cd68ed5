"""Values as JSON: NumPy's numbers, pandas' columns and times, too, which programs have at hand."""

import json
from collections.abc import Mapping
from typing import Any

from framesift.errors import InvalidQuestion


def json_text(value: object) -> str:
    """A value as JSON.

    Raises:
        InvalidQuestion: JSON has no form for it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)
    except ValueError as error:
        raise InvalidQuestion(
            "a number of the request is not finite: expected a number, or None for none"
        ) from error


def plain(value: Any) -> Any:
    """What a value of NumPy or pandas is in plain Python: numbers, lists, times as ISO text.

    Raises:
        InvalidQuestion: It is something else that JSON has no form for.
    """
    # As an integer a NumPy time is a number of units, whichever these are.
    if getattr(getattr(value, "dtype", None), "kind", "") == "M" and hasattr(value, "astype"):
        return value.astype("datetime64[us]").astype(str).tolist()
    if isinstance(value, Mapping):
        return dict(value)
    for method in ("isoformat", "tolist", "__fspath__"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise InvalidQuestion(
        f"{str(value)[:80]!r} is a {type(value).__name__}: expected a text, a number, a list or a "
        "mapping of these"
    )
