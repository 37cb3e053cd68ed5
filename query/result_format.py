"""Rows as text, as Spectrum Discover's query service writes them."""

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa


def to_csv(rows: pa.Table) -> Iterator[str]:
    r"""Lines of CSV: no header, the row's number first, text quoted, numbers not.

    A missing value is an empty field. Decimals lose trailing zeros, as the redbook prints them.

    >>> list(to_csv(pa.table({"platform": ["IBM COS"], "size": [12]})))
    ['0,"IBM COS",12\n']
    """
    number = 0
    for batch in rows.to_batches(max_chunksize=10_000):
        columns = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
        for values in zip(*columns, strict=True):
            fields = [str(number), *map(_csv_field, values)]
            yield ",".join(fields) + "\n"
            number += 1


def to_records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries of what JSON can hold."""
    return [{name: plain(value) for name, value in row.items()} for row in rows.to_pylist()]


def to_json(rows: pa.Table) -> str:
    """A JSON array of objects, with a blank after every colon and comma."""
    return json.dumps(to_records(rows), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: decimals as numbers, times as text, no number as null."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, date):
        return value.isoformat()
    return value


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, datetime | date):
        return str(plain(value))
    return str(value)
