"""A table of Arrow as rows of plain values, and as pandas has it."""

from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any

from framesift.forms.optional import imported

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pyarrow as pa


def rows_of(table: "pa.Table") -> Sequence[dict[str, Any]]:
    """The rows by column name, their values as the server's JSON has them."""
    return [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]


def data_frame(table: "pa.Table") -> "pd.DataFrame":
    """The table for pandas, exact: integers stay integers, where values are missing, too.

    Decimals without places, as Db2 counts and sums, are 64-bit integers where all of a column fit.
    Other decimals are Decimal.

    Raises:
        MissingPackage: There is no pandas.
    """
    pa, pd = imported("pyarrow"), imported("pandas")
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale <= 0:
            try:
                integers = table.column(index).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(index, field.name, integers)
    nullable = {
        pa.bool_(): pd.BooleanDtype(),
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
    }
    types = {
        field.name: field.type.to_pandas_dtype()
        for index, field in enumerate(table.schema)
        if field.type in nullable and not table.column(index).null_count
    }
    return table.to_pandas(types_mapper=nullable.get).astype(types)


def _plain(value: Any) -> Any:
    """Decimals as numbers, times as text, and what is no number (NaN, infinity) as None."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, date | time):
        return value.isoformat()
    return value
