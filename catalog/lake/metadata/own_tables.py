"""DuckLake's own functions and tables: what there is of snapshots, files and their maintenance."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from catalog.lake.connection import LAKE, METADATA, snapshot_of
from catalog.lake.cursor import Cursor
from catalog.storage.location import CatalogLocation
from catalog.text.quoting import literal

_ROW_CHANGES = ("tables_inserted_into", "tables_deleted_from")
_TABLE_CHANGES = (*_ROW_CHANGES, "tables_altered")
_TABLE_NAMES = ("tables_created", "tables_dropped")
_ROWS_MOVED = ("merge_adjacent", "rewrite_delete")
"""Compaction's: the same rows in other files."""

ROW_GROUP_ROWS = 40_960
"""Rows of a data file that are read together, a third of DuckDB's own number: who reads some ten
thousand frames leaves more unread. `dataset create` of a million frames took a fifth less CPU, the
files a fortieth more room; with half as many rows a hundredth less, and a twentieth.
"""

OF_ONE_PLACE = frozenset({"ducklake_files_scheduled_for_deletion", "ducklake_metadata"})
"""DuckLake's own tables that say where a catalog lies and which files are about to go there."""


def is_made(location: CatalogLocation) -> bool:
    """Return whether there is a catalog; one whose making was cut short is none."""
    if isinstance(location.metadata, Path):
        return location.metadata.exists()  # it gets this name when it is whole
    with location.metadata.connected() as connection:
        row = connection.execute("SELECT to_regclass('public.ducklake_table')").fetchone()
        if row is None or row[0] is None:
            return False
        tables = connection.execute(
            "SELECT 1 FROM public.ducklake_table WHERE table_name = 'catalog_format'"
        )
        return tables.fetchone() is not None


def choose_row_groups(connection: duckdb.DuckDBPyConnection) -> None:
    """Let data files have row groups of ROW_GROUP_ROWS, unless somebody has chosen others."""
    key = "parquet_row_group_size"
    chosen = connection.execute(
        f"SELECT 1 FROM {METADATA}.ducklake_metadata WHERE key = '{key}' AND scope IS NULL"
    ).fetchone()
    if chosen is None:
        connection.execute(f"CALL {LAKE}.set_option('{key}', '{ROW_GROUP_ROWS}')")


def tables_in(connection: Any) -> list[str]:
    """Names of DuckLake's own tables in a PostgreSQL database.

    Args:
        connection: Of psycopg.
    """
    rows = connection.execute(
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_schema = 'public' AND starts_with(table_name, 'ducklake_')"
    ).fetchall()
    return [str(row[0]) for row in rows]


def is_in_use(connection: Any) -> bool:
    """Return whether a PostgreSQL database has a catalog with a table, also one cut short.

    Args:
        connection: Of psycopg.
    """
    if "ducklake_table" not in tables_in(connection):
        return False
    rows = connection.execute("SELECT 1 FROM public.ducklake_table LIMIT 1")
    return rows.fetchone() is not None


def newest_snapshot(cursor: Cursor) -> int:
    """Number of the newest snapshot; asked outside a transaction, where it is the newest by now.

    Never through Python's own sqlite3: two SQLite libraries in one process do not see each other's
    locks, and DuckDB's then ends the process (https://sqlite.org/howtocorrupt.html, 2.2.1).
    """
    row = cursor.execute(f"SELECT max(snapshot_id) FROM {METADATA}.ducklake_snapshot").fetchone()
    return int(row[0]) if row else 0


