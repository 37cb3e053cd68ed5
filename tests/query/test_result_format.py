"""Rows in every format, in the shapes of Spectrum Discover's query service and of others."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from query.run import result_text
from query.run.result_format import MEDIA_TYPES, Format, encoded, indented_json, to_records
from query.run.result_text import csv_lines, json_objects
from query.run.value_text import plain
from tests.query.workbooks import workbook_columns

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
FORMATS: tuple[Format, ...] = get_args(Format)


def bytes_of(format_: Format, rows: pa.Table, chunk: int = 10_000) -> bytes:
    """The rows in a format, made of batches of that many rows."""
    return b"".join(encoded(format_, rows.schema, rows.to_batches(max_chunksize=chunk)))


def test_csv_shape() -> None:
    """Row number, quoted text with quotes doubled, bare numbers, nothing for a missing value."""
    assert bytes_of("csv", TABLE).decode().splitlines() == [
        '0,"IBM COS",1,1.5,22.22743915175,2016-11-14 19:40:10,2016-11-14',
        '1,"say ""hi"", you",,2.0,100,,',
        "2,,-3,,,,",
        '3,"",0,1e+300,0,2020-01-02 00:00:00,2020-01-02',
    ]


@given(texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0\r"))))
def test_csv_can_be_read_back(texts: list[str]) -> None:
    """Any text survives the way through Python's csv reader; rows are numbered from 0."""
    table = pa.table({"text": pa.array(texts, pa.string())})
    read = list(csv.reader(io.StringIO(bytes_of("csv", table, 3).decode(), newline="")))
    assert read == [[str(i), text] for i, text in enumerate(texts)]


def field_by_hand(value: Any) -> str:
    """One value of CSV."""
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, Decimal):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    return value.isoformat() if isinstance(value, date | time) else str(value)


def lines_by_hand(rows: pa.RecordBatch, first: int) -> bytes:
    """CSV value by value: what csv_lines does a column at a time."""
    columns = [column.to_pylist() for column in rows.columns]
    lines = [
        ",".join([str(first + n), *map(field_by_hand, values)]) + "\n"
        for n, values in enumerate(zip(*columns, strict=True))
    ]
    return "".join(lines).encode()


DECIMALS = st.tuples(st.integers(1, 38), st.integers(0, 38)).map(
    lambda both: pa.decimal128(both[0], min(both))
)


@st.composite
def columns(draw: st.DrawFn, length: int) -> pa.Array:
    """A column of any type that a statement gives, with missing values."""
    kind = draw(
        st.sampled_from(
            [pa.string(), pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.float32(),
             pa.timestamp("us"), pa.date32(), pa.bool_(), pa.time64("us"), pa.null(), "decimal"]
        )
    )  # fmt: skip
    if kind == "decimal":
        kind = draw(DECIMALS)
        most = 10**kind.precision - 1
        # Not by scaleb, which rounds to 28 digits.
        values: Any = st.integers(-most, most).map(
            lambda n: Decimal((n < 0, _digits(n), -kind.scale))
        )
    else:
        values = {
            pa.string(): st.text(st.characters(codec="utf-8")),
            pa.int8(): st.integers(-128, 127),
            pa.int32(): st.integers(-(2**31), 2**31 - 1),
            pa.int64(): st.integers(-(2**63), 2**63 - 1),
            pa.float64(): st.floats(),
            pa.float32(): st.floats(width=32),
            pa.timestamp("us"): st.datetimes(),
            pa.date32(): st.dates(),
            pa.bool_(): st.booleans(),
            pa.time64("us"): st.times(),
            pa.null(): st.none(),
        }[kind]
    values_drawn = draw(st.lists(st.none() | values, min_size=length, max_size=length))
    return pa.array(values_drawn, kind)


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Some columns of some rows."""
    length = draw(st.integers(0, 4))
    drawn = draw(st.lists(columns(length), min_size=1, max_size=4))
    return pa.RecordBatch.from_arrays(drawn, [f"c{n}" for n in range(len(drawn))])


@contextmanager
def few() -> Iterator[None]:
    """Have the block's rows written value by value, as where Arrow's functions are not imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_text, "_has_functions", lambda: False)
        yield


