"""Bring a snapshot laid out in memory up to a later one: only what was written in between is read.

The files of which a row was written or deleted, in `files` or in a family, are taken out of the two
wide tables and put in as they are now, in one transaction. Who reads the earlier snapshot meanwhile
goes on reading it.
"""

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.connection import LAKE
from catalog.lake.metadata.own_tables import RowChanges, changed_fkeys, written_since
from catalog.lake.schema import FILES, NOT_IN_MEMORY
from catalog.lake.wide_names import EVERY_FILE, TAGGED_FILES
from catalog.memory.wide_tables import MOST_VALUES, Layout, enum_type

_CHANGED = "changed_files"
"""Temporary table on both sides: the fkeys of files that are put in again."""

_IS_CHANGED = f"fkey IN (FROM temp.{_CHANGED})"


class ReloadNeeded(Exception):
    """The later snapshot has to be loaded as a whole; the text says why."""


def refresh(
    source: duckdb.DuckDBPyConnection,
    target: duckdb.DuckDBPyConnection,
    layout: Layout,
    before: int,
    until: int,
    most: int,
) -> int:
    """Exchange what commits wrote; where it fails, the transaction on ``target`` is to be undone.

    Args:
        source: A cursor of WritableCatalog.inspecting that reads snapshot ``until``.
        target: A cursor on the tables of wide_tables.load, in a transaction.
        before: The snapshot that ``target`` has.
        most: Files that may be exchanged.

    Returns:
        How many files were taken out or put in.

    Raises:
        ReloadNeeded: Other things than rows changed, or too many rows.
        duckdb.OutOfMemoryException: It does not fit into the target's memory limit.
    """
    written = written_since(source, before)
    if until < before:
        raise ReloadNeeded(f"the catalog went back to snapshot {until}")
    if written is None or Layout.of(source) != layout:
        raise ReloadNeeded("the catalog's tables are others")
    changed = _changed(source, target, layout, written)
    if changed > most:
        raise ReloadNeeded(f"{changed:,} files changed")
    for table in set(written.tables) & set(layout.plain_tables):
        rows = source.execute(f'SELECT * FROM {LAKE}.main."{table}"').to_arrow_table()
        target.execute(f'DELETE FROM {LAKE}.main."{table}"')
        _put(target, table, rows)
    for table, rows in layout.divided(
        source.execute(layout.every_row(_IS_CHANGED)).to_arrow_table()
    ).items():
        if table == TAGGED_FILES:
            _extend_enums(target, rows)
        target.execute(f"DELETE FROM {LAKE}.main.{table} WHERE {_IS_CHANGED}")
        _put(target, table, rows)
    _compare(source, target, layout)
    return changed


def _changed(
    source: duckdb.DuckDBPyConnection,
    target: duckdb.DuckDBPyConnection,
    layout: Layout,
    written: RowChanges,
) -> int:
    """Note the fkeys of changed files on both sides; how many there are."""
    of_files = [
        table for table in written.tables if table not in (*layout.plain_tables, *NOT_IN_MEMORY)
    ]
    statements = [changed_fkeys(table, written.spans) for table in of_files]
    none = "SELECT NULL::VARCHAR AS fkey WHERE false"
    changes = source.execute(" UNION ".join([none, *statements])).to_arrow_table()
    _note(target, changes)
    if FILES in written.tables:
        # A frame's row in memory has the size of its label, which is another file.
        frames = target.execute(
            f"SELECT fkey FROM {LAKE}.main.{EVERY_FILE} WHERE label_file IS NOT NULL AND "
            f"cluster || ':' || datasource || ':' || label_file IN (FROM temp.{_CHANGED}) "
            f"UNION FROM temp.{_CHANGED}"
        ).to_arrow_table()
        _note(target, frames)
        changes = frames
    _note(source, changes)
    return int(changes.num_rows)


def _note(cursor: duckdb.DuckDBPyConnection, fkeys: pa.Table) -> None:
    cursor.register("incoming", fkeys)
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE {_CHANGED} AS SELECT fkey FROM incoming")
    cursor.unregister("incoming")


def _put(target: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    target.register("incoming", rows)
    target.execute(f'INSERT INTO {LAKE}.main."{table}" BY NAME SELECT * FROM incoming')
    target.unregister("incoming")


def _extend_enums(target: duckdb.DuckDBPyConnection, rows: pa.Table) -> None:
    """Let the text tags of few values have those of new rows, too."""
    enums = target.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND table_name = ? "
        "AND starts_with(data_type, 'ENUM')",
        [LAKE, TAGGED_FILES],
    ).fetchall()
    for (tag,) in enums:
        (known,) = target.execute(
            f'SELECT enum_range((SELECT "{tag}" FROM {LAKE}.main.{TAGGED_FILES} LIMIT 1))'
        ).fetchone() or ([],)
        values = set(pc.unique(rows[tag]).to_pylist()) - {None} | set(known)
        if len(values) > 2 * MOST_VALUES:  # a load counts approximately
            raise ReloadNeeded(f"{tag} has {len(values):,} values")
        if len(values) > len(known):
            target.execute(
                f'ALTER TABLE {LAKE}.main.{TAGGED_FILES} ALTER COLUMN "{tag}" '
                f"TYPE {enum_type(sorted(values))}"
            )


def _compare(
    source: duckdb.DuckDBPyConnection, target: duckdb.DuckDBPyConnection, layout: Layout
) -> None:
    """Make sure that no row stayed, and no file is missing.

    Of a family the catalog may have rows of files that it does not have: those are not laid out.
    """
    counts = " UNION ALL ".join(
        f"SELECT '{table}', count(*) FROM {LAKE}.main.{table}"
        for table in (FILES, *layout.families)
    )
    here, there = (dict(side.execute(counts).fetchall()) for side in (target, source))
    if here[FILES] != there[FILES] or any(here[table] > there[table] for table in here):
        raise ReloadNeeded(f"rows {here} where the catalog has {there}")
