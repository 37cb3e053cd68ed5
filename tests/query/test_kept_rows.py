"""Rows that lie in a file where they are more than memory should hold."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import StorageError
from query.run import kept_rows
from query.run.kept_rows import KeptRows

ROWS = pa.table(
    {"fkey": [f"c:d:{n}" for n in range(5000)], "car": range(5000), "sky": [None, 1] * 2500}
)


def _batches() -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=700)


@pytest.mark.parametrize("held", [0, 60_000, 32 << 20])
def test_rows_are_read_again(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """All in a file, some of them before the limit came, and none: the same rows each time."""
    monkeypatch.setattr(kept_rows, "_HELD", held)
    rows = KeptRows(ROWS.schema, _batches())
    assert len(rows) == 5000
    assert (rows._file is None) == (held > 1_000_000)
    for _ in range(2):
        assert rows.table().equals(ROWS)
        few = pa.Table.from_batches(rows.batches(["sky", "fkey"]))
        assert few.equals(ROWS.select(["sky", "fkey"]))
    assert next(rows.batches()).num_rows == 700  # and what is read in part is read whole again
    assert rows.table().equals(ROWS)


def test_no_rows() -> None:
    """Columns are there all the same."""
    rows = KeptRows(ROWS.schema, ())
    assert (len(rows), [*rows.batches()]) == (0, [])
    assert rows.table().equals(ROWS.slice(0, 0))


def test_a_table_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory already is not written anywhere."""
    monkeypatch.setattr(kept_rows, "_HELD", 0)
    rows = KeptRows.of(ROWS)
    assert (len(rows), rows._file) == (5000, None)
    assert rows.table().equals(ROWS)


def test_nowhere_to_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder is named."""
    monkeypatch.setattr(kept_rows, "_HELD", 0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match="gone: the answer cannot be written there"):
        KeptRows(ROWS.schema, _batches())
