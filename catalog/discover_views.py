"""Spectrum Discover's shape over the catalog's tables.

    metaocean          one row per file, the product's columns
    metaocean_view     the same plus every tag as a text column
    t_<tag>            fkey and value (text) of every tag

They lie in the schema BLUADMIN and are remade in the transaction that changes the tags.
"""

import duckdb

from catalog.lake_tables import CLASS_PIXELS, FILES, FILES_COLUMNS, VIEW_COLUMNS
from catalog.records import TagColumn


def tag_columns(cursor: duckdb.DuckDBPyConnection) -> list[TagColumn]:
    """Every tag of every family, families in order of creation, as the cursor's snapshot has it."""
    rows = cursor.execute(
        """
        SELECT column_name, table_name, data_type
        FROM duckdb_columns()
        WHERE database_name = 'lake' AND schema_name = 'main' AND column_name <> 'fkey'
          AND (table_name = ? OR table_name LIKE 'tags\\_%' ESCAPE '\\')
        ORDER BY table_name <> ?, table_oid, column_index
        """,
        [CLASS_PIXELS, CLASS_PIXELS],
    ).fetchall()
    return [TagColumn(tag, table, kind) for tag, table, kind in rows]


def create(connection: duckdb.DuckDBPyConnection) -> None:
    """Make or remake every view inside the caller's transaction."""
    tags = tag_columns(connection)
    columns = ", ".join(f'"{name}"' for name in FILES_COLUMNS)
    _view(connection, "metaocean", f"SELECT {columns} FROM lake.main.{FILES}")
    for tag in tags:
        _view(
            connection,
            f"t_{tag.tag}",
            f'SELECT fkey, CAST("{tag.tag}" AS VARCHAR) AS value '
            f'FROM lake.main.{tag.table} WHERE "{tag.tag}" IS NOT NULL',
        )
    _view(connection, "metaocean_view", _wide(tags))


def _wide(tags: list[TagColumn]) -> str:
    """The statement behind metaocean_view."""
    columns = [
        f'f."{name}"' if name in FILES_COLUMNS else f"CAST('' AS VARCHAR) AS \"{name}\""
        for name in VIEW_COLUMNS
    ]
    columns += [f'CAST({tag.table}."{tag.tag}" AS VARCHAR) AS "{tag.tag}"' for tag in tags]
    joins = "".join(
        f" LEFT JOIN lake.main.{table} ON {table}.fkey = f.fkey"
        for table in dict.fromkeys(tag.table for tag in tags)
    )
    return f"SELECT {', '.join(columns)} FROM lake.main.{FILES} AS f{joins}"


def _view(connection: duckdb.DuckDBPyConnection, name: str, statement: str) -> None:
    connection.execute(f'CREATE OR REPLACE VIEW lake.bluadmin."{name}" AS {statement}')