def files_since_last_of(cursor: Cursor, author: str) -> tuple[int, datetime | None]:
    """Data files that commits added to one table, the one with the most, since an author's last.

    And when that was, naive UTC; None where there is no commit of the author.
    """
    row = cursor.execute(
        f"""
        WITH last AS (
            SELECT coalesce(max(snapshot_id), 0) AS number,
                max(snapshot_time::TIMESTAMPTZ) AT TIME ZONE 'UTC' AS time
            FROM {METADATA}.ducklake_snapshot_changes
            JOIN {METADATA}.ducklake_snapshot USING (snapshot_id) WHERE author = ?
        ), files AS (
            SELECT count(*) AS files FROM {METADATA}.ducklake_data_file
            WHERE end_snapshot IS NULL AND begin_snapshot > (SELECT number FROM last)
            GROUP BY table_id
        )
        SELECT coalesce((SELECT max(files) FROM files), 0), (SELECT time FROM last)
        """,
        [author],
    ).fetchone()
    return (int(row[0]), row[1]) if row else (0, None)


@dataclass(frozen=True, slots=True)
class Commit:
    """A snapshot, as its commit wrote it down."""

    number: int
    """Its number."""
    time: datetime
    """When it was committed, naive UTC."""
    author: str
    """Who made it; empty where nobody said."""
    reason: str
    """What for; empty where nobody said."""
    tables: tuple[str, ...]
    """Tables whose rows or columns it changed; empty for compaction."""


def commits(cursor: Cursor, limit: int | None = None) -> list[Commit]:
    """The snapshots that there are, newest first, without number 0, which has no tables."""
    rows = cursor.execute(
        "SELECT snapshot_id, snapshot_time AT TIME ZONE 'UTC', coalesce(author, ''), "
        "coalesce(commit_message, ''), "
        "flatten([map_extract_value(changes, kind) FOR kind IN "
        f"{[*_TABLE_CHANGES, *_TABLE_NAMES]} IF map_contains(changes, kind)]) "
        f"FROM {LAKE}.snapshots() WHERE snapshot_id > 0 ORDER BY snapshot_id DESC "
        + (f"LIMIT {int(limit)}" if limit is not None else "")
    ).fetchall()
    names = _table_names(cursor)
    return [
        Commit(number, time, author, reason, _names(changed, names))
        for number, time, author, reason, changed in rows
    ]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Changes of rows by the commits after a snapshot, which changed nothing else."""

    tables: tuple[str, ...]
    """Tables whose rows they wrote or deleted."""
    spans: tuple[tuple[int, int], ...]
    """First and last number of commits in a row without a compaction between. Across one, DuckLake
    tells of more rows than were changed (1.5.5).
    """


def written_since(cursor: Cursor, number: int) -> RowChanges | None:
    """Changes of rows since a snapshot; compaction changes none.

    Args:
        cursor: Of WritableCatalog.inspecting.

    Returns:
        None where a commit changed columns or tables, or is not there any more.
    """
    newest = snapshot_of(cursor)  # others may have come since the cursor's transaction began
    rows = cursor.execute(
        "SELECT snapshot_id, map_keys(changes), flatten(map_values(changes)) "
        f"FROM {LAKE}.snapshots() WHERE snapshot_id BETWEEN ? AND ? ORDER BY snapshot_id",
        [number + 1, newest],
    ).fetchall()
    if [commit for commit, _, _ in rows] != list(range(number + 1, newest + 1)):
        return None
    kinds = {kind for _, kinds, _ in rows for kind in kinds or ("none",)}
    if not kinds <= {*_ROW_CHANGES, *_ROWS_MOVED}:
        return None
    written: list[str] = []
    spans: list[tuple[int, int]] = []
    for commit, kinds_of_commit, changed in rows:
        if {*kinds_of_commit} & {*_ROWS_MOVED}:
            continue
        written += changed
        if spans and spans[-1][1] == commit - 1:
            spans[-1] = (spans[-1][0], commit)
        else:
            spans.append((commit, commit))
    return RowChanges(_names(written, _table_names(cursor)), tuple(spans))


def changed_rows(table: str, spans: Sequence[tuple[int, int]]) -> str:
    """A statement that gives the rows that commits wrote or deleted, with their `change_type`.

    Args:
        table: One of RowChanges.tables.
        spans: RowChanges.spans.
    """
    return " UNION ALL ".join(
        f"SELECT * FROM ducklake_table_changes('{LAKE}', 'main', {literal(table)}, {first}, {last})"
        for first, last in spans
    )


def changed_fkeys(table: str, spans: Sequence[tuple[int, int]]) -> str:
    """A statement that gives the fkeys of `changed_rows`."""
    return f"SELECT fkey FROM ({changed_rows(table, spans)})"


def _table_names(cursor: Cursor) -> dict[str, str]:
    """Names of tables by their numbers, as texts; also of those that are gone."""
    return dict(
        cursor.execute(
            f"SELECT CAST(table_id AS VARCHAR), table_name FROM {METADATA}.ducklake_table"
        ).fetchall()
    )


def _names(changed: Sequence[str] | None, names: dict[str, str]) -> tuple[str, ...]:
    """Table names of ids and of "main.name", without repetition."""
    changed_tables = (names.get(one, one).rpartition(".")[2] for one in changed or ())
    return tuple(sorted(dict.fromkeys(changed_tables)))


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file that a snapshot needs."""

    table: str
    """Its table."""
    path: str
    """Its path below the data folder."""
    size: int
    """Its size [bytes]."""
    newest: bool
    """Whether the newest snapshot needs it."""


