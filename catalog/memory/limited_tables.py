"""Limited databases beside a snapshot in memory: rows are marked once, and questions read marks.

A rule takes 0.4 s over the names of a million files, a mark 2 ms. The mark of some rows is a column
of both wide tables, a byte a row:

    0, null    not to be seen; null is a row that a refresh put in and nobody has marked yet
    1          to be seen
    2          to be seen, and so is the file that it names as its label
"""

from collections.abc import Callable
from contextlib import suppress

import duckdb

from catalog.errors import CollectionFails
from catalog.lake.connection import LAKE
from catalog.lake.layouts import ROW
from catalog.lake.limited_databases import (
    BARRIER,
    RULE_FAILS,
    LakeNames,
    attach,
    detach,
    make_views,
    of_visible,
)
from catalog.lake.schema import FILES
from catalog.lake.wide_names import LABEL_SIZE, ROW_NUMBER, TAGGED_FILES, UNTAGGED_FILES
from catalog.memory.wide_tables import Layout, table_views

_BOTH = (TAGGED_FILES, UNTAGGED_FILES)

_UNDECIDED = 3
"""Mark of a row that is to be seen, while its label is looked for."""

_STORED = "UTINYINT USING COMPRESSION uncompressed"
"""Compressed marks of every other row take half as long again to read."""

_LABEL = "cluster || ':' || datasource || ':' || label_file"


def make(
    connection: duckdb.DuckDBPyConnection,
    layout: Layout,
    names: LakeNames,
    name: str,
    condition: str,
) -> None:
    """Make a limited database; rows are marked in both tables.

    Args:
        connection: On the tables of wide_tables.load, which nothing else changes meanwhile.
        names: Those of the tables.
        condition: Which rows, over the columns of ROW.

    Raises:
        CollectionFails: The condition cannot be evaluated.
    """
    try:
        _mark(connection, name, condition)
        for database, barrier in ((name, BARRIER), (without_barrier(name), "")):
            attach(connection, database)
            _create_views(connection, layout, names, name, database, barrier)
    except BaseException as error:
        drop(connection, name)
        if isinstance(error, RULE_FAILS):
            raise CollectionFails from error
        raise


def compact(connection: duckdb.DuckDBPyConnection) -> bool:
    """Store the marks in a byte a row; False where a transaction is open that began before them.

    DuckDB writes a column into blocks of 256 KiB, two for each 122,880 rows; CHECKPOINT leaves of
    9.4 MB a rule 2 at 1,000,000 frames with their labels.
    """
    with suppress(duckdb.TransactionException):
        connection.execute(f"CHECKPOINT {LAKE}")
        return True
    return False


def drop(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drop a limited database, as far as it has been made, and its marks."""
    attached = connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()
    for database in (name, without_barrier(name)):
        if (database,) in attached:
            detach(connection, database)
    for table in _BOTH:
        connection.execute(f"ALTER TABLE {LAKE}.main.{table} DROP COLUMN IF EXISTS {name}")


def without_barrier(name: str) -> str:
    """Name of the database with the same rows for statements that fail for none."""
    return f"{name}_without_barrier"


def mark_new(connection: duckdb.DuckDBPyConnection, name: str, condition: str) -> None:
    """Mark the rows that a refresh put in, in the caller's lock."""
    new = f"{name} IS NULL"
    changed = [
        table
        for table in _BOTH
        if connection.execute(f"SELECT 1 FROM {LAKE}.main.{table} WHERE {new} LIMIT 1").fetchone()
    ]
    if not changed:
        return
    connection.execute("BEGIN TRANSACTION")  # undone with its cursor where something fails
    for table in changed:
        rows = f"{LAKE}.main.{table}"
        connection.execute(
            f"UPDATE {rows} AS {ROW} SET {name} = {_UNDECIDED} WHERE {new} AND ({condition})"
        )
        connection.execute(f"UPDATE {rows} SET {name} = 0 WHERE {new}")
    undecided = f"{name} = {_UNDECIDED}"
    connection.execute(
        f"UPDATE {LAKE}.main.{TAGGED_FILES} SET {name} = 2 WHERE {undecided} AND "
        f"{LABEL_SIZE} IS NOT NULL AND {_LABEL} IN ({_fkeys(lambda _: f'{name} > 0')})"
    )
    for table in changed:
        connection.execute(f"UPDATE {LAKE}.main.{table} SET {name} = 1 WHERE {undecided}")
    connection.execute("COMMIT")


def _mark(connection: duckdb.DuckDBPyConnection, name: str, condition: str) -> None:
    # The marks are computed into variables and written by ALTER: an UPDATE of all rows would keep
    # them beside the column, where reading them takes three times as long. The condition stands in
    # WHERE, where alone TRY holds (query.question.collection_rule).
    last = connection.execute(f"SELECT nextval('{LAKE}.main.{ROW_NUMBER}')").fetchone() or (0,)
    for table in _BOTH:
        rows = f"{LAKE}.main.{table}"
        connection.execute(
            f"SET VARIABLE {table} = (SELECT bitstring_agg({ROW_NUMBER}, 0, {last[0]}) "
            f"FROM {rows} AS {ROW} WHERE ({condition}))"
        )
    connection.execute(
        f"SET VARIABLE labels = (SELECT bitstring_agg({ROW_NUMBER}, 0, {last[0]}) "
        f"FROM {LAKE}.main.{TAGGED_FILES} WHERE {_is_in(TAGGED_FILES)} AND "
        f"{LABEL_SIZE} IS NOT NULL AND {_LABEL} IN ({_fkeys(_is_in)}))"
    )
    for table in _BOTH:
        mark = _bit(table) + (f" + {_bit('labels')}" if table == TAGGED_FILES else "")
        rows = f"{LAKE}.main.{table}"
        connection.execute(f"ALTER TABLE {rows} ADD COLUMN {name} {_STORED}")
        connection.execute(f"ALTER TABLE {rows} ALTER COLUMN {name} TYPE UTINYINT USING {mark}")


def _fkeys(visible: Callable[[str], str]) -> str:
    """A statement that gives the fkeys of files.

    Args:
        visible: The condition of those of a table.
    """
    return " UNION ALL ".join(
        f"SELECT fkey FROM {LAKE}.main.{table} WHERE {visible(table)}" for table in _BOTH
    )


def _bit(variable: str) -> str:
    return f"coalesce(get_bit(getvariable('{variable}'), {ROW_NUMBER}), 0)"


def _is_in(variable: str) -> str:
    return f"{_bit(variable)} = 1"


def _create_views(
    connection: duckdb.DuckDBPyConnection,
    layout: Layout,
    names: LakeNames,
    name: str,
    database: str,
    barrier: str,
) -> None:
    """Make the views of one database, of rows with the marks of that name."""
    label = f"CASE WHEN {name} = 2 THEN {LABEL_SIZE} END AS {LABEL_SIZE}"
    views = []
    for table, columns in layout.columns.items():
        of_rows = ", ".join(label if each == LABEL_SIZE else f'"{each}"' for each in columns)
        views.append(
            f"CREATE VIEW {database}.main.{table} AS SELECT {of_rows} FROM {LAKE}.main.{table} "
            f"WHERE {name} > 0 {barrier}"
        )
    views += table_views(layout, database, name, barrier)
    for table, has_fkey in names.tables:
        if table in layout.plain_tables:
            visible = of_visible(table, f"SELECT fkey FROM {database}.main.{FILES}")
            rows = visible if has_fkey else f'SELECT * FROM {LAKE}.main."{table}"'
            views.append(f'CREATE VIEW {database}.main."{table}" AS {rows}')
    make_views(connection, names, database, views)
