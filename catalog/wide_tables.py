"""A snapshot laid out for questions: files with tags as one wide table, the others beside them.

    tagged_files      metaocean's columns and every tag of every family; has_<family>: whether the
                      family has a row for the file; fkey_hash, label_size
    untagged_files    metaocean's columns

So no question joins families on fkey, which is a text. Numbers and fkey are kept as they are, other
texts compressed: at 1,000,000 frames of 38 classes 450 MB instead of 1,665, and as fast. A text tag
of few values, such as camera and scene, is kept as an ENUM.

Under the catalog's own names lie views, so that every other statement runs on it, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import duckdb
import pyarrow as pa

from catalog import discover_views
from catalog.ducklake import LAKE
from catalog.lake_tables import FILES, FILES_COLUMNS, FRAME_TAGS, INTERNAL_FILES_COLUMNS
from catalog.records import TagColumn

TAGGED_FILES = "tagged_files"
UNTAGGED_FILES = "untagged_files"
EVERY_FILE = "every_file"
"""View of both: a file without tags has nulls."""

FKEY_HASH = "fkey_hash"
"""Half of the MD5 of a file's fkey: its place in every random order."""

LABEL_SIZE = "label_size"
"""Size of the file that a frame's label_file names [bytes]."""

HASH_OF_FKEY = "md5_number_lower(f.fkey)"
"""MD5 and not the engine's hash(): a seed must mean the same in every version."""

_ROWS_AT_ONCE = 122_880
"""Rows of one batch while loading: DuckDB's row group."""

_BATCHES_UNCOMPRESSED = 8
"""Batches that lie uncompressed in memory at once while loading: 2 GB at 2 kB a row."""

_FILES_AT_ONCE = 2_000_000
"""Files of one portion while loading: what its joins hold takes 1 GB."""

_DRAWN = 64
"""Files drawn for each portion to find where it ends."""

_MOST_VALUES = 10_000
"""Text tags of more values are kept as text."""


def load(source: duckdb.DuckDBPyConnection, target: duckdb.DuckDBPyConnection) -> None:
    """Lay out the snapshot that ``source`` reads.

    Args:
        source: A cursor of CatalogStore.inspecting.
        target: An empty DuckDB in memory; the tables come into its database `lake`.

    Raises:
        duckdb.OutOfMemoryException: They do not fit into the target's memory limit.
    """
    target.execute(f"ATTACH ':memory:' AS {LAKE} (COMPRESS)")
    target.execute(f"USE {LAKE}.main")
    tags = discover_views.tag_columns(source)
    families = list(dict.fromkeys(tag.table for tag in tags))
    for table in _other_tables(source, families):
        _copy(source, f'SELECT * FROM {LAKE}.main."{table}"', target, table)
    columns = _columns(source, tags, families)
    target.execute(f"CREATE TABLE {TAGGED_FILES} ({', '.join(c.definition for c in columns)})")
    values = ", ".join(column.value for column in columns)
    of_files = ", ".join(f'f."{name}"' for name in _OF_FILES)
    has_tags = " OR ".join(f"{family}.fkey IS NOT NULL" for family in families)
    for condition in _portions(source):
        rows = f"FROM {_rows(FILES, condition)} AS f {_joins(families, condition)}"
        tagged = f"SELECT {values} {rows} {_join_labels(condition)} WHERE {has_tags}"
        _copy(source, tagged, target, TAGGED_FILES)
        untagged = f"SELECT {of_files} {rows} WHERE NOT ({has_tags})"
        _copy(source, untagged, target, UNTAGGED_FILES)
    _create_views(target, tags, families)


_OF_FILES = FILES_COLUMNS | INTERNAL_FILES_COLUMNS


@dataclass(frozen=True)
class _Column:
    """A column of the wide table: its definition there, and its value in the catalog's terms."""

    definition: str
    value: str


def _other_tables(source: duckdb.DuckDBPyConnection, families: Sequence[str]) -> list[str]:
    """Tables that are laid out as they are: the catalog's format, the kinds of its tags."""
    rows = source.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND "
        "schema_name = 'main' ORDER BY table_oid",
        [LAKE],
    ).fetchall()
    return [table for (table,) in rows if table != FILES and table not in families]


def _copy(
    source: duckdb.DuckDBPyConnection,
    statement: str,
    target: duckdb.DuckDBPyConnection,
    table: str,
) -> None:
    """Put a statement's rows into a table, which is made where it is missing."""
    reader = source.execute(statement).to_arrow_reader(_ROWS_AT_ONCE)
    target.register("incoming", reader.schema.empty_table())
    target.execute(f'CREATE TABLE IF NOT EXISTS "{table}" AS SELECT * FROM incoming')
    while batches := list(islice(reader, _BATCHES_UNCOMPRESSED)):
        target.register("incoming", pa.Table.from_batches(batches))
        target.execute(f'INSERT INTO "{table}" SELECT * FROM incoming')
        target.execute(f"CHECKPOINT {LAKE}")  # compresses them
    target.unregister("incoming")


