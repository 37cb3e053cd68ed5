"""Spectrum Discover's kinds of tags: how long a value may be, and which values there may be.

    Open              free text of at most 256 characters
    Restricted        one of the values listed, of at most 256 characters
    Characteristics   free text of at most 4,096 characters; what a tag is that nobody defined

Kept in the table `tag_kinds` of the catalog itself, so that a write is held to it in its own
transaction, and an old snapshot has the kinds of its time.
"""

from collections.abc import Collection, Mapping, Sequence

import duckdb

from catalog.errors import InvalidInput
from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.records.expected_version import version_of
from catalog.tags.tag_rules import DEFAULT, LONGEST, TagKind
from catalog.values import TagColumn

TABLE = "tag_kinds"


def kinds(cursor: Cursor) -> dict[str, TagKind]:
    """The kinds of the tags that have been given one, as the cursor's snapshot has them."""
    if not _has_table(cursor):
        return {}
    rows = cursor.execute(f"SELECT tag, kind, allowed FROM main.{TABLE}").fetchall()
    return {tag: TagKind(kind, tuple(allowed)) for tag, kind, allowed in rows}


def tag_version(column: TagColumn, kind: TagKind, classes: Sequence[str] = ()) -> str:
    """The version of a tag: of its type, its place and its kind, and not of files' values.

    Args:
        classes: Those of a class group.
    """
    return version_of([column.table, column.type, kind.kind, list(kind.allowed), *classes])


def put(connection: duckdb.DuckDBPyConnection, tag: str, kind: TagKind) -> None:
    """Give a tag a kind inside the caller's transaction."""
    if not _has_table(connection):
        connection.execute(
            f"CREATE TABLE {LAKE}.main.{TABLE} (tag VARCHAR, kind VARCHAR, allowed VARCHAR[])"
        )
    forget(connection, [tag])
    connection.execute(
        f"INSERT INTO {LAKE}.main.{TABLE} VALUES (?, ?, ?)", [tag, kind.kind, list(kind.allowed)]
    )


def forget(connection: duckdb.DuckDBPyConnection, tags: Collection[str]) -> None:
    """Let tags have no kind of their own any more, inside the caller's transaction."""
    if _has_table(connection):
        connection.execute(
            f"DELETE FROM {LAKE}.main.{TABLE} WHERE list_contains(?, tag)", [list(tags)]
        )


def check_values(
    connection: duckdb.DuckDBPyConnection,
    rows: str,
    types: Mapping[str, str],
    of: Mapping[str, TagKind] | None = None,
) -> None:
    """Refuse values that their tag's kind does not allow.

    Args:
        connection: A writer's.
        rows: Table or view with a column per tag.
        types: The tags to look at, and the type of each.
        of: Kinds to hold them to; those of the catalog when None.

    Raises:
        InvalidInput: A value is refused; the message says which, why, and how many there are.
    """
    known = kinds(connection) if of is None else of
    for tag, type_name in types.items():
        kind = known.get(tag, DEFAULT)
        if type_name != "VARCHAR" and kind.kind != "Restricted":
            continue  # no number or time is that long
        text = f'CAST("{tag}" AS VARCHAR)'
        wrong = f"length({text}) > {LONGEST[kind.kind]}"
        values: list[object] = []
        if kind.kind == "Restricted":
            wrong += f" OR NOT list_contains(?, {text})"
            values.append(list(kind.allowed))
        row = connection.execute(
            f"SELECT count(*), any_value({text}) FROM {rows} WHERE {wrong}", values
        ).fetchone()
        count, example = row or (0, "")
        if count:
            raise InvalidInput(
                f"tag '{tag}': value '{example[:80]}' {kind.refusal(example)}; "
                f"{count:,} of the rows have such a value, and none was written"
            )


def _has_table(cursor: Cursor) -> bool:
    row = cursor.execute(
        # duckdb_tables() does not know the views that a limited catalog has in place of tables.
        "SELECT count(*) FROM duckdb_columns() WHERE database_name = ? AND table_name = ?",
        [LAKE, TABLE],
    ).fetchone()
    return bool(row and row[0])
