"""The frames as one relation: what conditions and orders may name."""

import re
from dataclasses import dataclass, replace
from functools import partial

import duckdb

from catalog.lake.schema import (
    CLASS_PIXELS,
    FILES,
    FILES_COLUMNS,
    FRAME_TAGS,
    UNKNOWN_PIXELS,
)
from catalog.lake.sql_guard import is_wide, kept
from catalog.lake.views import tag_columns
from catalog.memory.wide_names import (
    FKEY_HASH,
    HASH_OF_FKEY,
    LABEL_SIZE,
    TAGGED_FILES,
    in_family,
)
from catalog.store import LAKE
from catalog.values import TagColumn
from query.frames.selection import LABELLED, Question

__all__ = ["FKEY_HASH", "FramesRelation", "frames_relation", "relation_for"]

_LOCAL = {
    "image_size": ("BIGINT", "f.size"),
    "image_file": ("VARCHAR", "substr(f.fkey, length(f.cluster) + length(f.datasource) + 3)"),
    FKEY_HASH: ("UBIGINT", HASH_OF_FKEY),
}


@dataclass(frozen=True)
class FramesRelation:
    """One row per frame: per labelled one, or with ``every`` those without a label, too.

    Attributes:
        sql: The SELECT that gives them, to stand in ``WITH frames AS (...)``.
        columns: DuckDB type of each column: metaocean's, every tag of every family, image_size
            [bytes], image_file (key below the source's root) and fkey_hash.
        tags: The column behind every tag, by its name.
        with_label_size: It has the column label_size [bytes] as well.
        whole: No frames were chosen out of them.
        every: It has the frames without a label, too.
    """

    sql: str
    columns: dict[str, str]
    tags: dict[str, TagColumn]
    with_label_size: bool
    whole: bool = True
    every: bool = False

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
            few = f"(FROM {LAKE}.main.{{}} WHERE fkey IN (FROM {chosen}))"
            sql = _joined(self.tags, self._labelled, few)
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
            return _joined(
                {n: tag for n, tag in self.tags.items() if tag.table in families}, self._labelled
            )
        return _without_files(tags, self._labelled)

    @property
    def _labelled(self) -> bool:
        """Whether there are frames to be left out; a snapshot without the tag has none."""
        return not self.every and LABELLED in self.tags


def frames_relation(cursor: duckdb.DuckDBPyConnection, *, every: bool = False) -> FramesRelation:
    """The labelled frames of the snapshot that a cursor of CatalogStore.reading sees.

    Args:
        cursor: The cursor.
        every: Those without a label, too.
    """
    name = "every_frame" if every else "frames_relation"
    return kept(cursor, name, partial(_relation, every=every))


def relation_for(cursor: duckdb.DuckDBPyConnection, question: Question) -> FramesRelation:
    """What a question's conditions are about: labelled frames, or all where it says so itself."""
    return frames_relation(cursor, every=question.decides_on_labels)


def _relation(cursor: duckdb.DuckDBPyConnection, every: bool) -> FramesRelation:
    tags = {column.tag: column for column in tag_columns(cursor)}
    columns = {
        **FILES_COLUMNS,
        **{tag: column.type for tag, column in tags.items()},
        **{name: kind for name, (kind, _) in _LOCAL.items()},
    }
    labelled = not every and LABELLED in tags
    if is_wide(cursor):
        columns[LABEL_SIZE] = "BIGINT"
        return FramesRelation(_wide(tags, labelled), columns, tags, True, every=every)
    return FramesRelation(_joined(tags, labelled), columns, tags, False, every=every)


_OF_FILES = re.compile(
    r"\b(" + "|".join(name for name in (*FILES_COLUMNS, *_LOCAL) if "fkey" not in name) + r")\b"
)
"""Names, quoted or not, for which the files themselves are needed."""


def _without_files(tags: dict[str, TagColumn], labelled: bool) -> str:
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
    # Each table by a column that takes next to no time to read: names of labels would.
    has_label = f"{LABELLED} = 1" if anchor == FRAME_TAGS else f"{UNKNOWN_PIXELS} IS NOT NULL"
    return (
        f"SELECT f.fkey, {HASH_OF_FKEY} AS {FKEY_HASH}{of_tags} "
        f"FROM {LAKE}.main.{anchor} AS f{joins}{f' WHERE f.{has_label}' if labelled else ''}"
    )


_KEPT = "_kept_"
"""Before the name of a text tag: the column as it lies in memory, which no tag is named."""

_EVERY_ROW = f"{LAKE}.main.{{}}"


def _joined(tags: dict[str, TagColumn], labelled: bool, source: str = _EVERY_ROW) -> str:
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
    only = f" WHERE {FRAME_TAGS}.{LABELLED} = 1" if labelled else ""
    return f"SELECT {of_files}, {of_tags}, {made} FROM {source.format(FILES)} AS f{joins}{only}"


def _wide(tags: dict[str, TagColumn], labelled: bool) -> str:
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
        f"{f' AND f.{LABELLED} = 1' if labelled else ''}"
    )