@contextmanager
def many() -> Iterator[None]:
    """Have the block's rows written by columns, however few they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_text, "_FEW_WHERE_IMPORTED", 0)
        yield


ANY = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])


@ANY
@given(batch=batches(), first=st.integers(0, 10**9))
def test_csv_is_what_values_one_by_one_give(batch: pa.RecordBatch, first: int) -> None:
    """The same bytes for every type and value, sliced or not."""
    for way in (few(), many()):
        with way:
            assert csv_lines(batch, first) == lines_by_hand(batch, first)
            if batch.num_rows > 1:
                assert csv_lines(batch.slice(1), first) == lines_by_hand(batch.slice(1), first)


@pytest.mark.parametrize("text", ["\0", "\x1f", " ", '"', "\\", '\\"', "\x7f", "ü\n", "\ud7ff"])
def test_each_character_that_json_escapes(text: str) -> None:
    """Alone in its column, in front of the slice that is written, and behind it."""
    column = pa.table({"text": [text, "plain", text, None, "a" + text, ""]})
    for rows in (column, column.slice(1, 1), column.slice(2), column.slice(3, 1), column.slice(4)):
        expected = [json.dumps(row, ensure_ascii=False) for row in rows.to_pylist()]
        for batch in (*rows.to_batches(), *rows.combine_chunks().to_batches()):
            with many():
                written = json_objects(batch, after="\n").decode()
            assert written.split("\n")[:-1] == expected


@ANY
@given(batch=batches())
def test_json_is_what_values_one_by_one_give(batch: pa.RecordBatch) -> None:
    """The same objects, and the same text, as json.dumps gives for each row."""
    records = to_records(pa.Table.from_batches([batch]))
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    for way in (few(), many()):
        with way:
            assert json_objects(batch, after="\n").decode() == text


@ANY
@given(batch=batches())
def test_a_document_is_what_json_gives(batch: pa.RecordBatch) -> None:
    """The same text as json.dumps gives with an indentation of two, in batches of any size."""
    rows = pa.Table.from_batches([batch])
    about = {"text": 'a "name", ü', "none": [], "more": {"n": 1}}
    document = json.dumps({**about, "rows": to_records(rows)}, indent=2, ensure_ascii=False)
    for chunk, way in ((1, many()), (3, many()), (1, few())):
        with way:
            pieces = indented_json(about, "rows", rows.to_batches(max_chunksize=chunk))
            assert b"".join(pieces).decode() == document


@pytest.mark.parametrize("chunk", [1, 3, 10_000])
def test_rows_are_numbered_across_batches(chunk: int) -> None:
    """The number goes on where a batch ends."""
    lines = bytes_of("csv", pa.table({"n": range(7)}), chunk).splitlines()
    assert lines == [f"{n},{n}".encode() for n in range(7)]


def test_many_rows_are_written_in_pieces() -> None:
    """The same document as of few, in pieces of so many values at most."""
    rows = pa.table({"n": range(250_000), "text": ["x"] * 250_000})
    pieces = [*encoded("json", rows.schema, rows.to_batches())]
    assert len(pieces) == 6
    assert json.loads(b"".join(pieces)) == rows.to_pylist()
    lines = [*encoded("csv", rows.schema, rows.to_batches())]
    assert [len(piece.splitlines()) for piece in lines] == [50_000] * 5


def test_json_shape() -> None:
    """An array of objects with a blank after colon and comma, decimals as numbers."""
    text = bytes_of("json", TABLE.slice(0, 2), 1).decode()
    assert text.startswith('[{"text": "IBM COS", "number": 1, ')
    assert '}, {"text": "say \\"hi\\", you"' in text
    first, second = json.loads(text)
    assert first["exact"] == 22.22743915175
    assert first["time"] == "2016-11-14 19:40:10"
    assert first["day"] == "2016-11-14"
    assert second["exact"] == 100
    assert second["number"] is None


def test_json_keeps_letters() -> None:
    """Letters beyond ASCII are written as they are."""
    assert bytes_of("json", pa.table({"s": ["Straße"]})) == '[{"s": "Straße"}]'.encode()


def test_no_number_is_null() -> None:
    """NaN and infinity, which JSON cannot hold, are null."""
    table = pa.table({"x": [float("nan"), float("inf"), 0.5]})
    assert to_records(table) == [{"x": None}, {"x": None}, {"x": 0.5}]
    assert json.loads(bytes_of("json", table)) == to_records(table)
    assert plain(Decimal("5.0")) == 5


@pytest.mark.parametrize("chunk", [1, 10_000])
@pytest.mark.parametrize("rows", [TABLE, TABLE.slice(0, 0)], ids=["rows", "none"])
def test_every_format_can_be_read_back(rows: pa.Table, chunk: int) -> None:
    """Rows, and no rows at all, in one batch or several."""
    assert {*MEDIA_TYPES.values(), "csv-named"} == set(FORMATS)
    records = to_records(rows)
    assert bytes_of("csv", rows, chunk).count(b"\n") == len(rows)
    names, *lines = csv.reader(io.StringIO(bytes_of("csv-named", rows, chunk).decode()))
    assert (names, len(lines)) == (rows.column_names, len(rows))
    assert json.loads(bytes_of("json", rows, chunk)) == records
    assert [json.loads(s) for s in bytes_of("ndjson", rows, chunk).splitlines()] == records
    assert pa.ipc.open_stream(bytes_of("arrow-stream", rows, chunk)).read_all().equals(rows)
    assert pa.ipc.open_file(bytes_of("arrow", rows, chunk)).read_all().equals(rows)
    assert pq.read_table(io.BytesIO(bytes_of("parquet", rows, chunk))).equals(rows)
    sheet = workbook_columns(bytes_of("xlsx", rows, chunk))
    assert [*sheet] == rows.column_names
    assert {name: sheet[name] for name in ("text", "number", "part")} == (
        rows.select(["text", "number", "part"]).to_pydict()
    )


def failing() -> Iterator[pa.RecordBatch]:
    """A batch, and then an error."""
    yield from TABLE.to_batches()
    raise ValueError("midway")


@pytest.mark.parametrize("format_", FORMATS)
def test_an_error_midway_leaves_no_complete_document(format_: Format) -> None:
    """What was written before it has no end: no bracket, no end of stream, no footer."""
    written = io.BytesIO()
    with pytest.raises(ValueError, match="midway"):
        written.writelines(encoded(format_, TABLE.schema, failing()))
    text = written.getvalue()
    if format_ == "json":
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
    if format_ == "arrow":
        with pytest.raises(pa.ArrowInvalid):
            pa.ipc.open_file(text)
    if format_ == "arrow-stream":
        assert not text.endswith(b"\xff\xff\xff\xff\0\0\0\0")
        assert bytes_of("arrow-stream", TABLE) == text + b"\xff\xff\xff\xff\0\0\0\0"
    if format_ == "parquet":
        assert text == b""
