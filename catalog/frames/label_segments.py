"""The segments of panoptic labels as scans counted them: a table that the first such label makes.

    label_segments     fkey of the label; segments, a text (ingest.labels.segments)

No question asks it, and what is decoded of a frame later is decoded by the segments of its
snapshot, whatever the source's JSON files say by then.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import duckdb

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import LABEL_SEGMENTS


def put(connection: duckdb.DuckDBPyConnection, segments: Mapping[str, str]) -> None:
    """Keep the segments of labels that have none, inside the caller's transaction.

    Args:
        segments: By fkey.
    """
    import pyarrow as pa

    if not segments:
        return
    if not _has_table(connection):
        connection.execute(
            f"CREATE TABLE {LAKE}.main.{LABEL_SEGMENTS} (fkey VARCHAR, segments VARCHAR)"
        )
    rows = pa.table({"fkey": [*segments], "segments": [*segments.values()]})
    connection.register("new_segments", rows)
    connection.execute(
        f"INSERT INTO {LAKE}.main.{LABEL_SEGMENTS} BY NAME SELECT * FROM new_segments"
    )
    connection.unregister("new_segments")


def forget(connection: duckdb.DuckDBPyConnection, fkeys: str) -> None:
    """Remove the segments of labels inside the caller's transaction.

    Args:
        fkeys: The statement for the fkeys of files.
    """
    # Without the table this fails in 0.3 ms of CPU; to ask whether there is one takes 3.
    with suppress(duckdb.CatalogException):
        connection.execute(f"DELETE FROM {LAKE}.main.{LABEL_SEGMENTS} WHERE fkey IN ({fkeys})")


def segments_of(cursor: Cursor, fkeys: Sequence[str]) -> dict[str, str]:
    """The segments of labels that have some, by fkey.

    Args:
        cursor: Of Catalog.reading_files: memory has them not.
    """
    if not fkeys or not _has_table(cursor):
        return {}
    # Bounds as well: Parquet's statistics leave most of a large catalog unread.
    rows = cursor.execute(
        f"SELECT fkey, segments FROM main.{LABEL_SEGMENTS} "
        "WHERE fkey BETWEEN ? AND ? AND fkey IN (SELECT unnest(?))",
        [min(fkeys), max(fkeys), [*fkeys]],
    ).fetchall()
    return dict(rows)


def _has_table(cursor: Cursor) -> bool:
    # Of duckdb_columns: a catalog limited to some rows has views in place of tables.
    return bool(
        cursor.execute(
            "SELECT 1 FROM duckdb_columns() WHERE database_name = ? AND schema_name = 'main' "
            "AND table_name = ? LIMIT 1",
            [LAKE, LABEL_SEGMENTS],
        ).fetchall()
    )
