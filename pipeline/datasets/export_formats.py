"""The forms in which other programs get a dataset."""

from collections.abc import Mapping
from typing import Literal

ExportFormat = Literal["csv", "parquet", "xlsx", "jsonl", "files", "fiftyone"]

TEXTS: Mapping[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "files": "text/plain; charset=utf-8",
}
"""Media type of the formats that are a text."""

TABLES: Mapping[str, str] = {
    "parquet": "application/vnd.apache.parquet",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
"""Media type of the formats that are a file of a table."""