def data_files(cursor: Cursor) -> list[DataFile]:
    """Every Parquet file that any snapshot needs, by table and path."""
    rows = cursor.execute(
        "SELECT table_name, place, file_size_bytes, bool_or(end_snapshot IS NULL) "
        f"FROM ({_FILES}) GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    return [DataFile(*row) for row in rows]


def holds_file(cursor: Cursor, name: str) -> bool:
    """Return whether a data file of that name belongs to a snapshot that there is."""
    row = cursor.execute(
        f"SELECT count(*) FROM (SELECT path FROM {METADATA}.ducklake_data_file "
        f"UNION ALL SELECT path FROM {METADATA}.ducklake_delete_file) "
        "WHERE ends_with(path, ?)",
        [name],
    ).fetchone()
    return bool(row and row[0])


def snapshots_that_need(cursor: Cursor, paths: Collection[str]) -> dict[str, set[int]]:
    """Numbers of the snapshots that need each of some files, by its path below the data folder."""
    rows = cursor.execute(
        f"SELECT place, list(DISTINCT snapshot_id) FROM ({_FILES}) AS f "
        f"JOIN {METADATA}.ducklake_snapshot AS s ON s.snapshot_id >= f.begin_snapshot "
        "AND (f.end_snapshot IS NULL OR s.snapshot_id < f.end_snapshot) "
        "WHERE place IN (SELECT unnest(?::VARCHAR[])) AND snapshot_id > 0 GROUP BY place",
        [list(paths)],
    ).fetchall()
    return {str(path): set(numbers) for path, numbers in rows}


_COLUMNS = ("table_id", "path", "path_is_relative", "file_size_bytes", "begin_snapshot")

# A delete file that ended with its data file is not marked as ended itself.
_FILES = f"""
    SELECT t.table_name, CASE WHEN f.path_is_relative THEN s.path || t.path || f.path
        ELSE f.path END AS place, f.file_size_bytes, f.begin_snapshot, f.end_snapshot
    FROM (
        SELECT {", ".join(_COLUMNS)}, end_snapshot FROM {METADATA}.ducklake_data_file
        UNION ALL
        SELECT {", ".join(f"d.{name}" for name in _COLUMNS)}, coalesce(
            d.end_snapshot, CASE WHEN of_data.data_file_id IS NULL THEN 0 END, of_data.end_snapshot)
        FROM {METADATA}.ducklake_delete_file AS d
        LEFT JOIN {METADATA}.ducklake_data_file AS of_data USING (data_file_id)
    ) AS f
    JOIN (SELECT DISTINCT table_id, table_name, schema_id, path
        FROM {METADATA}.ducklake_table) AS t USING (table_id)
    JOIN (SELECT DISTINCT schema_id, path FROM {METADATA}.ducklake_schema) AS s USING (schema_id)
"""


def row_counts(cursor: Cursor) -> dict[str, int]:
    """Rows of each table of the newest snapshot, as DuckLake wrote them down."""
    rows = cursor.execute(
        "SELECT table_name, sum(coalesce(record_count, 0) - coalesce(delete_count, 0))::BIGINT "
        f"FROM {METADATA}.ducklake_table AS t "
        f"LEFT JOIN {METADATA}.ducklake_data_file AS f "
        "ON f.table_id = t.table_id AND f.end_snapshot IS NULL "
        f"LEFT JOIN {METADATA}.ducklake_delete_file AS d "
        "ON d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL "
        "WHERE t.end_snapshot IS NULL GROUP BY table_name"
    ).fetchall()
    return {str(table): int(count) for table, count in rows}


def tables(cursor: Cursor) -> list[str]:
    """The tables of the cursor's snapshot, by name."""
    rows = cursor.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main' "
        "ORDER BY table_name",
        [LAKE],
    ).fetchall()
    return [str(row[0]) for row in rows]


