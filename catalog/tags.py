"""Tags: which there are, and adding the class tags of a new source."""

from collections.abc import Sequence

import duckdb

from catalog import discover_views
from catalog.errors import InvalidInput
from catalog.lake_tables import CLASS_PIXELS, CLASS_PIXELS_COLUMNS, FILES_COLUMNS, VIEW_COLUMNS
from catalog.store import CatalogStore


def add_class_tags(store: CatalogStore, tags: Sequence[str]) -> list[str]:
    """Give every class a column in class_pixels and a view; the tags that were new.

    Raises:
        InvalidInput: A tag's name is already another column's.
    """
    with store.reading() as cursor:
        missing = _missing(cursor, tags)
    if not missing:
        return []
    with store.writing(f"{len(missing)} class tags") as connection:
        missing = _missing(connection, tags)  # another writer may have added some meanwhile
        for tag in missing:
            connection.execute(f'ALTER TABLE {CLASS_PIXELS} ADD COLUMN "{tag}" INTEGER')
        discover_views.create(connection)
    return missing


def _missing(cursor: duckdb.DuckDBPyConnection, tags: Sequence[str]) -> list[str]:
    present = {column.tag: column for column in discover_views.tag_columns(cursor)}
    for tag in tags:
        held = present.get(tag)
        other_family = held is not None and (held.table, held.type) != (CLASS_PIXELS, "INTEGER")
        taken = tag in CLASS_PIXELS_COLUMNS or tag in FILES_COLUMNS or tag in VIEW_COLUMNS
        if other_family or taken:
            raise InvalidInput(
                f"class tag '{tag}' would collide with a column of that name that the catalog "
                "already has; rename the class in class_list.json"
            )
    return [tag for tag in tags if tag not in present]
