"""SQL that makes a value of a tag's type: one rule for imports, marks, policies and scores.

A time with an offset or a zone is that moment in UTC, and one without is kept as it is: a tag means
the same on every machine. A number that is not finite (NaN, infinity) is no value.
"""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa


_PLAIN_TIME = "'[0-9-]+([ T][0-9:.]+)?'"
_ZONE_FORMS = (
    ("^([0-9-]{10}[ T][0-9]{2}:[0-9]{2}) ?([-+Z])", r"\1:00\2"),  # no seconds
    (" ([-+Z])", r"\1"),
    ("([-+][0-9]{2})([0-9]{2})$", r"\1:\2"),
)
"""Spellings of zones that DuckDB (1.5.5) does not read: "12:00+02:00", "12:00:00 Z", "+0200"."""


def text_as(text: str, kind: str, cast: Literal["CAST", "TRY_CAST"] = "TRY_CAST") -> str:
    """The expression for the value that a text stands for; NULL where that is none.

    Args:
        text: Expression of type VARCHAR.
        kind: One of `catalog.tags.families.TYPES`.
        cast: "CAST" for an error where the text is no value.
    """
    if kind != "TIMESTAMP":
        return value_as(text, kind, cast)
    zoned = text
    for pattern, replacement in _ZONE_FORMS:
        zoned = f"regexp_replace({zoned}, '{pattern}', '{replacement}')"
    return (
        f"CASE WHEN regexp_full_match(trim({text}), {_PLAIN_TIME}) "
        f"THEN {cast}({text} AS TIMESTAMP) "
        f"ELSE timezone('UTC', {cast}({zoned} AS TIMESTAMPTZ)) END"
    )


def value_as(value: str, kind: str, cast: Literal["CAST", "TRY_CAST"] = "TRY_CAST") -> str:
    """The expression for a value of another type than text; see text_as."""
    typed = f"{cast}({value} AS {kind})"
    return f"CASE WHEN isfinite({typed}) THEN {typed} END" if kind == "DOUBLE" else typed


def column_as(name: str, column: "pa.DataType", kind: str) -> str:
    """The expression for a column's values, with an error where one does not fit; see text_as.

    Args:
        column: Its type in Arrow.
        kind: See text_as.
    """
    import pyarrow as pa

    is_text = any(
        test(column)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )
    return (text_as if is_text else value_as)(name, kind, "CAST")
