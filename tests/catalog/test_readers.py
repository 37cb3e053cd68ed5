"""Readers: one snapshot each, and no way out of it."""

import sqlite3
from pathlib import Path

import duckdb
import pytest

from catalog.errors import SqlError
from catalog.frames.frames import register
from catalog.store import CatalogStore, snapshot_of
from tests.catalog.some_rows import file, source_names

COUNT = "SELECT count(*) FROM metaocean"


def add(store: CatalogStore, *keys: str) -> None:
    with store.writing("test") as connection:
        register(connection, source_names(), [file(key) for key in keys], [], 1)


def test_a_reader_keeps_its_snapshot_while_writers_commit(store: CatalogStore) -> None:
    """Commits go through while a reader is in the middle, and it sees none of them."""
    add(store, "a")
    with store.reading() as cursor:
        before = snapshot_of(cursor)
        for number in range(3):
            assert cursor.execute(COUNT).fetchall() == [(1,)]
            add(store, f"more{number}")
        half_read = cursor.execute("SELECT fkey FROM metaocean")
        add(store, "last")
        assert half_read.fetchall() == [("c1:d1:a",)]
        assert snapshot_of(cursor) == before
    with store.reading() as cursor:
        assert cursor.execute(COUNT).fetchall() == [(5,)]
    assert store.snapshot() == before + 4


def test_many_readers_at_once(store: CatalogStore) -> None:
    """Readers of one store are independent: each has the snapshot of its beginning."""
    with store.reading() as first:
        assert first.execute(COUNT).fetchall() == [(0,)]
        add(store, "a")
        with store.reading() as second:
            assert second.execute(COUNT).fetchall() == [(1,)]
            assert first.execute(COUNT).fetchall() == [(0,)]


@pytest.mark.parametrize("at", [None, 1])
def test_portions_are_read_on_one_thread(store: CatalogStore, at: int | None) -> None:
    """Until the block ends, a failed one, too; not where a process answers many callers."""
    many = CatalogStore(store.location, share_budget=True)
    for one, threads in ((store, 1), (many, 2)):
        with one.inspecting(at) as cursor:
            cursor.execute("SET threads = 2")
            with one.reading_portions(at) as snapshot:
                assert _threads(cursor) == threads
                with one.reading_portions(at):  # a second one changes nothing
                    assert _threads(cursor) == threads
                assert _threads(cursor) == threads
                with pytest.raises(duckdb.Error):
                    snapshot.execute("SELECT error('no')").fetchall()
            assert _threads(cursor) == 2
    many.close()


def _threads(cursor: duckdb.DuckDBPyConnection) -> int:
    row = cursor.execute("SELECT current_setting('threads')").fetchone()
    return int(row[0]) if row else 0


def everything(folder: Path) -> list[Path]:
    """All files but those that SQLite keeps beside an open database."""
    return sorted(path for path in folder.rglob("*") if not path.name.endswith(("-shm", "-wal")))


def test_readers_are_locked_down(store: CatalogStore, tmp_path: Path) -> None:
    """No statement writes a file anywhere, reads one outside, or changes a setting."""
    add(store, "a")
    data = store.location.data
    (tmp_path / "secret.txt").write_text("secret")
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE t (a)").connection.close()
    before = everything(tmp_path)
    for statement in (
        f"COPY (SELECT 1) TO '{tmp_path}/x.csv'",
        f"COPY (SELECT 1) TO '{data}/x.csv'",
        f"COPY files FROM '{tmp_path}/secret.txt'",
        f"EXPORT DATABASE '{data}/x'",
        f"ATTACH '{tmp_path}/x.db'",
        f"ATTACH '{data}/x.db'",
        f"ATTACH '{tmp_path}/other.sqlite' (TYPE sqlite)",
        f"SELECT * FROM sqlite_scan('{tmp_path}/other.sqlite', 't')",
        f"SELECT 1 IN (FROM system.main.\"SQLITE_scan\"('{tmp_path}/other.sqlite', 't'))",
        f"SELECT * FROM sqlite_attach('{tmp_path}/other.sqlite')",
        f"SELECT * FROM query('FROM sqlite_scan(''{tmp_path}/other.sqlite'', ''t'')')",
        f"SELECT * FROM read_text('{tmp_path}/secret.txt')",
        f"SELECT * FROM read_text('{data}/../../../secret.txt')",
        f"SELECT * FROM '{tmp_path}/secret.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 7",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        "SET VARIABLE a = 1",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
        "USE memory",
        "DETACH lake",
        "CREATE TABLE t (a INTEGER)",
        "CREATE TEMP TABLE t (a INTEGER)",
        "CREATE TABLE memory.main.t (a INTEGER)",
        "DELETE FROM lake.main.files",
        "INSERT INTO lake.main.catalog_format VALUES (9)",
        "DROP VIEW metaocean",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "SELECT * FROM ducklake_delete_orphaned_files('lake', cleanup_all => true)",
        "SELECT * FROM ducklake_expire_snapshots('lake', older_than => now())",
        "EXPLAIN ANALYZE DELETE FROM lake.main.files",
        "PREPARE p AS SELECT 1",
        "SELECT current_setting('http_proxy')",
        "SELECT * FROM duckdb_settings()",
        "SELECT 1; SELECT 2",
        "",
    ):
        with store.reading() as cursor, pytest.raises((SqlError, duckdb.Error)) as error:
            cursor.execute(statement)
        assert isinstance(error.value, duckdb.Error) or "\n" not in str(error.value), statement
    assert everything(tmp_path) == before
    with store.reading() as cursor:
        assert cursor.execute(COUNT).fetchall() == [(1,)]


def test_a_reading_cursor_has_no_other_way_in(store: CatalogStore) -> None:
    """The methods by which a cursor would run, load or write something else are not there."""
    with store.reading() as cursor:
        for name in (
            "sql",
            "query",
            "executemany",
            "register",
            "begin",
            "read_csv",
            "cursor",
            "commit",
        ):
            with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
                getattr(cursor, name)


def test_plain_selects_pass(store: CatalogStore) -> None:
    """What the query layer needs passes: values, CTEs, windows, text that names functions."""
    with store.reading() as cursor:
        for statement, values, row in (
            ("SELECT ?::INT + 1", [2], (3,)),
            ("WITH a AS (SELECT 1 AS x) SELECT sum(x) OVER () FROM a", None, (1,)),
            ("SELECT 'sqlite_scan(1)', '\"function_name\":\"sqlite_scan\"'",
             None, ("sqlite_scan(1)", '"function_name":"sqlite_scan"')),
            ("FROM (VALUES (5)) v(a) SELECT a", None, (5,)),
        ):  # fmt: skip
            assert cursor.execute(statement, values).fetchone() == row
        assert cursor.execute("SELECT 1 AS a").to_arrow_table().to_pylist() == [{"a": 1}]


def test_a_closed_store_opens_again(store: CatalogStore) -> None:
    """After close the store reads and writes as before."""
    store.close()
    store.close()
    add(store, "a")
    with store.reading() as cursor:
        assert cursor.execute(COUNT).fetchall() == [(1,)]
