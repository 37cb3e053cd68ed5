"""Spectrum Discover's shape over the catalog's tables.

    metaocean          one row per file, the product's columns
    metaocean_view     the same plus every tag as a text column
    t_<tag>            fkey and value (text) of every tag
    confusion_cells    what models took for what; `frame` is the fkey (where scores were imported)

They lie in the schema BLUADMIN and follow the tags in the transaction that changes them. So does
tags_class_groups, which lies beside the tables: see catalog.lake.group_tags.
"""

import hashlib
from collections.abc import Sequence

import duckdb

from catalog.lake.connection import DISCOVER, LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.group_tags import class_groups, read_from, value_of, view_of
from catalog.lake.schema import (
    CLASS_PIXELS,
    CONFUSION_CELLS,
    FILES,
    FILES_COLUMNS,
    GROUP_TAGS,
    VIEW_COLUMNS,
)
from catalog.values import TagColumn


def tag_columns(cursor: Cursor, schema: str = "main") -> list[TagColumn]:
    """Every tag of every family, families in order of creation, as the cursor's snapshot has it.

    Those of GROUP_TAGS, which is no table, come last.

    Args:
        schema: Has the tables, as the cursor names it.
    """
    rows = cursor.execute(
        """
        SELECT column_name, table_name, data_type
        FROM duckdb_columns()
        WHERE database_name = 'lake' AND schema_name = 'main' AND column_name <> 'fkey'
          AND (table_name = ? OR table_name LIKE 'tags\\_%' ESCAPE '\\')
        ORDER BY table_name <> ?, table_name = ?, table_oid, column_index
        """,
        [CLASS_PIXELS, CLASS_PIXELS, GROUP_TAGS],
    ).fetchall()
    groups = class_groups(cursor, schema) if rows and rows[-1][1] == GROUP_TAGS else {}
    return [TagColumn(tag, table, kind, groups.get(tag, ())) for tag, table, kind in rows]


def view_columns(cursor: Cursor) -> dict[str, dict[str, str]]:
    """Columns and types of every view that a statement may name; all names in lower case."""
    rows = cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = ? AND schema_name = ? ORDER BY table_oid, column_index",
        [LAKE, DISCOVER],
    ).fetchall()
    schema: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        schema.setdefault(table.lower(), {})[column.lower()] = kind
    return schema


def create(
    connection: duckdb.DuckDBPyConnection,
    *,
    anew: bool = False,
    before: Sequence[TagColumn] = (),
) -> None:
    """Bring the views up to the tags, inside the caller's transaction.

    A tag's own view depends on its name and table only, and is made once: with 500 tags, making
    all of them again takes 0.22 s instead of 0.10 s, and keeps 500 more rows of metadata each time.

    Args:
        connection: Of WritableCatalog.writing.
        anew: Make every view anew, whatever there is.
        before: The tags before a table was altered in this transaction: until it is committed,
            DuckDB gives such a table another place among the others than readers will find.
    """
    _bring_up_groups(connection)
    tables = dict.fromkeys(tag.table for tag in before)
    positions = {table: position for position, table in enumerate(tables)}
    tags = sorted(
        tag_columns(connection),
        key=lambda tag: (tag.table == GROUP_TAGS, positions.get(tag.table, len(positions))),
    )
    present = set() if anew else _views(connection)
    views = definitions(tags, cells=has_cells(connection))
    for name, statement in views.items():
        if name not in present or name == _EVERYTHING:
            connection.execute(statement)
    connection.execute(f"COMMENT ON VIEW {LAKE}.{DISCOVER}.{_EVERYTHING} IS '{_definition()}'")


_EVERYTHING = "metaocean_view"


def _bring_up_groups(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring the view of class groups up to their definitions."""
    groups = class_groups(connection)
    connection.execute(
        view_of(groups) if groups else f"DROP VIEW IF EXISTS {LAKE}.main.{GROUP_TAGS}"
    )


def definitions(tags: Sequence[TagColumn], *, cells: bool, database: str = LAKE) -> dict[str, str]:
    """The statement that makes each view, by the view's name.

    Args:
        tags: Every tag, families in order of creation.
        cells: There is a table of confusion cells.
        database: Has the tables, and gets the views.
    """
    views = {"metaocean": _metaocean(database)}
    views |= {f"t_{tag.tag}": _of_tag(tag, database) for tag in tags}
    if cells:
        views[CONFUSION_CELLS] = (
            "SELECT model, fkey AS frame, truth, predicted, pixels "
            f"FROM {database}.main.{CONFUSION_CELLS}"
        )
    views[_EVERYTHING] = _wide(tags, database)
    return {
        name: f'CREATE OR REPLACE VIEW {database}.{DISCOVER}."{name}" AS {statement}'
        for name, statement in views.items()
    }


def are_former(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the views are those of a release that defined them otherwise."""
    row = connection.execute(
        "SELECT comment FROM duckdb_views() WHERE database_name = 'lake' "
        "AND schema_name = 'bluadmin' AND view_name = 'metaocean_view'"
    ).fetchone()
    return row is not None and row[0] != _definition()


def renew(connection: duckdb.DuckDBPyConnection) -> None:
    """Commit the views of this release, in place of another's."""
    connection.execute(f"USE {LAKE}.main")
    connection.execute("BEGIN TRANSACTION")
    create(connection, anew=True)
    connection.execute(f"CALL {LAKE}.set_commit_message('framesift', 'views of this release')")
    connection.execute("COMMIT")


def _definition() -> str:
    """A digest that tells this release's views from those that were defined otherwise."""
    texts = (_metaocean(), _of_tag(TagColumn("a", "b", "c")), _wide([TagColumn("a", "b", "c")]))
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _views(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Names of the views that there are."""
    rows = connection.execute(
        "SELECT view_name FROM duckdb_views() "
        "WHERE database_name = 'lake' AND schema_name = 'bluadmin'"
    ).fetchall()
    return {str(row[0]) for row in rows}


def has_cells(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether a catalog has a table of confusion cells."""
    return bool(
        connection.execute(
            "SELECT 1 FROM duckdb_columns() WHERE database_name = 'lake' AND schema_name = 'main' "
            "AND table_name = ? LIMIT 1",
            [CONFUSION_CELLS],
        ).fetchall()
    )


def _metaocean(database: str = LAKE) -> str:
    columns = ", ".join(f'"{name}"' for name in FILES_COLUMNS)
    return f"SELECT {columns} FROM {database}.main.{FILES}"


def _of_tag(tag: TagColumn, database: str = LAKE) -> str:
    return (
        f'SELECT fkey, CAST("{tag.tag}" AS VARCHAR) AS value '
        f'FROM {database}.main.{tag.table} WHERE "{tag.tag}" IS NOT NULL'
    )


def _wide(tags: Sequence[TagColumn], database: str = LAKE) -> str:
    """The statement behind metaocean_view."""
    columns = [
        f'f."{name}"' if name in FILES_COLUMNS else f'CAST(NULL AS VARCHAR) AS "{name}"'
        for name in VIEW_COLUMNS
    ]
    columns += [f'CAST({value_of(tag, read_from(tag))} AS VARCHAR) AS "{tag.tag}"' for tag in tags]
    joins = "".join(
        f" LEFT JOIN {database}.main.{table} ON {table}.fkey = f.fkey"
        for table in dict.fromkeys(map(read_from, tags))
    )
    return f"SELECT {', '.join(columns)} FROM {database}.main.{FILES} AS f{joins}"
