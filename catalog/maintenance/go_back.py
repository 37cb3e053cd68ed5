"""The way back to an older snapshot, where files of the newest are lost.

Its tables are written again as a new snapshot, so that no number names two states and nothing of
the lost files is read. It works where the catalog itself cannot be opened.
"""

import duckdb

from catalog.errors import InvalidInput, NotFound
from catalog.lake import views as discover_views
from catalog.lake.connection import (
    LAKE,
    Lake,
    translated,
)
from catalog.lake.metadata.own_tables import commits, newest_snapshot
from catalog.storage.location import WRITE_LOCK, CatalogLocation
from catalog.storage.new_data_files import NewDataFiles
from catalog.text.quoting import quoted

_OLD = "old_lake"


def go_back(location: CatalogLocation, number: int, lock_wait_s: float = 60.0) -> int:
    """Commit an older snapshot's tables and views as the newest; the new snapshot's number.

    Args:
        number: The snapshot to go back to; it and those after it stay, too.
    """
    with location.lock(WRITE_LOCK, lock_wait_s, "the catalog goes back") as still_held:
        with translated(location):
            lake = Lake(location, {}, read_only=False)
        try:
            with translated(location):
                _check(lake.connection, number)
                new_files = NewDataFiles(location.data)
                lake.attach(read_only=True, at=number, name=_OLD)
                _write_again(lake.connection)
                lake.connection.execute(
                    f"CALL {LAKE}.set_commit_message('restore', ?)", [f"back to snapshot {number}"]
                )
            new_files.to_disk()
            still_held()
            with translated(location, committing=True):
                lake.connection.execute("COMMIT")
            with translated(location):
                return newest_snapshot(lake.connection)
        finally:
            lake.close()


def _check(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    there = [commit.number for commit in commits(connection)]
    if number not in there:
        raise NotFound(
            "snapshot",
            str(number),
            f"there are {there[-1]} to {there[0]}, and not all of them: framesift catalog log",
        )
    if number == there[0]:
        raise InvalidInput(f"snapshot {number} is the newest: there is nothing to go back from")


def _write_again(connection: duckdb.DuckDBPyConnection) -> None:
    """Put the old snapshot's tables in place of the newest's, in a transaction that stays open."""
    connection.execute(f"USE {LAKE}.main")
    connection.execute("BEGIN TRANSACTION")
    for schema, view in connection.execute(
        "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = ?", [LAKE]
    ).fetchall():
        connection.execute(f'DROP VIEW {LAKE}.{schema}."{view}"')
    for table in _tables(connection, LAKE):
        connection.execute(f'DROP TABLE {LAKE}.main."{table}"')
    for table in _tables(connection, _OLD):
        columns = connection.execute(
            "SELECT column_name, data_type, is_nullable FROM duckdb_columns() "
            "WHERE database_name = ? AND schema_name = 'main' AND table_name = ? "
            "ORDER BY column_index",
            [_OLD, table],
        ).fetchall()
        body = ", ".join(
            f'"{name}" {kind}{"" if nullable else " NOT NULL"}' for name, kind, nullable in columns
        )
        connection.execute(f'CREATE TABLE {LAKE}.main."{table}" ({body})')
        connection.execute(
            f'INSERT INTO {LAKE}.main."{table}" BY NAME SELECT * FROM {_OLD}.main."{table}"'
        )
    discover_views.create(connection, anew=True)


def _tables(connection: duckdb.DuckDBPyConnection, database: str) -> list[str]:
    """Names of the lake's tables, in order of creation, by which the views are made."""
    rows = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' "
        f"AND database_name = '{quoted(database)}' ORDER BY table_oid"
    ).fetchall()
    return [str(row[0]) for row in rows]
