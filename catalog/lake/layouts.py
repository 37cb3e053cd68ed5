"""The two ways in which a snapshot's frames lie in tables, and the SQL that reads each.

Joined    the catalog's own tables: files, and a table for each family of tags
Wide      a snapshot in memory: tagged_files, see catalog.memory.wide_tables
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Rows
from catalog.lake.group_tags import read_from, value_of
from catalog.lake.schema import (
    CLASS_PIXELS,
    FILES,
    FILES_COLUMNS,
    FRAME_TAGS,
    LABELLED,
    UNKNOWN_PIXELS,
)
from catalog.lake.wide_names import (
    EVERY_FILE,
    FILENAME_HASH,
    FKEY_HASH,
    HASH_OF_FKEY,
    LABEL_SIZE,
    TAGGED_FILES,
    UNTAGGED_FILES,
    in_family,
)
from catalog.values import TagColumn

if TYPE_CHECKING:
    import pyarrow as pa

Found = TypeVar("Found")

Tags = Mapping[str, TagColumn]
"""The column behind every tag, by its name."""

MADE = {
    "image_size": ("BIGINT", "f.size"),
    "image_file": ("VARCHAR", "substr(f.fkey, length(f.cluster || f.datasource || ':::'))"),
    FKEY_HASH: ("UBIGINT", HASH_OF_FKEY),
}
"""Columns that frames have beside metaocean's and their tags: type, and value."""

ROW = "metaocean"
"""Alias by which conditions refer to a row of the files."""

_EVERY_COLUMN = re.compile(r"(select|,|\.)\s*\*|\bcolumns\s*\(", re.IGNORECASE)
"""What in a statement may mean columns that it does not name."""

_CHOSEN = "chosen_frames"
_CHOSEN_FKEYS = "chosen_fkeys"


class QueriedSnapshot(Protocol):
    """Queries of a snapshot that layouts need."""

    def once(self, name: str, find: Callable[[], Found]) -> Found:
        """The value that ``find`` finds out of it, once for all of its readers."""

    def execute(self, query: str, parameters: Any = None, /) -> Rows:
        """Run a statement."""

    def table(self, query: str, parameters: Sequence[object] = ()) -> "pa.Table":
        """The rows of a statement."""

    def with_table(self, name: str, rows: "pa.Table") -> AbstractContextManager[None]:
        """Rows as a table of that name, beside the catalog."""


@dataclass(frozen=True)
class Scan:
    """Tables that are read as one row for each file, joined on fkey."""

    tables: tuple[str, ...]
    """Those that have a row for every file that is read."""
    optional: tuple[str, ...] = ()
    """Those that may have none for a file."""

    def holding(self, table: str) -> str:
        """Where the columns of a table of the catalog lie: in it, or in the one that is read."""
        return table if table in (*self.tables, *self.optional) else self.tables[0]


class TableLayout(Protocol):
    """The layout of a snapshot's frames in tables."""

    collection: str
    """Value of the column of that name, in DuckDB's SQL over the files' columns of ROW; empty where
    there are no collections.
    """
    columns: Mapping[str, str]
    """DuckDB type of columns that its frames have besides those of every layout."""
    has_label: str
    """The condition that a frame's label is in the catalog, too."""
    encodes_texts: bool
    """A text tag may lie as an ENUM, which is no text before it is cast."""
    in_memory: bool
    """Its frames are rows of one table in memory: every statement over all of them gives them in
    the same order.
    """
    hashes: Mapping[str, tuple[str, str]]
    """Columns of files with a stored hash -> name of the hash's column, and the engine's function
    that makes it of a text, without blanks at its end but for fkey.
    """
    files: str
    """The table of every file, and nothing else."""
    parts: Mapping[str, Sequence[str]]
    """The tables that a view of the layout gives the rows of; the first has every column."""
    is_fkey: str
    """The condition that a frame or file is the one of the fkey that is bound first."""

    def naming(self, collection: str) -> "TableLayout":
        """The same, with another value of that attribute."""

    def tables(self, tags: Tags) -> dict[str, dict[str, str]]:
        """Type of each column of the tables that `scan` names."""

    def scan(self, required: Sequence[str], optional: Sequence[str], files: bool) -> Scan:
        """The tables that are read for the columns of some tables of the catalog.

        Args:
            required: Tables of tags that have a row for every file wanted.
            optional: Tables of tags that may have none.
            files: Columns of the files themselves are wanted, too.
        """

    def frames(self, tags: Tags, *, labelled: bool) -> str:
        """The SELECT that gives the frames; only those with a label where ``labelled``."""

    def needed(self, tags: Tags, statement: str, *, labelled: bool) -> str:
        """`frames` without the tables of which a statement names no column."""

    def chosen(self, tags: Tags, table: str, *, labelled: bool) -> str:
        """`frames` with those alone that a table of `temporary_table` names."""

    def listed(self, tags: Tags, *, labelled: bool) -> str | None:
        """`frames` with those alone that are bound: a list of fkeys, its least and its greatest.

        None where that is read no faster.
        """

    def temporary_table(
        self, snapshot: QueriedSnapshot, rows: "pa.Table"
    ) -> AbstractContextManager[str]:
        """A table beside the catalog, for the block, that names frames by their fkey_hash."""

    def encoded(self, tag: TagColumn) -> str:
        """A tag's column for SELECT, a text of few values as the ENUM that memory holds it as."""

    def few_values(self, snapshot: QueriedSnapshot) -> Mapping[str, Sequence[str]]:
        """The values of each text tag that lies as an ENUM, in the order of its codes."""

    def present(
        self, snapshot: QueriedSnapshot, kind: str, names: Sequence[str]
    ) -> Collection[str]:
        """Those of some cameras or scenes that the snapshot has, and maybe others."""

    def names(self, snapshot: QueriedSnapshot, kind: str) -> set[str]:
        """Every camera, or every scene."""


