"""The types that texts fit, and texts that become another type when their file is mended.

A tag of `1`, `2` and `N/A` is a text. A comment on its column says that nobody asked for a text:
once no value hinders it, an import makes it a number.
"""

from collections.abc import Sequence

import duckdb

from catalog.lake import views as discover_views
from catalog.lake.connection import DISCOVER, LAKE
from catalog.lake.cursor import Cursor
from catalog.tags import tag_kinds
from catalog.tags.as_type import text_as
from catalog.tags.families import put_rows, table_of

_WHOLE = "regexp_full_match({0}, '[+-]?(0|[1-9][0-9]*)')"

FITS = {
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
    "INTEGER": _WHOLE + " AND TRY_CAST({0} AS INTEGER) NOTNULL",
    "BIGINT": _WHOLE + " AND TRY_CAST({0} AS BIGINT) NOTNULL",
    "DOUBLE": (
        r"regexp_full_match({0}, '[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?')"
        " AND isfinite(TRY_CAST({0} AS DOUBLE))"
    ),
    # Not AND: that would look for a zone in every text.
    "TIMESTAMP": (
        "CASE WHEN regexp_full_match({0}, '[0-9]{4}-[0-9]{2}-[0-9]{2}.*')"
        f" THEN ({text_as('{0}', 'TIMESTAMP')}) NOTNULL ELSE false END"
    ),
}
"""SQL condition for each type, narrowest first: true where a text is a value of it. A number with
leading zeros is a text, such as a code."""

_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE")
_COMMENT = "text because of single values"


def fits(text: str, kind: str) -> str:
    """The condition for a text that is a value of a type, false where it is NULL.

    Args:
        text: Expression of type VARCHAR.
        kind: A key of FITS.
    """
    return f"coalesce({FITS[kind].replace('{0}', text)}, false)"


def inferred_texts(cursor: Cursor, family: str) -> set[str]:
    """The tags of a family that are texts because of single values, and of no kind of their own.

    Args:
        cursor: Of WritableCatalog.inspecting or writing: a snapshot in memory has no comments.
    """
    rows = cursor.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND "
        "schema_name = 'main' AND table_name = ? AND comment = ?",
        [LAKE, table_of(family), _COMMENT],
    ).fetchall()
    return {str(tag) for (tag,) in rows} - set(tag_kinds.kinds(cursor))


def note_text(
    connection: duckdb.DuckDBPyConnection, family: str, tag: str, *, is_asked: bool
) -> None:
    """Note inside the caller's transaction whether a tag's type was asked for."""
    comment = "NULL" if is_asked else f"'{_COMMENT}'"
    connection.execute(f'COMMENT ON COLUMN {LAKE}.main.{table_of(family)}."{tag}" IS {comment}')


def wider(kind: str) -> Sequence[str]:
    """A type, and those that hold its values, too."""
    return _NUMBERS[_NUMBERS.index(kind) :] if kind in _NUMBERS else (kind,)


def misfit(
    connection: duckdb.DuckDBPyConnection, family: str, tag: str, kind: str, replaced: str
) -> tuple[str, str] | None:
    """A value of a text tag that a type does not hold, and its fkey; None where there is none.

    Args:
        connection: A writer's.
        tag: One of inferred_texts.
        replaced: Statement for fkeys whose values do not count.
    """
    text = f'"{tag}"'
    row = connection.execute(
        f"SELECT {text}, fkey FROM {LAKE}.main.{table_of(family)} WHERE {text} NOTNULL "
        f"AND fkey NOT IN ({replaced}) AND NOT {fits(text, kind)} ORDER BY fkey LIMIT 1"
    ).fetchone()
    return row and (str(row[0]), str(row[1]))


def change_type(
    connection: duckdb.DuckDBPyConnection, family: str, tag: str, kind: str, replaced: str
) -> None:
    """Give a text tag another type inside the caller's transaction.

    Args:
        connection: A writer's.
        tag: One of inferred_texts, without a `misfit`.
    """
    table, text = f"{LAKE}.main.{table_of(family)}", f'"{tag}"'
    rows = connection.execute(
        f"SELECT fkey, {text_as(text, kind)} AS {text} FROM {table} "
        f"WHERE {text} NOTNULL AND fkey NOT IN ({replaced})"
    ).to_arrow_table()
    before = discover_views.tag_columns(connection)
    connection.execute(f'DROP VIEW {LAKE}.{DISCOVER}."t_{tag}"')
    # DuckLake changes a column's type in place for wider numbers only.
    connection.execute(f"ALTER TABLE {table} DROP COLUMN {text}")
    connection.execute(f"ALTER TABLE {table} ADD COLUMN {text} {kind}")
    discover_views.create(connection, before=before)
    put_rows(connection, family, rows)
