"""A new catalog: its empty tables and their views, in one commit."""

from dataclasses import replace
from pathlib import Path

import duckdb

from catalog.errors import CatalogDamaged
from catalog.frames import frame_trees
from catalog.lake import views as discover_views
from catalog.lake.connection import DISCOVER, LAKE, Lake, translated
from catalog.lake.metadata.own_tables import choose_row_groups
from catalog.lake.schema import (
    CLASS_PIXELS,
    CLASS_PIXELS_COLUMNS,
    FILE_DIGESTS,
    FILE_DIGESTS_COLUMNS,
    FILES,
    FILES_COLUMNS,
    FORMAT,
    FRAME_TAGS,
    FRAME_TAGS_COLUMNS,
    INTERNAL_FILES_COLUMNS,
)
from catalog.storage.location import CatalogLocation
from catalog.storage.new_data_files import NewDataFiles
from catalog.storage.to_disk import to_disk


def make_catalog(location: CatalogLocation, limits: dict[str, str]) -> None:
    """Make the catalog, whose write lock the caller holds; a metadata file aside, then renamed.

    Raises:
        CatalogDamaged: There are data files of a catalog, without its metadata.
    """
    if location.holds_files(f"main/{FILES}"):
        raise CatalogDamaged(
            f"{location.metadata}: missing, but {location.data} holds the files of a catalog; "
            "restore it from a backup, or move the folder away"
        )
    if not isinstance(location.metadata, Path):
        _make(location, limits)
        return
    partial = location.metadata.with_suffix(".part")
    for left_over in partial.parent.glob(f"{partial.name}*"):
        left_over.unlink(missing_ok=True)
    _make(replace(location, metadata=partial), limits)
    partial.rename(location.metadata)
    to_disk(partial.parent)


def _make(location: CatalogLocation, limits: dict[str, str]) -> None:
    with translated(location):
        lake = Lake(location, limits, read_only=False)
        try:
            _create_tables(lake.connection, NewDataFiles(location.data))
        finally:
            lake.close()


def _create_tables(connection: duckdb.DuckDBPyConnection, new_files: NewDataFiles) -> None:
    """Commit the empty tables and their views."""
    connection.execute(f"USE {LAKE}.main")
    connection.execute("BEGIN TRANSACTION")
    choose_row_groups(connection)
    for table, columns in (
        (FILES, FILES_COLUMNS | INTERNAL_FILES_COLUMNS),
        (CLASS_PIXELS, CLASS_PIXELS_COLUMNS),
        (FRAME_TAGS, FRAME_TAGS_COLUMNS),
    ):
        body = ", ".join(
            f'"{name}" {kind}{" NOT NULL" if name == "fkey" else ""}'
            for name, kind in columns.items()
        )
        connection.execute(f"CREATE TABLE {table} ({body})")
    frame_trees.create(connection)
    of_digests = ", ".join(f"{name} {kind}" for name, kind in FILE_DIGESTS_COLUMNS.items())
    connection.execute(f"CREATE TABLE {FILE_DIGESTS} ({of_digests})")
    connection.execute("CREATE TABLE catalog_format (version INTEGER NOT NULL)")
    connection.execute("INSERT INTO catalog_format VALUES (?)", [FORMAT])
    connection.execute(f"CREATE SCHEMA {LAKE}.{DISCOVER}")
    discover_views.create(connection)
    connection.execute(f"CALL {LAKE}.set_commit_message('framesift', 'catalog created')")
    new_files.to_disk()
    connection.execute("COMMIT")
