"""The labelled frames as one relation: what conditions and orders may name."""

from dataclasses import dataclass

import duckdb

from catalog.discover_views import tag_columns
from catalog.lake_tables import CLASS_PIXELS, FILES, FILES_COLUMNS, FRAME_TAGS
from catalog.records import TagColumn
from catalog.store import LAKE

FKEY_HASH = "fkey_hash"
"""Name of the column with half of the MD5 of a frame's fkey: its place in every random order."""

_LOCAL = {
    "image_size": ("BIGINT", "f.size"),
    "image_file": ("VARCHAR", "substr(f.fkey, length(f.cluster) + length(f.datasource) + 3)"),
    # MD5 and not the engine's hash(): a seed must mean the same in every version.
    FKEY_HASH: ("UBIGINT", "md5_number_lower(f.fkey)"),
}


@dataclass(frozen=True)
class FramesRelation:
    """One row per labelled frame.

    Attributes:
        sql: The SELECT that gives them, to stand in ``WITH frames AS (...)``.
        columns: DuckDB type of each column: metaocean's, every tag of every family, image_size
            [bytes], image_file (key below the source's root) and fkey_hash.
        tags: The column behind every tag, by its name.
    """

    sql: str
    columns: dict[str, str]
    tags: dict[str, TagColumn]


def frames_relation(cursor: duckdb.DuckDBPyConnection) -> FramesRelation:
    """The frames of the snapshot that a cursor of CatalogStore.reading sees."""
    tags = {column.tag: column for column in tag_columns(cursor)}
    families = dict.fromkeys(tag.table for tag in tags.values())
    of_tags = ", ".join(f'{tag.table}."{tag.tag}"' for tag in tags.values())
    of_files = ", ".join(f'f."{name}"' for name in FILES_COLUMNS)
    made = ", ".join(f"{value} AS {name}" for name, (_, value) in _LOCAL.items())
    joins = "".join(
        f" {'' if table in (CLASS_PIXELS, FRAME_TAGS) else 'LEFT '}JOIN {LAKE}.main.{table}"
        f" ON {table}.fkey = f.fkey"
        for table in families
    )
    columns = {
        **FILES_COLUMNS,
        **{tag: column.type for tag, column in tags.items()},
        **{name: kind for name, (kind, _) in _LOCAL.items()},
    }
    return FramesRelation(
        f"SELECT {of_files}, {of_tags}, {made} FROM {LAKE}.main.{FILES} AS f{joins}", columns, tags
    )
