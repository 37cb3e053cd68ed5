"""Rows as text, whole columns at a time: a million rows would take a minute value by value."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from query.run.value_text import csv_field, json_value

_FEW, _FEW_WHERE_IMPORTED = 10_000, 4_000
"""Values that are written one by one: in less time than Arrow's functions take to be imported, and
where they are, than 200 calls of them.
"""

_PLAIN = (
    kinds.is_string, kinds.is_integer, kinds.is_decimal, kinds.is_floating, kinds.is_boolean
)  # fmt: skip
"""Types whose texts are the same by columns and by values, whatever the value."""


def csv_lines(rows: pa.RecordBatch, first: int | None = None) -> bytes:
    r"""Lines of CSV as Spectrum Discover writes them: the row's number, text quoted, numbers not.

    A missing value is an empty field. Decimals lose trailing zeros, as the redbook prints them.

    Args:
        first: The first one's number; None for lines without numbers.

    >>> csv_lines(pa.record_batch({"platform": ["IBM COS"], "size": [12]}), 0)
    b'0,"IBM COS",12\n'
    """
    if not _are_few(rows):
        from query.run.column_text import csv_lines_of_columns

        return csv_lines_of_columns(rows, first)
    fields = [[*map(_csv_value, column.to_pylist())] for column in rows.columns]
    if first is not None:
        fields.insert(0, [str(first + row) for row in range(rows.num_rows)])
    return "".join(",".join(line) + "\n" for line in zip(*fields, strict=True)).encode()


def csv_names(names: Sequence[str]) -> bytes:
    """A line of CSV with the names of columns."""
    return (",".join(map(_quoted, names)) + "\n").encode()


def json_objects(rows: pa.RecordBatch, *, before: str = "", after: str = "") -> bytes:
    """The rows as JSON objects with a blank after each colon and comma, one after the other.

    Decimals are numbers, times are text, and what is no number (NaN, infinity) is null.

    Args:
        before: Stands before each object.
        after: Stands after each.
    """
    return _objects(rows, before + "{", ", ", "}" + after)


def indented_json_objects(rows: pa.RecordBatch, blanks: int, before: str) -> bytes:
    """`json_objects` with each member on a line, as ``json.dumps(..., indent=2)`` writes them.

    Args:
        blanks: So many stand before an object.
        before: Stands before these.
    """
    margin = blanks * " "
    member = f"\n{margin}  "
    return _objects(rows, f"{before}{margin}{{{member}", f",{member}", f"\n{margin}}}")


def _objects(rows: pa.RecordBatch, begin: str, between: str, end: str) -> bytes:
    keys = [json.dumps(name, ensure_ascii=False) for name in rows.schema.names]
    leads = [f"{between if number else begin}{key}: " for number, key in enumerate(keys)]
    if not _are_few(rows):
        from query.run.column_text import json_objects_of_columns

        return json_objects_of_columns(rows, leads, end)
    members = [
        [lead + json_value(value) for value in column.to_pylist()]
        for lead, column in zip(leads, rows.columns, strict=True)
    ]
    return "".join("".join(one) + end for one in zip(*members, strict=True)).encode()


def _are_few(rows: pa.RecordBatch) -> bool:
    """Return whether to write the rows value by value."""
    most = _FEW_WHERE_IMPORTED if _has_functions() else _FEW
    return rows.num_rows * rows.num_columns <= most and all(
        any(is_kind(kind) for is_kind in _PLAIN) for kind in rows.schema.types
    )


def _has_functions() -> bool:
    return "pyarrow.compute" in sys.modules


def _csv_value(value: Any) -> str:
    if value is None:
        return ""
    return _quoted(value) if isinstance(value, str) else csv_field(value)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
