"""Workbooks: what each cell is, and what no sheet takes."""

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from query.run import workbook
from query.run.workbook import write_workbook
from tests.query.workbooks import workbook_columns


def written(rows: pa.Table, chunk: int = 10_000) -> dict[str, list[Any]]:
    """The columns of rows, through a workbook."""
    file = io.BytesIO()
    write_workbook(file, rows.schema, rows.to_batches(max_chunksize=chunk))
    return workbook_columns(file.getvalue())


@pytest.mark.parametrize("chunk", [1, 10])
def test_cells_are_what_the_values_are(chunk: int) -> None:
    """Numbers, dates, truth values and texts; what Excel has no number of is a text; or nothing."""
    moment = datetime.fromisoformat("2026-03-11 13:03:14")
    first, old = datetime.fromisoformat("1900-03-01"), datetime.fromisoformat("1800-01-01")
    rows = pa.table(
        {
            "whole": [1, None, -(10**15) + 1, 10**15, 2**53 + 1],
            "count": pa.array([5, None, 0, 10**20, 7], pa.decimal128(31, 0)),
            "mean": pa.array([Decimal("22.5"), None, Decimal(0), Decimal("-1e-9"), Decimal("0.3")]),
            "part": [0.5, None, float("nan"), float("-inf"), 1e300],
            "yes": [True, None, False, True, False],
            "day": [date(2026, 3, 11), None, date(1900, 2, 28), date(1900, 3, 1), date(1, 1, 1)],
            "moment": [moment, None, old, first, moment],
            "hour": [time(13, 3, 14), None, time(0), time(1), time(2)],
            "zone": pa.array([moment.replace(tzinfo=UTC)] * 5, pa.timestamp("us", "UTC")),
            "größe": ["=1+1", "", None, "-5", "@SUM(A1)"],
        }
    )
    read = written(rows, chunk)
    assert [*read] == rows.column_names
    assert read["whole"] == [1, None, -999999999999999, "1000000000000000", "9007199254740993"]
    assert read["count"] == [5, None, 0, "100000000000000000000", 7]
    assert read["mean"] == [22.5, None, 0, -1e-9, 0.3]
    assert read["part"] == [0.5, None, None, None, 1e300]
    assert read["yes"] == [True, None, False, True, False]
    midnight = datetime.fromisoformat("2026-03-11")
    assert read["day"] == [midnight, None, "1900-02-28", first, "0001-01-01"]
    assert read["moment"][1:4] == [None, "1800-01-01 00:00:00", first]
    assert {abs((read["moment"][row] - moment).total_seconds()) < 1e-3 for row in (0, 4)} == {True}
    assert read["hour"][:2] == ["13:03:14", None]
    assert read["zone"][0].startswith("2026-03-11 13:03:14")
    assert read["größe"] == ["=1+1", "", None, "-5", "@SUM(A1)"]


@given(texts=st.lists(st.text(st.characters(codec="utf-8"), max_size=20) | st.none()))
def test_any_text_is_there_again(texts: list[str | None]) -> None:
    """Control characters, ends of lines, blanks, and texts that look like an escape."""
    rows = pa.table({"text": pa.array([*texts, "_x000D_", "\r\n\t \x00<&>\ufffe"], pa.string())})
    assert written(rows) == rows.to_pydict()


def test_what_no_sheet_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows, columns or text than Excel has; as many as it has are written."""
    monkeypatch.setattr(workbook, "MOST_ROWS", 3)
    assert written(pa.table({"n": [1, 2, 3]}), chunk=2) == {"n": [1, 2, 3]}
    with pytest.raises(InvalidInput, match=r"at most 3 rows.*csv-named"):
        written(pa.table({"n": [1, 2, 3, 4]}), chunk=2)
    long = "\U0001f600" * 16_383 + "x"
    assert written(pa.table({"t": [long]})) == {"t": [long]}
    with pytest.raises(InvalidInput, match="column 't' has a text of 32,768 characters"):
        written(pa.table({"t": [None, long + "x"]}))
    with pytest.raises(InvalidInput, match="at most 16,384 columns, not 16,385"):
        written(pa.table({f"c{n}": [1] for n in range(16_385)}))


def test_equal_rows_are_equal_bytes() -> None:
    """No time of writing is in the file."""
    rows, files = pa.table({"n": [1]}), [io.BytesIO(), io.BytesIO()]
    for file in files:
        write_workbook(file, rows.schema, rows.to_batches())
    assert files[0].getvalue() == files[1].getvalue()
