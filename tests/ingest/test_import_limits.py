"""What an import of tags may take: bytes, columns, and time that nobody waits for."""

import resource
from datetime import datetime
from itertools import chain, repeat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from catalog.errors import InvalidInput
from catalog.tags import families
from ingest.imports.tag_file import MOST_COLUMNS, _read_parquet
from ingest.imports.tag_import import import_tags
from tests.ingest.scene_folders import Home, frame_key, make_tree

ROWS = 1_000_000


@pytest.fixture
def scanned(home: Home, tmp_path: Path) -> Home:
    """Three frames."""
    home.scan(home.add(make_tree(tmp_path / "tree")))
    return home


def repeated(value: object, kind: pa.DataType) -> pa.DictionaryArray:
    """One value, a million times, in a few bytes."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([value], kind))


@pytest.mark.attacks
@pytest.mark.parametrize(
    ("value", "kind"),
    [("x" * 30_000, pa.string()), ("x" * 30_000, pa.large_string()), (b"x" * 30_000, pa.binary())],
)
def test_a_parquet_bomb(tmp_path: Path, value: object, kind: pa.DataType) -> None:
    """A few kilobytes that stand for 60 GB are refused, in little memory."""
    column = repeated(value, kind)
    file = tmp_path / "bomb.parquet"
    pq.write_table(pa.table({"filename": column, "wx": column}), file, compression="zstd")
    assert file.stat().st_size < 100_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput, match="take more than"):
        _read_parquet(file, 64 * 2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


@pytest.mark.attacks
def test_a_page_that_inflates(tmp_path: Path) -> None:
    """So is one value that is larger than all may be, without a dictionary."""
    file = tmp_path / "page.parquet"
    table = pa.table({"filename": ["x" * 200_000_000]})
    pq.write_table(table, file, compression="zstd", use_dictionary=False, write_statistics=False)
    del table
    assert file.stat().st_size < 100_000
    with pytest.raises(InvalidInput, match="take more than"):
        _read_parquet(file, 64 * 2**20)


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """By batches or at once: the same values, whatever their types."""
    file = tmp_path / "all.parquet"
    rows = 40_000  # more than two batches
    table = pa.table(
        {
            "filename": [f"{number}.png" for number in range(rows)],
            "text": pa.array([None, "a", "ä"] * (rows // 3) + [None], pa.large_string()),
            "kind": pa.array(["x", None] * (rows // 2)).dictionary_encode(),
            "number": list(range(rows)),
            "share": [number / 7 for number in range(rows)],
            "yes": [True, None] * (rows // 2),
            "time": [datetime(2026, 11, 21)] * rows,  # noqa: DTZ001
            "none": pa.nulls(rows),
        }
    )
    pq.write_table(table, file, row_group_size=7_000)
    frames = _read_parquet(file, 2**30)
    assert frames.to_pylist() == table.to_pylist()
    nested = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"filename": ["a"], "list": [["a"]]}), nested)
    with pytest.raises(InvalidInput, match="column 'list' is list"):
        _read_parquet(nested, 2**30)


def wide(file: Path, columns: int, name: str) -> Path:
    """A CSV of one row."""
    names = ",".join(f"w{number}" for number in range(columns))
    file.write_text(f"filename,{names}\n{name}" + ",1" * columns + "\n")
    return file


@pytest.mark.wide
def test_columns(scanned: Home, tmp_path: Path) -> None:
    """So many of a file, so many of a catalog; nothing is made when a row names no file."""
    name = frame_key("camera", 1).rpartition("/")[2]
    with pytest.raises(InvalidInput, match=f"at most {MOST_COLUMNS}"):
        import_tags(scanned.store, wide(tmp_path / "w.csv", MOST_COLUMNS, name), "wide")
    pq.write_table(
        pa.table({f"c{n}": ["a"] for n in range(MOST_COLUMNS + 1)}), tmp_path / "w.parquet"
    )
    with pytest.raises(InvalidInput, match=f"at most {MOST_COLUMNS}"):
        import_tags(scanned.store, tmp_path / "w.parquet", "wide", most_bytes=2**20)
    result = import_tags(scanned.store, wide(tmp_path / "n.csv", 3, "none.png"), "wide")
    assert result.imported == 0
    assert families.families(scanned.store) == []
    many = {f"m{number}": "INTEGER" for number in range(families.MOST_TAGS)}
    with pytest.raises(InvalidInput, match="new tags, and the catalog has"):
        families.write(scanned.store, "many", many)
    assert families.families(scanned.store) == []


@pytest.mark.wide
def test_nobody_waits(scanned: Home, tmp_path: Path) -> None:
    """It ends, whenever its client goes, and has written nothing."""
    name = frame_key("camera", 1).rpartition("/")[2]
    file = wide(tmp_path / "w.csv", 20, name)
    for count in (0, 3, 20, 21):
        left = chain(repeat(False, count), repeat(True))
        with pytest.raises(InvalidInput, match="nobody waits"):
            import_tags(scanned.store, file, "wide", stopped=left.__next__)
        assert families.families(scanned.store) == []
    assert import_tags(scanned.store, file, "wide").imported == 1