class Joined:
    """Frames as rows of several tables, joined on fkey."""

    columns: Mapping[str, str] = {}
    has_label = (
        f"cluster || ':' || datasource || ':' || label_file IN (SELECT fkey FROM main.{FILES})"
    )
    encodes_texts = False
    in_memory = False
    hashes: Mapping[str, tuple[str, str]] = {}
    files = f"main.{FILES}"
    is_fkey = "fkey = $1"
    parts: Mapping[str, Sequence[str]] = {}

    def __init__(self, collection: str = "") -> None:
        """Lay nothing out yet."""
        self.collection = collection

    def naming(self, collection: str) -> "Joined":
        """See TableLayout."""
        return Joined(collection) if collection != self.collection else self

    def tables(self, tags: Tags) -> dict[str, dict[str, str]]:
        """See TableLayout."""
        tables_ = {FILES: dict(FILES_COLUMNS)}
        for name, tag in tags.items():
            tables_.setdefault(tag.table, {"fkey": "VARCHAR"})[name] = tag.type
        return tables_

    def scan(self, required: Sequence[str], optional: Sequence[str], files: bool) -> Scan:
        """See TableLayout: every tag's row has its file, so that the files need not be read."""
        tables = (*required, FILES) if files or not required else tuple(required)
        return Scan(tables, tuple(table for table in optional if table not in tables))

    def frames(self, tags: Tags, *, labelled: bool) -> str:
        """See TableLayout."""
        return _joined(tags, labelled, self.collection)

    def needed(self, tags: Tags, statement: str, *, labelled: bool) -> str:
        """See TableLayout: every table is joined by a text, and DuckDB leaves none out."""
        families = {read_from(tag) for name, tag in tags.items() if f'"{name}"' in statement}
        if not _OF_FILES.search(statement):
            return _without_files(_of(tags, families), labelled)
        families |= {CLASS_PIXELS, FRAME_TAGS}
        return _joined(_of(tags, families), labelled, self.collection)

    def chosen(self, tags: Tags, table: str, *, labelled: bool) -> str:
        """See TableLayout: each table is read by itself, so that few rows are joined."""
        few = f"(FROM main.{{}} WHERE fkey IN (FROM {table}))"
        return _joined(tags, labelled, self.collection, few)

    def listed(self, tags: Tags, *, labelled: bool) -> str:
        """See TableLayout: Parquet's statistics leave out what is not between the two."""
        few = (
            "(FROM main.{} WHERE fkey BETWEEN $2 AND $3 AND fkey IN (SELECT unnest($1::VARCHAR[])))"
        )
        return _joined(tags, labelled, self.collection, few)

    @contextmanager
    def temporary_table(self, snapshot: QueriedSnapshot, rows: "pa.Table") -> Iterator[str]:
        """See TableLayout."""
        with snapshot.with_table(_CHOSEN, rows):
            fkeys = snapshot.table(
                f"SELECT f.fkey FROM main.{FRAME_TAGS} AS f "
                f"WHERE {HASH_OF_FKEY} IN (SELECT {FKEY_HASH} FROM {_CHOSEN})"
            )
        with snapshot.with_table(_CHOSEN_FKEYS, fkeys):
            yield _CHOSEN_FKEYS

    def encoded(self, tag: TagColumn) -> str:
        """See TableLayout."""
        return f'"{tag.tag}"'

    def few_values(self, _snapshot: QueriedSnapshot) -> Mapping[str, Sequence[str]]:
        """See TableLayout: all are texts."""
        return {}

    def present(
        self, snapshot: QueriedSnapshot, kind: str, names: Sequence[str]
    ) -> Collection[str]:
        """See TableLayout: Parquet's statistics leave most of a large catalog unread."""
        marks = ", ".join("?" * len(names))
        rows = snapshot.execute(
            f"SELECT DISTINCT {kind} FROM main.{FRAME_TAGS} WHERE {kind} IN ({marks})",
            [*names],
        )
        return {row[0] for row in rows.fetchall()}

    def names(self, snapshot: QueriedSnapshot, kind: str) -> set[str]:
        """See TableLayout."""
        return _names(snapshot, kind, f"main.{FRAME_TAGS}")