def _portions(source: duckdb.DuckDBPyConnection) -> list[str]:
    """Conditions on fkey that divide the files into portions whose joins fit into memory.

    The joins of 10,000,000 frames at once spill 10 GB to disk. A scan lists files in order, so that
    a range of fkeys lies in few Parquet files.
    """
    row = source.execute(f"SELECT count(*) FROM {LAKE}.main.{FILES}").fetchone()
    portions = -(-(row[0] if row else 0) // _FILES_AT_ONCE)
    if portions < 2:
        return ["true"]
    drawn = source.execute(
        f"SELECT fkey FROM {LAKE}.main.{FILES} USING SAMPLE {_DRAWN * portions} ROWS ORDER BY fkey"
    ).fetchall()
    ends = ["'" + fkey.replace("'", "''") + "'" for (fkey,) in drawn[_DRAWN::_DRAWN]]
    return [
        f"fkey < {ends[0]}",
        *(f"fkey >= {low} AND fkey < {high}" for low, high in pairwise(ends)),
        f"fkey >= {ends[-1]}",
    ]


def _rows(table: str, condition: str) -> str:
    return f"(FROM {LAKE}.main.{table} WHERE {condition})"


def _joins(families: Sequence[str], condition: str) -> str:
    return " ".join(
        f"LEFT JOIN {_rows(family, condition)} AS {family} ON {family}.fkey = f.fkey"
        for family in families
    )


def _join_labels(condition: str) -> str:
    """The files that frames of a portion name as their labels, wherever those lie."""
    key = f"f.cluster || ':' || f.datasource || ':' || {FRAME_TAGS}.label_file"
    named = (
        f"SELECT {key} FROM {_rows(FILES, condition)} AS f {_joins([FRAME_TAGS], condition)} "
        f"WHERE {FRAME_TAGS}.fkey IS NOT NULL"
    )
    return f"LEFT JOIN {_rows(FILES, f'fkey IN ({named})')} AS l ON l.fkey = {key}"


def _columns(
    source: duckdb.DuckDBPyConnection, tags: Sequence[TagColumn], families: Sequence[str]
) -> list[_Column]:
    """The wide table's columns."""
    fast = "USING COMPRESSION uncompressed"  # a compressed number takes three times as long
    columns = [
        _Column(f'"{name}" {kind} {fast if name == "fkey" else ""}', f'f."{name}"')
        for name, kind in _OF_FILES.items()
    ]
    for tag in tags:
        kind = _enum(source, tag) if tag.type == "VARCHAR" else tag.type
        how = "" if kind == "VARCHAR" else fast
        columns.append(_Column(f'"{tag.tag}" {kind} {how}', f'{tag.table}."{tag.tag}"'))
    columns += [
        _Column(f"{in_family(family)} BOOLEAN", f"{family}.fkey IS NOT NULL AS {in_family(family)}")
        for family in families
    ]
    columns.append(_Column(f"{FKEY_HASH} UBIGINT {fast}", f"{HASH_OF_FKEY} AS {FKEY_HASH}"))
    columns.append(_Column(f"{LABEL_SIZE} BIGINT", f"l.size AS {LABEL_SIZE}"))
    return columns


def in_family(table: str) -> str:
    """Name of the column that says whether a family has a row for the file; no tag's name."""
    return f"_in_{table}"


def _enum(source: duckdb.DuckDBPyConnection, tag: TagColumn) -> str:
    """The type of a text tag: an ENUM where it has few values."""
    of_tag = f'FROM {LAKE}.main.{tag.table} WHERE "{tag.tag}" IS NOT NULL'
    row = source.execute(f'SELECT approx_count_distinct("{tag.tag}") {of_tag}').fetchone()
    if row is None or not 0 < row[0] <= _MOST_VALUES:
        return "VARCHAR"
    rows = source.execute(f'SELECT DISTINCT "{tag.tag}" {of_tag} ORDER BY 1').fetchall()
    values = ", ".join("'" + value.replace("'", "''") + "'" for (value,) in rows)
    return f"ENUM ({values})"


def _create_views(
    target: duckdb.DuckDBPyConnection, tags: Sequence[TagColumn], families: Sequence[str]
) -> None:
    """The catalog's own names, and every_file."""
    names = ", ".join(f'"{name}"' for name in _OF_FILES)
    target.execute(
        f"CREATE VIEW {FILES} AS SELECT {names} FROM {LAKE}.main.{TAGGED_FILES} "
        f"UNION ALL SELECT {names} FROM {LAKE}.main.{UNTAGGED_FILES}"
    )
    shown = {tag.tag: f'"{tag.tag}"' for tag in tags}
    for tag in tags:
        if tag.type == "VARCHAR":
            shown[tag.tag] = f'CAST("{tag.tag}" AS VARCHAR)'
    for family in families:
        values = "".join(
            f', {shown[tag.tag]} AS "{tag.tag}"' for tag in tags if tag.table == family
        )
        target.execute(
            f"CREATE VIEW {family} AS SELECT fkey{values} FROM {LAKE}.main.{TAGGED_FILES} "
            f"WHERE {in_family(family)}"
        )
    every = "".join(f', {shown[tag.tag]} AS "{tag.tag}"' for tag in tags)
    nulls = "".join(f', CAST(NULL AS {tag.type}) AS "{tag.tag}"' for tag in tags)
    target.execute(
        f"CREATE VIEW {EVERY_FILE} AS SELECT {names}{every} FROM {LAKE}.main.{TAGGED_FILES} "
        f"UNION ALL SELECT {names}{nulls} FROM {LAKE}.main.{UNTAGGED_FILES}"
    )
