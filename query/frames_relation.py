"""The labelled frames as one relation: what conditions and orders may name."""

import re
from dataclasses import dataclass, replace

import duckdb

from catalog.discover_views import tag_columns
from catalog.lake_tables import CLASS_PIXELS, FILES, FILES_COLUMNS, FRAME_TAGS
from catalog.records import TagColumn
from catalog.select_only import is_wide, kept
from catalog.store import LAKE
from catalog.wide_tables import (
    FKEY_HASH,
    HASH_OF_FKEY,
    LABEL_SIZE,
    TAGGED_FILES,
    in_family,
)

__all__ = ["FKEY_HASH", "FramesRelation", "frames_relation"]

_LOCAL = {
    "image_size": ("BIGINT", "f.size"),
    "image_file": ("VARCHAR", "substr(f.fkey, length(f.cluster) + length(f.datasource) + 3)"),
    FKEY_HASH: ("UBIGINT", HASH_OF_FKEY),
}


@dataclass(frozen=True)
class FramesRelation:
    """One row per labelled frame.

    Attributes:
        sql: The SELECT that gives them, to stand in ``WITH frames AS (...)``.
        columns: DuckDB type of each column: metaocean's, every tag of every family, image_size
            [bytes], image_file (key below the source's root) and fkey_hash.
        tags: The column behind every tag, by its name.
        with_label_size: It has the column label_size [bytes] as well.
        whole: It has every frame.
    """

    sql: str
    columns: dict[str, str]
    tags: dict[str, TagColumn]
    with_label_size: bool
    whole: bool = True

    def encoded(self, name: str) -> str:
        """A column for SELECT, a text of few values as the ENUM that memory holds it as.

        Args:
            name: The column.
        """
        kept = self.with_label_size and self.columns[name] == "VARCHAR" and name in self.tags
        return f'"{_KEPT}{name}" AS "{name}"' if kept else f'"{name}"'

    def only(self, chosen: str) -> "FramesRelation":
        """Those frames alone whose fkey, or in memory fkey_hash, a table holds.

        Every table is read by itself, so that what is joined is as few rows as are chosen.

        Args:
            chosen: The table, beside the catalog.
        """
        if self.with_label_size:
            sql = f"{self.sql} AND f.{FKEY_HASH} IN (SELECT {FKEY_HASH} FROM {chosen})"
        else:
            sql = _joined(self.tags, f"(FROM {LAKE}.main.{{}} WHERE fkey IN (FROM {chosen}))")
        return replace(self, sql=sql, whole=False)

    def sql_for(self, *parts: str) -> str:
        """``sql`` without the tables of which these parts of a statement name no column.

        Every table is joined by a text, and DuckDB does not see that it could be left out.

        Args:
            parts: DuckDB's SQL, with tags in double quotes.
        """
        if self.with_label_size or not self.whole:
            return self.sql
        statement = " ".join(parts)
        families = {tag.table for name, tag in self.tags.items() if f'"{name}"' in statement}
        tags = {name: tag for name, tag in self.tags.items() if tag.table in families}
        if _OF_FILES.search(statement):
            families |= {CLASS_PIXELS, FRAME_TAGS}
            return _joined({n: tag for n, tag in self.tags.items() if tag.table in families})
        return _without_files(tags)


def frames_relation(cursor: duckdb.DuckDBPyConnection) -> FramesRelation:
    """The frames of the snapshot that a cursor of CatalogStore.reading sees."""
    return kept(cursor, "frames_relation", _relation)


def _relation(cursor: duckdb.DuckDBPyConnection) -> FramesRelation:
    tags = {column.tag: column for column in tag_columns(cursor)}
    columns = {
        **FILES_COLUMNS,
        **{tag: column.type for tag, column in tags.items()},
        **{name: kind for name, (kind, _) in _LOCAL.items()},
    }
    if is_wide(cursor):
        return FramesRelation(_wide(tags), {**columns, LABEL_SIZE: "BIGINT"}, tags, True)
    return FramesRelation(_joined(tags), columns, tags, False)


_OF_FILES = re.compile(
    r"\b(" + "|".join(name for name in (*FILES_COLUMNS, *_LOCAL) if "fkey" not in name) + r")\b"
)
"""Names, quoted or not, for which the files themselves are needed."""


def _without_files(tags: dict[str, TagColumn]) -> str:
    """Over the families alone: each of a frame's rows there has its fkey.

    What frames are made of and their pixels are written and removed together, so that frames are
    the rows of either.
    """
    families = dict.fromkeys(tag.table for tag in tags.values())
    anchor = next((t for t in (FRAME_TAGS, CLASS_PIXELS) if t in families), FRAME_TAGS)
    of_tags = "".join(f', {tag.table}."{tag.tag}"' for tag in tags.values())
    joins = "".join(
        f" {'' if table == CLASS_PIXELS else 'LEFT '}JOIN {LAKE}.main.{table}"
        f" ON {table}.fkey = f.fkey"
        for table in families
        if table != anchor
    )
    # The anchor is called f, as the files are elsewhere.
    of_tags = of_tags.replace(f" {anchor}.", " f.")
    return (
        f"SELECT f.fkey, {HASH_OF_FKEY} AS {FKEY_HASH}{of_tags} "
        f"FROM {LAKE}.main.{anchor} AS f{joins}"
    )


_KEPT = "_kept_"
"""Before the name of a text tag: the column as it lies in memory, which no tag is named."""

_EVERY_ROW = f"{LAKE}.main.{{}}"


def _joined(tags: dict[str, TagColumn], source: str = _EVERY_ROW) -> str:
    """Over the catalog's own tables, each read as ``source`` says."""
    families = dict.fromkeys(tag.table for tag in tags.values())
    of_files = ", ".join(f'f."{name}"' for name in FILES_COLUMNS)
    of_tags = ", ".join(f'{tag.table}."{tag.tag}"' for tag in tags.values())
    made = ", ".join(f"{value} AS {name}" for name, (_, value) in _LOCAL.items())
    joins = "".join(
        f" {'' if table in (CLASS_PIXELS, FRAME_TAGS) else 'LEFT '}JOIN"
        f" {source.format(table)} AS {table} ON {table}.fkey = f.fkey"
        for table in families
    )
    return f"SELECT {of_files}, {of_tags}, {made} FROM {source.format(FILES)} AS f{joins}"


def _wide(tags: dict[str, TagColumn]) -> str:
    """Over a snapshot held in memory."""
    of_files = ", ".join(f'f."{name}"' for name in FILES_COLUMNS)
    of_tags = ", ".join(
        f'CAST(f."{name}" AS VARCHAR) AS "{name}", f."{name}" AS "{_KEPT}{name}"'
        if tag.type == "VARCHAR"
        else f'f."{name}"'
        for name, tag in tags.items()
    )
    made = "".join(
        f", {value} AS {name}" for name, (_, value) in _LOCAL.items() if name != FKEY_HASH
    )
    return (
        f"SELECT {of_files}, {of_tags}{made}, f.{FKEY_HASH}, f.{LABEL_SIZE} "
        f"FROM {LAKE}.main.{TAGGED_FILES} AS f "
        f"WHERE f.{in_family(CLASS_PIXELS)} AND f.{in_family(FRAME_TAGS)}"
    )
