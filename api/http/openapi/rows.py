"""Rows as text, for the OpenAPI document: no model describes them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from query.run.result_format import MEDIA_TYPES, Format, encoded


def in_rows(rows: Sequence[Mapping[str, Any]], csv: Format) -> dict[str, dict[str, Any]]:
    """Rows in each media type that rows have, as OpenAPI tells of it; bytes have no example.

    Args:
        rows: All with the same keys, none with null.
        csv: With a line of names, or as Spectrum Discover's.
    """
    table = pa.Table.from_pylist(rows)
    contents: dict[str, dict[str, Any]] = {}
    for media_type, format_ in MEDIA_TYPES.items():
        if format_ == "json":
            schema = {"type": "array", "items": {"type": "object"}}
            contents[media_type] = {"schema": schema, "example": list(rows)}
        elif format_ in ("csv", "ndjson"):
            text = b"".join(
                encoded(csv if format_ == "csv" else format_, table.schema, table.to_batches())
            )
            contents[media_type] = {"schema": {"type": "string"}, "example": text.decode()}
        else:
            contents[media_type] = {"schema": {"type": "string", "format": "binary"}}
    return contents