class Wide:
    """Frames as rows of one table, in memory.

    Attributes:
        rows: The table, as FROM names it.
    """

    columns: Mapping[str, str] = {LABEL_SIZE: "BIGINT"}
    has_label = f"{LABEL_SIZE} > -1"
    encodes_texts = True
    in_memory = True
    hashes: Mapping[str, tuple[str, str]] = {
        "fkey": (FKEY_HASH, "md5_number_lower"),
        "filename": (FILENAME_HASH, "hash"),
    }
    files = f"main.{EVERY_FILE}"
    parts: Mapping[str, Sequence[str]] = {EVERY_FILE: (TAGGED_FILES, UNTAGGED_FILES)}
    is_fkey = f"{FKEY_HASH} = md5_number_lower($1) AND fkey = $1"

    def __init__(self, collection: str = "") -> None:
        """Lay nothing out yet."""
        self.collection = collection
        self.rows = with_collection(f"main.{TAGGED_FILES}", collection)

    def naming(self, collection: str) -> "Wide":
        """See TableLayout."""
        return Wide(collection) if collection != self.collection else self

    def tables(self, tags: Tags) -> dict[str, dict[str, str]]:
        """See TableLayout."""
        columns = {**FILES_COLUMNS, **{name: tag.type for name, tag in tags.items()}}
        return {TAGGED_FILES: columns, EVERY_FILE: columns}

    def scan(self, required: Sequence[str], _optional: Sequence[str], _files: bool) -> Scan:
        """See TableLayout: one table, that of the files with tags where one must be there."""
        return Scan((TAGGED_FILES if required else EVERY_FILE,))

    def frames(self, tags: Tags, *, labelled: bool) -> str:
        """See TableLayout."""
        return self._frames(tags, labelled, lambda _: True)

    def needed(self, tags: Tags, statement: str, *, labelled: bool) -> str:
        """See TableLayout: there is one table, of which the columns that are named are chosen.

        To bind a hundred columns takes DuckDB 1.3 ms, of 2.5 for a page's plan.
        """
        if _EVERY_COLUMN.search(statement):
            return self.frames(tags, labelled=labelled)
        text = statement.lower()
        return self._frames(tags, labelled, lambda name: name in text or name == "fkey")

    def _frames(self, tags: Tags, labelled: bool, is_needed: Callable[[str], bool]) -> str:
        columns = [f'f."{name}"' for name in FILES_COLUMNS if is_needed(name)]
        columns += [
            f'CAST(f."{name}" AS VARCHAR) AS "{name}", f."{name}" AS "{_KEPT}{name}"'
            if tag.type == "VARCHAR"
            else f'f."{name}"'
            for name, tag in tags.items()
            if is_needed(name)
        ]
        columns += [
            f"{value} AS {name}"
            for name, (_, value) in MADE.items()
            if name != FKEY_HASH and is_needed(name)
        ]
        columns += [f"f.{name}" for name, _ in self.hashes.values() if is_needed(name)]
        columns += [f"f.{LABEL_SIZE}"] if is_needed(LABEL_SIZE) else []
        return (
            f"SELECT {', '.join(columns)} FROM {self.rows} AS f "
            f"WHERE f.{in_family(CLASS_PIXELS)} AND f.{in_family(FRAME_TAGS)}"
            f"{f' AND f.{LABELLED} = 1' if labelled else ''}"
        )

    def chosen(self, tags: Tags, table: str, *, labelled: bool) -> str:
        """See TableLayout."""
        frames = self.frames(tags, labelled=labelled)
        return f"{frames} AND f.{FKEY_HASH} IN (SELECT {FKEY_HASH} FROM {table})"

    def listed(self, _tags: Tags, *, labelled: bool) -> None:
        """See TableLayout: DuckDB reads columns of rows in memory late by itself."""

    @contextmanager
    def temporary_table(self, snapshot: QueriedSnapshot, rows: "pa.Table") -> Iterator[str]:
        """See TableLayout."""
        with snapshot.with_table(_CHOSEN, rows):
            yield _CHOSEN

    def encoded(self, tag: TagColumn) -> str:
        """See TableLayout."""
        return f'"{_KEPT}{tag.tag}" AS "{tag.tag}"' if tag.type == "VARCHAR" else f'"{tag.tag}"'

    def few_values(self, snapshot: QueriedSnapshot) -> Mapping[str, Sequence[str]]:
        """See TableLayout."""
        enums = snapshot.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = ? AND "
            "table_name = ? AND starts_with(data_type, 'ENUM')",
            [LAKE, TAGGED_FILES],
        ).fetchall()
        return {
            name: [text[1:-1].replace("''", "'") for text in _QUOTED.findall(kind)]
            for name, kind in enums
        }

    def present(
        self, snapshot: QueriedSnapshot, kind: str, _names: Sequence[str]
    ) -> Collection[str]:
        """See TableLayout."""
        return snapshot.once(f"every {kind}", lambda: self.names(snapshot, kind))

    def names(self, snapshot: QueriedSnapshot, kind: str) -> set[str]:
        """See TableLayout."""
        return _names(snapshot, kind, self.rows)


