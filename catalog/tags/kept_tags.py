"""Tags that people gave to files that are gone: kept, until the file returns.

Counts come back by the next scan, and what extractors read by their next run; what was typed,
imported or set by a policy comes back from nowhere. The table `kept_tags` has a row for each value
of a file that left the catalog, as text: the tag may have another type by then, or be gone.
"""

from collections.abc import Collection, Iterable

import duckdb

from catalog.lake.connection import LAKE
from catalog.values import TagColumn

TABLE = "kept_tags"


def keep(connection: duckdb.DuckDBPyConnection, columns: Iterable[TagColumn], removed: str) -> None:
    """Keep the values of some files inside the caller's transaction, before their rows go.

    Args:
        connection: A writer's.
        columns: The tags whose values are kept.
        gone: Statement for the files' fkeys.
    """
    by_table: dict[str, list[str]] = {}
    for column in columns:
        by_table.setdefault(column.table, []).append(column.tag)
    if not by_table:
        return
    parts = []
    for table, tags in by_table.items():
        texts = ", ".join(f'CAST("{tag}" AS VARCHAR) AS "{tag}"' for tag in tags)
        names = ", ".join(f'"{tag}"' for tag in tags)
        parts.append(
            f"SELECT fkey, tag, value FROM (SELECT fkey, {texts} FROM {LAKE}.main.{table} "
            f"WHERE fkey IN ({removed})) UNPIVOT (value FOR tag IN ({names}))"
        )
    rows = " UNION ALL ".join(parts)
    if not connection.execute(f"SELECT 1 FROM ({rows}) LIMIT 1").fetchall():
        return
    if _has_table(connection):
        # A value that its tag did not take when the file returned stays, unless there is a newer.
        connection.execute(
            f"DELETE FROM {LAKE}.main.{TABLE} "
            f"WHERE (fkey, tag) IN (SELECT (fkey, tag) FROM ({rows}))"
        )
    else:
        connection.execute(
            f"CREATE TABLE {LAKE}.main.{TABLE} (fkey VARCHAR, tag VARCHAR, value VARCHAR)"
        )
    connection.execute(f"INSERT INTO {LAKE}.main.{TABLE} {rows}")


def tags_with_kept_values(connection: duckdb.DuckDBPyConnection, files: str) -> list[str]:
    """The tags of which a value of one of some files is kept.

    Args:
        connection: A writer's.
        files: Statement for the files' fkeys.
    """
    if not _has_table(connection):
        return []
    rows = connection.execute(
        f"SELECT DISTINCT tag FROM {LAKE}.main.{TABLE} WHERE fkey IN ({files}) ORDER BY tag"
    ).fetchall()
    return [str(row[0]) for row in rows]


def values_of(tags: Collection[str], files: str) -> str:
    """The statement for the kept values of some files: fkey, and a text column for each tag."""
    columns = ", ".join(f"max(value) FILTER (tag = '{tag}') AS \"{tag}\"" for tag in tags)
    listed = ", ".join(f"'{tag}'" for tag in tags)
    return (
        f"SELECT fkey, {columns} FROM {LAKE}.main.{TABLE} "
        f"WHERE fkey IN ({files}) AND tag IN ({listed}) GROUP BY fkey"
    )


def forget(
    connection: duckdb.DuckDBPyConnection, tags: Collection[str], files: str | None = None
) -> None:
    """Keep values of these tags no longer, of all files or of those of a statement."""
    if tags and _has_table(connection):
        only = "" if files is None else f" AND fkey IN ({files})"
        connection.execute(
            f"DELETE FROM {LAKE}.main.{TABLE} WHERE list_contains(?, tag){only}", [list(tags)]
        )


def _has_table(connection: duckdb.DuckDBPyConnection) -> bool:
    return bool(
        connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
            [LAKE, TABLE],
        ).fetchall()
    )
