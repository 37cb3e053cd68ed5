"""DuckLake's least and greatest value of each column of a table, put right where they are wrong.

To write files again without their deleted rows, DuckLake 1.5.5 computes them from those of the
files; where one file has only nulls in a column, it leaves those of the table unknown. Which is
right, but its next commit takes the unknown for a table without a value, and writes its own least
and greatest. Questions leave out files by these, and sort numbers in as few bits as they need:
files of 2^40 bytes had 256. So before a commit that follows such a rewrite they are computed again,
under the write lock.
"""

import duckdb

from catalog.lake.connection import METADATA

_COMPARED_AS = {
    "HUGEINT": ("int8", "int16", "int32", "int64", "int128", "uint8", "uint16", "uint32", "uint64"),
    "DOUBLE": ("float32", "float64"),
    "TIMESTAMP": ("date", "timestamp"),
    "VARCHAR": ("varchar", "boolean"),
}
"""DuckLake keeps them as texts; what they are compared as, by the column's type."""


def may_be_unknown(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the newest commit is one that may have left them unknown.

    Args:
        connection: A Lake's, outside of a transaction.
    """
    row = connection.execute(
        f"SELECT changes_made FROM {METADATA}.ducklake_snapshot_changes "
        "ORDER BY snapshot_id DESC LIMIT 1"
    ).fetchone()
    return row is not None and "rewrite_delete" in str(row[0])


def restore(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute those that leave out values of files that are there.

    The connection is to be opened again afterwards: it may have kept what it read before.

    Args:
        connection: A Lake's that may write, outside of a transaction and under the write lock.
    """
    for table, column, least, greatest in wrong_columns(connection):
        connection.execute(
            f"UPDATE {METADATA}.ducklake_table_column_stats SET min_value = ?, max_value = ? "
            "WHERE table_id = ? AND column_id = ?",
            [least, greatest, table, column],
        )


def wrong_columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[int, int, str, str]]:
    """Columns of which a file has a value outside of what the table's statistics say.

    Args:
        connection: That reads DuckLake's own tables.

    Returns:
        Number of the table and of the column, least and greatest value of all its files.
    """
    wrong = []
    for kind, types in _COMPARED_AS.items():
        wrong += connection.execute(
            f"""
            SELECT t.table_id, t.column_id, least, greatest
            FROM {METADATA}.ducklake_table_column_stats AS t JOIN (
                SELECT f.table_id, f.column_id,
                    arg_min(f.min_value, f.min_value::{kind}) AS least,
                    arg_max(f.max_value, f.max_value::{kind}) AS greatest
                FROM {METADATA}.ducklake_file_column_stats AS f
                JOIN {METADATA}.ducklake_data_file AS d USING (data_file_id)
                JOIN {METADATA}.ducklake_column AS c
                    ON c.table_id = f.table_id AND c.column_id = f.column_id
                WHERE d.end_snapshot IS NULL AND c.end_snapshot IS NULL
                    AND c.column_type IN ({", ".join(f"'{name}'" for name in types)})
                    AND f.min_value IS NOT NULL AND f.max_value IS NOT NULL
                GROUP BY ALL
            ) AS files ON files.table_id = t.table_id AND files.column_id = t.column_id
            WHERE t.min_value IS NULL OR t.max_value IS NULL
                OR t.min_value::{kind} > least::{kind} OR t.max_value::{kind} < greatest::{kind}
            """
        ).fetchall()
    return wrong
