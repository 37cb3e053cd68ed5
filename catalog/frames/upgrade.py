"""Catalogs of earlier formats and releases brought to this one, in one commit.

    1 -> 2   frames without a label, frames of several trees, digests (docs/decisions/0026)

Snapshots of before stay as they are.
"""

import duckdb

from catalog.errors import InvalidInput
from catalog.frames import frame_trees
from catalog.lake import views as discover_views
from catalog.lake.connection import LAKE
from catalog.lake.schema import (
    FILE_DIGESTS,
    FILE_DIGESTS_COLUMNS,
    FORMAT,
    FRAME_TAGS,
)

OLDEST = 1
"""The earliest format that is brought up."""


def make_tables_of_scans(connection: duckdb.DuckDBPyConnection) -> None:
    """Make frame_trees and file_digests, in the caller's transaction."""
    frame_trees.create(connection)
    columns = ", ".join(f"{name} {kind}" for name, kind in FILE_DIGESTS_COLUMNS.items())
    connection.execute(f"CREATE TABLE {FILE_DIGESTS} ({columns})")


def upgrade(connection: duckdb.DuckDBPyConnection) -> None:
    """Bring a catalog of format 1 to format 2, in the caller's transaction.

    Raises:
        InvalidInput: It has a tag of its own that format 2 makes.
    """
    before = discover_views.tag_columns(connection)
    for tag in before:
        if tag.tag == "labelled":
            raise InvalidInput(
                "the catalog has a tag 'labelled' of its own, which this version gives to every "
                "frame; drop it with the release that made it, framesift tags drop labelled, and "
                "import its values under another name"
            )
    connection.execute(f"ALTER TABLE {FRAME_TAGS} ADD COLUMN labelled TINYINT DEFAULT 1")
    make_tables_of_scans(connection)
    discover_views.create(connection, before=before)
    connection.execute("UPDATE catalog_format SET version = ?", [FORMAT])


def renew_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Commit the views of this release, in place of another's."""
    connection.execute(f"USE {LAKE}.main")
    connection.execute("BEGIN TRANSACTION")
    discover_views.create(connection, anew=True)
    connection.execute(f"CALL {LAKE}.set_commit_message('framesift', 'views of this release')")
    connection.execute("COMMIT")
