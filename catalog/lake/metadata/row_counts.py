"""Rows of a table in each snapshot, from what DuckLake wrote down of its files.

A data file has its rows, less those of the delete file that is in force, from the snapshot that
wrote it to the one that took it away. Files are opened only where that is not enough: those that
compaction merged from several snapshots say in a column which rows are of which, and where a file
has nulls, its deleted rows are looked at.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.lake.connection import LAKE, METADATA
from catalog.lake.cursor import Cursor
from catalog.text.quoting import literal

_OF_SNAPSHOT = "_ducklake_internal_snapshot_id"
_ALWAYS = 2**62


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    place: str
    begin: int
    end: int
    rows: int
    partial: bool


@dataclass(frozen=True, slots=True)
class _DataFile:
    """A data file, with those of its rows that have no value in the column."""

    place: str
    begin: int
    end: int
    rows: int
    nulls: int
    partial: bool
    deletes: list[_DeleteFile]


def rows_of_snapshots(
    cursor: Cursor, table: str, column: str, numbers: Sequence[int]
) -> dict[int, int]:
    """How many rows of a table have a value in a column, by number of the snapshot.

    Args:
        cursor: Of WritableCatalog.inspecting.
        numbers: Those of snapshots that there are.
    """
    changes: Counter[int] = Counter()
    for file in _files(cursor, table, column):
        for since, rows in _inserted(cursor, file, column):
            changes[since] += rows
            changes[file.end] -= rows
        for delete, since, rows in _deleted(cursor, file, column):
            changes[since] -= rows
            changes[min(delete.end, file.end)] += rows
    counts, rows, due = {}, 0, sorted(changes, reverse=True)
    for number in sorted(numbers):
        while due and due[-1] <= number:
            rows += changes[due.pop()]
        counts[number] = rows
    return counts


def _files(cursor: Cursor, table: str, column: str) -> list[_DataFile]:
    """Every data file of the table, in any snapshot."""
    (root,) = cursor.execute(f"SELECT data_path FROM ducklake_settings('{LAKE}')").fetchone() or ()
    path_sql = (
        f"CASE WHEN {{file}}.path_is_relative THEN {literal(root)} || s.path || t.path || "
        "{file}.path ELSE {file}.path END"
    )
    rows = cursor.execute(
        f"""
        WITH t AS (
            SELECT table_id, any_value(schema_id) AS schema_id, any_value(path) AS path,
                max(coalesce(end_snapshot, {_ALWAYS})) AS ends
            FROM {METADATA}.ducklake_table WHERE table_name = ? GROUP BY table_id
        ), s AS (SELECT DISTINCT schema_id, path FROM {METADATA}.ducklake_schema),
        columns AS (
            SELECT DISTINCT table_id, column_id FROM {METADATA}.ducklake_column
            WHERE column_name = ?
        ), nulls AS (
            SELECT data_file_id, null_count
            FROM {METADATA}.ducklake_file_column_stats SEMI JOIN columns USING (table_id, column_id)
        )
        SELECT f.data_file_id, {path_sql.format(file="f")}, f.begin_snapshot,
            least(coalesce(f.end_snapshot, {_ALWAYS}), t.ends), f.record_count,
            coalesce(nulls.null_count, 0), f.partial_max IS NOT NULL,
            {path_sql.format(file="d")}, d.begin_snapshot, coalesce(d.end_snapshot, {_ALWAYS}),
            d.delete_count, d.partial_max IS NOT NULL
        FROM {METADATA}.ducklake_data_file AS f JOIN t USING (table_id)
        JOIN s ON s.schema_id = t.schema_id
        LEFT JOIN nulls ON nulls.data_file_id = f.data_file_id
        LEFT JOIN {METADATA}.ducklake_delete_file AS d ON d.data_file_id = f.data_file_id
        ORDER BY f.data_file_id, d.begin_snapshot
        """,
        [table, column],
    ).fetchall()
    files: dict[int, _DataFile] = {}
    for number, path, begin, end, count, nulls, partial, *delete in rows:
        file = files.setdefault(number, _DataFile(path, begin, end, count, nulls, partial, []))
        if delete[0] is not None:
            file.deletes.append(_DeleteFile(*delete))
    return [*files.values()]


def _inserted(cursor: Cursor, file: _DataFile, column: str) -> list[tuple[int, int]]:
    """From which snapshot on how many of the file's rows are there, had none been deleted."""
    if not file.partial:
        return [(file.begin, file.rows - file.nulls)]
    return cursor.execute(
        f'SELECT {_OF_SNAPSHOT}, count("{column}") FROM read_parquet({literal(file.place)}) '
        "GROUP BY ALL"
    ).fetchall()


def _deleted(cursor: Cursor, file: _DataFile, column: str) -> list[tuple[_DeleteFile, int, int]]:
    """From which snapshot on how many of the file's rows each of its delete files takes away."""
    if file.nulls == file.rows:
        return []
    if not file.nulls and not any(delete.partial for delete in file.deletes):
        return [(delete, delete.begin, delete.rows) for delete in file.deletes]
    if not file.deletes:
        return []
    by_place = {delete.place: delete for delete in file.deletes}
    paths = ", ".join(map(literal, by_place))
    of_snapshot = _OF_SNAPSHOT if any(delete.partial for delete in file.deletes) else "NULL"
    rows = cursor.execute(
        f"""
        WITH valued AS (
            SELECT file_row_number AS pos
            FROM read_parquet({literal(file.place)}, file_row_number => true)
            WHERE "{column}" IS NOT NULL
        )
        SELECT filename, {of_snapshot}, count(*)
        FROM read_parquet([{paths}], filename => true, union_by_name => true)
        SEMI JOIN valued USING (pos) GROUP BY ALL
        """
    ).fetchall()
    return [
        (by_place[path], by_place[path].begin if since is None else since, count)
        for path, since, count in rows
    ]