def rewrite_deleted(connection: duckdb.DuckDBPyConnection, table: str, share: float) -> int:
    """Write again the files of which more than ``share`` (0 to 1) is deleted; how many."""
    rows = connection.execute(
        "CALL ducklake_rewrite_data_files(?, ?, schema => 'main', delete_threshold => ?)",
        [LAKE, table, share],
    ).fetchall()
    return sum(int(row[2]) for row in rows)


def merge_small(connection: duckdb.DuckDBPyConnection, table: str, most: int) -> int:
    """Merge the table's small files into at most ``most`` larger ones; how many were merged.

    Once per transaction: a second call in the same one merges the same files again, and each of
    their rows is there twice afterwards (DuckLake 1.5.5).
    """
    rows = connection.execute(
        "CALL ducklake_merge_adjacent_files(?, ?, schema => 'main', max_compacted_files => ?)",
        [LAKE, table, most],
    ).fetchall()
    return sum(int(row[2]) for row in rows)


def expire(connection: duckdb.DuckDBPyConnection, numbers: Sequence[int]) -> None:
    """Forget snapshots; files that only they needed are noted for deletion."""
    connection.execute(
        "CALL ducklake_expire_snapshots(?, versions => ?::UBIGINT[])", [LAKE, list(numbers)]
    )


def delete_old_files(connection: duckdb.DuckDBPyConnection, older_than: timedelta | None) -> int:
    """Delete files noted for deletion; how many.

    Args:
        connection: A writer's.
        older_than: Only those noted at least so long ago; all when None. Up to a day longer:
            DuckLake compares the times as texts in SQLite, "2026-11-21 10:17" with
            "2026-11-21T09:17", which takes everything of the same day for older.
    """
    if older_than is None:
        choice, values = "cleanup_all => true", []
    else:
        choice = "older_than => now() - to_seconds(?)"
        values = [(older_than + timedelta(days=1)).total_seconds()]
    rows = connection.execute(
        f"CALL ducklake_cleanup_old_files('{LAKE}', {choice})", values
    ).fetchall()
    return len(rows)


def orphans(connection: duckdb.DuckDBPyConnection, location: CatalogLocation) -> list[str]:
    """Paths below the data folder of the Parquet files there that the lake knows nothing of.

    Under the write lock only: a file that another writer has not committed yet is one, too.
    DuckLake's own search for them takes the data folder's path for a pattern, and so finds the
    files of other catalogs (1.5.5).
    """
    rows = connection.execute(
        f"SELECT place FROM ({_FILES}) "
        f"UNION ALL SELECT path FROM {METADATA}.ducklake_files_scheduled_for_deletion"
    ).fetchall()
    root = f"{str(location.data).rstrip('/')}/"
    known = {str(row[0]).removeprefix(root) for row in rows}
    return sorted(location.parquet_files().keys() - known)
