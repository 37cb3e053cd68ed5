"""Opens tables with pandas, polars and openpyxl; writes what each reads as JSON.

python read_tables.py FOLDER CACHE
"""

import datetime
import json
import math
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd  # type: ignore[import-untyped,unused-ignore]
import polars as pl
import pyarrow as pa


def plain(value: Any) -> Any:
    """A value as JSON can hold it; what is missing as None."""
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime.datetime):
        return str(value)[:19]
    if isinstance(value, datetime.date):
        return str(value)
    return value if isinstance(value, int | float | str) else float(value)


def of_pandas(path: Path) -> pd.DataFrame:
    """A file as pandas' readers open it."""
    if path.suffix == ".stream":
        return pa.ipc.open_stream(path).read_pandas()
    readers = {
        ".csv": pd.read_csv,
        ".parquet": pd.read_parquet,
        ".arrow": pd.read_feather,
        ".xlsx": pd.read_excel,
    }
    if path.suffix == ".ndjson":
        return pd.read_json(path, lines=True, convert_dates=False, dtype=False)
    return readers[path.suffix](path)


def of_polars(path: Path) -> pl.DataFrame:
    """A file as polars' readers open it."""
    readers = {
        ".csv": pl.read_csv,
        ".parquet": pl.read_parquet,
        ".arrow": pl.read_ipc,
        ".stream": pl.read_ipc_stream,
        ".ndjson": pl.read_ndjson,
        ".xlsx": pl.read_excel,
    }
    return readers[path.suffix](path)


def of_openpyxl(path: Path) -> dict[str, list[object]]:
    """The cells of a workbook."""
    names, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


read: dict[str, dict[str, dict[str, list[object]]]] = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    tables = {
        "pandas": of_pandas(path).astype(object).to_dict("list"),
        "polars": of_polars(path).to_dict(as_series=False),
    }
    if path.suffix == ".xlsx":
        tables["openpyxl"] = of_openpyxl(path)
    read[path.name] = {
        reader: {name: [plain(value) for value in values] for name, values in table.items()}
        for reader, table in tables.items()
    }
sys.stdout.write(json.dumps(read))
