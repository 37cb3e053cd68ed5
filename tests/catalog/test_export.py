"""Exports: what other engines read is what the catalog holds."""

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from catalog.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from catalog.frames.frames import register
from catalog.lake.extensions import file_of
from catalog.lake.schema import FILES_COLUMNS
from catalog.maintenance import export as export_module
from catalog.maintenance.export import Export, export_iceberg, export_parquet
from catalog.store import CatalogStore
from catalog.tags import families
from tests.catalog.histories import History
from tests.catalog.some_rows import WHEN, file, frame, open_store, source_names
from tests.templates import Templates

WRITERS = {"parquet": export_parquet, "iceberg": export_iceberg}


def make_every_type(folder: Path) -> None:
    """A catalog with tags of every type."""
    store = open_store(folder)
    History(store, random.Random(1)).write(6)
    with store.writing("made") as connection:
        keys = [f"n{number}" for number in range(8)]
        frames = [frame(key, car=number, sky=1) for number, key in enumerate(keys[:5])]
        register(connection, source_names(), [file(key) for key in keys], frames, 1)
    columns = {"flag": "BOOLEAN", "small": "INTEGER", "big": "BIGINT", "real": "DOUBLE",
               "words": "VARCHAR", "seen-at": "TIMESTAMP"}  # fmt: skip
    rows = pa.table(
        {
            "fkey": ["c1:d1:n0", "c1:d1:n1"],
            "flag": [True, False],
            "small": pa.array([-1, 2], pa.int32()),
            "big": [2**40, -(2**40)],
            "real": [0.5, float("inf")],
            "words": ["é '\"", None],
            "seen-at": pa.array([WHEN, None], pa.timestamp("us")),
        }
    )
    families.write(store, "kinds", columns, rows)
    store.close()


@pytest.fixture
def filled(templates: Templates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogStore:
    """A copy of that catalog, exported in several parts."""
    monkeypatch.setattr(export_module, "PART_ROWS", 3)
    monkeypatch.setattr(export_module, "_BATCH_ROWS", 2)
    templates.copy(make_every_type, tmp_path / "home")
    return open_store(tmp_path / "home")


def wide(store: CatalogStore, at: int | None = None) -> pa.Table:
    """The catalog's own answer: every column as text, by fkey."""
    with store.reading(at) as cursor:
        return cursor.execute("SELECT * FROM metaocean_view ORDER BY fkey").to_arrow_table()


def same(table: pa.Table, expected: pa.Table) -> None:
    """The exported rows as texts are the view's, tag by tag."""
    connection = duckdb.connect()
    connection.register("exported", table)
    tags = [name for name in expected.column_names if name in table.column_names]
    assert set(table.column_names) == set(FILES_COLUMNS) | (
        set(expected.column_names) - {"nodename", "filespace", "mgmtclass"}
    )
    listed = ", ".join(f'CAST("{tag}" AS VARCHAR) AS "{tag}"' for tag in tags)
    texts = connection.execute(f"SELECT {listed} FROM exported ORDER BY fkey").to_arrow_table()
    for tag in tags:
        assert texts[tag].to_pylist() == [
            None if value is None else str(value) for value in expected[tag].to_pylist()
        ], tag


@pytest.mark.wide
@pytest.mark.parametrize("format_", WRITERS)
def test_what_others_read(filled: CatalogStore, tmp_path: Path, format_: str) -> None:
    """pyarrow, DuckDB and pyiceberg read the catalog's rows with their types."""
    done = WRITERS[format_](filled, tmp_path / "it's out")
    expected = wide(filled)
    assert (done.rows, done.snapshot) == (expected.num_rows, filled.snapshot())
    for table in _read(format_, tmp_path / "it's out", done):
        assert table.num_rows == done.rows
        assert len(table.column_names) == done.columns
        same(table, expected)
        types = {field.name: field.type for field in table.schema}
        assert types["flag"] == pa.bool_()
        assert types["car"] == types["front"] == pa.int32()
        assert types["big"] == pa.int64()
        assert types["seen-at"] == pa.timestamp("us")


@pytest.mark.parametrize("name", ["a?b", "a#b", "run[1]", "50%", "a*"])
def test_a_path_that_means_something_in_a_uri(
    filled: CatalogStore, tmp_path: Path, name: str
) -> None:
    """Iceberg, which names files by URIs, refuses it, and nothing is made; Parquet is written."""
    with pytest.raises(InvalidInput, match="choose a folder without"):
        export_iceberg(filled, tmp_path / name / "out")
    assert not (tmp_path / name).exists()
    assert not (tmp_path / "a").exists()
    assert export_parquet(filled, tmp_path / name / "out").rows > 0


def _read(format_: str, folder: Path, done: Export) -> list[pa.Table]:
    if format_ == "parquet":
        assert len(list(folder.glob("*.parquet"))) > 1
        by_duckdb = duckdb.connect().execute(
            "SELECT * FROM read_parquet(?)", [f"{done.opened_by}/*.parquet"]
        )
        return [pq.read_table(folder), by_duckdb.to_arrow_table()]
    catalog = SqlCatalog(
        "framesift", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=f"file://{folder}"
    )
    table = catalog.load_table("framesift.files")
    assert table.properties["framesift.snapshot"] == str(done.snapshot)
    assert len(table.snapshots()) >= 1
    by_pyiceberg = table.scan().to_arrow()
    catalog.close()
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    for name in ("avro", "iceberg"):
        connection.execute(f"LOAD '{file_of(name)}'")
    by_duckdb = connection.execute("SELECT * FROM iceberg_scan(?)", [done.opened_by])
    return [by_pyiceberg, by_duckdb.to_arrow_table()]


@pytest.mark.wide
@pytest.mark.parametrize("format_", WRITERS)
def test_an_old_snapshot(filled: CatalogStore, tmp_path: Path, format_: str) -> None:
    """`at` exports that snapshot with the tags of its time."""
    old, expected = filled.snapshot(), wide(filled)
    families.drop(filled, "kinds")
    done = WRITERS[format_](filled, tmp_path / "out", old)
    assert done.snapshot == old
    same(_read(format_, tmp_path / "out", done)[0], expected)


@pytest.mark.parametrize("format_", WRITERS)
def test_an_empty_catalog(store: CatalogStore, tmp_path: Path, format_: str) -> None:
    """No rows, all columns."""
    done = WRITERS[format_](store, tmp_path / "out")
    assert (done.rows, done.columns) == (0, len(FILES_COLUMNS) + 16)


@pytest.mark.parametrize("format_", WRITERS)
def test_what_is_refused(filled: CatalogStore, tmp_path: Path, format_: str) -> None:
    """A folder that exists stays as it is; a wrong snapshot or place leaves nothing."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").write_text("mine")
    with pytest.raises(AlreadyExists):
        WRITERS[format_](filled, tmp_path / "there")
    assert (tmp_path / "there" / "mine.txt").read_text() == "mine"
    with pytest.raises(NotFound):
        WRITERS[format_](filled, tmp_path / "new", 999)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        WRITERS[format_](filled, tmp_path / "file" / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "home", "there"]