def with_collection(rows: str, collection: str) -> str:
    """Rows of files as FROM names them, with their collection.

    Args:
        rows: The same, without.
    """
    return f"(SELECT {_columns(collection)} FROM {rows} AS {ROW})" if collection else rows


def _columns(collection: str) -> str:
    return f"* REPLACE ({collection} AS collection)" if collection else "*"


JOINED, WIDE = Joined(), Wide()


def _names(snapshot: QueriedSnapshot, kind: str, rows: str) -> set[str]:
    statement = f"SELECT DISTINCT CAST({kind} AS VARCHAR) FROM {rows} AS f WHERE {kind} IS NOT NULL"
    return {row[0] for row in snapshot.execute(statement).fetchall()}


_OF_FILES = re.compile(
    r"\b(" + "|".join(name for name in (*FILES_COLUMNS, *MADE) if "fkey" not in name) + r")\b"
)
"""Names, quoted or not, for which the files themselves are needed."""

_QUOTED = re.compile("'(?:[^']|'')*'")
"""A value in the text of a type."""

_KEPT = "_kept_"
"""Before the name of a text tag: the column as it lies in memory, which no tag is named."""

_EVERY_ROW = "main.{}"


def _of(tags: Tags, families: Collection[str]) -> Tags:
    return {name: tag for name, tag in tags.items() if read_from(tag) in families}


def _without_files(tags: Tags, labelled: bool) -> str:
    """Over the families alone: each of a frame's rows there has its fkey.

    What frames are made of and their pixels are written and removed together, so that frames are
    the rows of either.
    """
    families = dict.fromkeys(map(read_from, tags.values()))
    anchor = next((t for t in (FRAME_TAGS, CLASS_PIXELS) if t in families), FRAME_TAGS)
    # The anchor is called f, as the files are elsewhere.
    of_tags = "".join(
        f', {value_of(tag, "f" if read_from(tag) == anchor else read_from(tag))} AS "{tag.tag}"'
        for tag in tags.values()
    )
    joins = "".join(
        f" {'' if table == CLASS_PIXELS else 'LEFT '}JOIN main.{table} ON {table}.fkey = f.fkey"
        for table in families
        if table != anchor
    )
    # Each table by a column that takes next to no time to read: names of labels would.
    has_label = f"{LABELLED} = 1" if anchor == FRAME_TAGS else f"{UNKNOWN_PIXELS} IS NOT NULL"
    return (
        f"SELECT f.fkey, {HASH_OF_FKEY} AS {FKEY_HASH}{of_tags} "
        f"FROM main.{anchor} AS f{joins}{f' WHERE f.{has_label}' if labelled else ''}"
    )


def _joined(tags: Tags, labelled: bool, collection: str, source: str = _EVERY_ROW) -> str:
    """Over the catalog's own tables, each read as ``source`` says."""
    files = with_collection(source.format(FILES), collection)
    families = dict.fromkeys(map(read_from, tags.values()))
    of_files = ", ".join(f'f."{name}"' for name in FILES_COLUMNS)
    of_tags = ", ".join(f'{value_of(tag, read_from(tag))} AS "{tag.tag}"' for tag in tags.values())
    computed = ", ".join(f"{value} AS {name}" for name, (_, value) in MADE.items())
    joins = "".join(
        f" {'' if table in (CLASS_PIXELS, FRAME_TAGS) else 'LEFT '}JOIN"
        f" {source.format(table)} AS {table} ON {table}.fkey = f.fkey"
        for table in families
    )
    only = f" WHERE {FRAME_TAGS}.{LABELLED} = 1" if labelled else ""
    return f"SELECT {of_files}, {of_tags}, {computed} FROM {files} AS f{joins}{only}"
