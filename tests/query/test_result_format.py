"""Rows as text, in the shapes of Spectrum Discover's query service."""

import csv
import io
import json
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from query.result_format import plain, to_csv, to_json, to_records

TABLE = pa.table(
    {
        "text": ["IBM COS", 'say "hi", you', None, ""],
        "number": [1, None, -3, 0],
        "part": [1.5, 2.0, None, 1e300],
        "exact": [Decimal("22.227439151750"), Decimal("100.000000000000"), None, Decimal(0)],
        "time": [
            datetime.fromisoformat("2016-11-14 19:40:10.000999"),
            None,
            None,
            datetime.fromisoformat("2020-01-02"),
        ],
        "day": [date(2016, 11, 14), None, None, date(2020, 1, 2)],
    }
)


def test_csv_shape() -> None:
    """Row number, quoted text with quotes doubled, bare numbers, nothing for a missing value."""
    assert list(to_csv(TABLE)) == [
        '0,"IBM COS",1,1.5,22.22743915175,2016-11-14 19:40:10,2016-11-14\n',
        '1,"say ""hi"", you",,2.0,100,,\n',
        "2,,-3,,,,\n",
        '3,"",0,1e+300,0,2020-01-02 00:00:00,2020-01-02\n',
    ]


def test_csv_of_no_rows() -> None:
    """No rows are no lines."""
    assert list(to_csv(TABLE.slice(0, 0))) == []


@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"))))
def test_csv_can_be_read_back(texts: list[str]) -> None:
    """Any text survives the way through Python's csv reader; rows are numbered from 0."""
    table = pa.table({"text": pa.array(texts, pa.string())})
    read = list(csv.reader(io.StringIO("".join(to_csv(table)), newline="")))
    assert read == [[str(i), text] for i, text in enumerate(texts)]


def test_rows_are_numbered_across_batches() -> None:
    """The number goes on where a batch ends."""
    lines = list(to_csv(pa.table({"n": range(20_001)})))
    assert lines[0] == "0,0\n"
    assert lines[-1] == "20000,20000\n"


def test_json_shape() -> None:
    """An array of objects with a blank after the colon, decimals as numbers, times as text."""
    text = to_json(TABLE.slice(0, 2))
    assert text.startswith('[{"text": "IBM COS", "number": 1, ')
    first, second = json.loads(text)
    assert first["exact"] == 22.22743915175
    assert first["time"] == "2016-11-14 19:40:10"
    assert first["day"] == "2016-11-14"
    assert second["exact"] == 100
    assert second["number"] is None


def test_json_keeps_letters() -> None:
    """Letters beyond ASCII are written as they are."""
    assert to_json(pa.table({"s": ["Straße"]})) == '[{"s": "Straße"}]'


def test_no_number_is_null() -> None:
    """NaN and infinity, which JSON cannot hold, are null."""
    table = pa.table({"x": [float("nan"), float("inf"), 0.5]})
    assert to_records(table) == [{"x": None}, {"x": None}, {"x": 0.5}]
    assert plain(Decimal("5.0")) == 5
