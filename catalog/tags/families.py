"""Tag families: side tables `tags_<family>` of typed tags, one row per file.

A new family, a new tag or new rows touch the family's own table and the views, never the large
tables: a tag for every one of a million frames is a commit of a fraction of a second.
"""

import re
from collections.abc import Mapping, Sized
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import duckdb

from catalog.errors import InvalidInput, NotFound
from catalog.lake import views as discover_views
from catalog.lake.catalog import Catalog, WritableCatalog
from catalog.lake.connection import DISCOVER, LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import (
    CLASS_PIXELS_COLUMNS,
    FILES,
    FILES_COLUMNS,
    NOBODY_SETS,
    VIEW_COLUMNS,
)
from catalog.records.expected_version import ExpectedVersion, to_change, version_of
from catalog.tags import confusion_cells, kept_tags, tag_kinds
from catalog.tags.as_type import column_as

if TYPE_CHECKING:
    import pyarrow as pa

TYPES = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "VARCHAR", "TIMESTAMP")
"""Types a tag may have."""

MOST_TAGS = 4_000
"""Most tags of a catalog: a Db2 result has at most 4,096 columns, and metaocean_view has all
tags."""

NAME_CHARACTERS = 64
"""Longest name of a tag or family."""

_PREFIX = "tags_"
_TAG_NAME = re.compile(r"[a-z]([a-z0-9_-]*[a-z0-9_])?")
_FAMILY_NAME = re.compile(r"[a-z][a-z0-9_]*")

# Columns that t_<tag> and selections have beside the tags.
_RESERVED = {"value", "image_file", "image_size", "label_size", "fkey_hash"}


@dataclass(frozen=True, slots=True)
class Family:
    """A tag family."""

    name: str
    """Its name."""
    columns: Mapping[str, str]
    """Type of each tag, in order of creation."""
    rows: int
    """Files that have a row in it."""

    @property
    def version(self) -> str:
        """Another one when it has another tag, or another number of rows."""
        return version_of([dict(self.columns), self.rows])


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of a write."""

    rows: int
    """Rows inserted or replaced."""
    unknown: tuple[str, ...]
    """fkeys that are no file of the catalog; their rows were not written."""


def table_of(family: str) -> str:
    """Name of a family's table.

    Raises:
        InvalidInput: It is no name that a family can have.
    """
    if not _FAMILY_NAME.fullmatch(family) or len(family) > NAME_CHARACTERS:
        raise InvalidInput(
            f"tag family '{family}': expected a name of at most {NAME_CHARACTERS} lower-case "
            "letters, digits and underscores that begins with a letter"
        )
    table = _table(family)
    if table in NOBODY_SETS:
        raise InvalidInput(
            f"tag family '{family}' is the catalog's own, which nobody writes; choose another name"
        )
    return table


def _table(family: str) -> str:
    return _PREFIX + family


def family_of(table: str) -> str:
    """Name of the family that a table is of."""
    return table.removeprefix(_PREFIX)


def families(store: Catalog) -> list[Family]:
    """Every family that extractors and imports wrote, in order of creation."""
    with store.reading() as cursor:
        columns: dict[str, dict[str, str]] = {}
        for column in discover_views.tag_columns(cursor):
            if column.table not in NOBODY_SETS:
                columns.setdefault(column.table, {})[column.tag] = column.type
        listed = []
        for table, tags in columns.items():
            row = cursor.execute(f'SELECT count(*) FROM main."{table}"').fetchone()
            listed.append(Family(table.removeprefix(_PREFIX), tags, row[0] if row else 0))
        return listed


def family_columns(cursor: Cursor, family: str) -> dict[str, str]:
    """Type of each tag of a family as the cursor's snapshot has it; empty where there is none."""
    table = _table(family)
    tags = discover_views.tag_columns(cursor)
    return {column.tag: column.type for column in tags if column.table == table}


def write(
    store: WritableCatalog,
    family: str,
    columns: Mapping[str, str],
    rows: "pa.Table | None" = None,
    *,
    author: str = "tags",
) -> Written:
    """Make a family or give it what it lacks of tags, and set rows of it, in one commit.

    Args:
        columns: Tag -> type, one of TYPES; tags it already has must have that type.
        rows: fkey and any of the family's tags. A row replaces the file's older values of these
            tags; the family's other tags keep theirs.

    Raises:
        InvalidInput: A name or type cannot be used, a tag is another family's, an fkey comes
            twice, or a value does not fit its tag's type or kind.
    """
    with store.writing(f"tag family {family}", author=author) as connection:
        define(connection, family, columns)
        return put_rows(connection, family, rows) if rows is not None else Written(0, ())


def define(
    connection: duckdb.DuckDBPyConnection,
    family: str,
    columns: Mapping[str, str],
    *,
    of_scan: bool = False,
) -> list[str]:
    """Make a family, or add tags to it, inside the caller's transaction; the tags that were new.

    Args:
        of_scan: The family may be one that scans alone write.

    Raises:
        InvalidInput: As `write`.
    """
    table = _table(family)
    missing = missing_columns(connection, family, columns, of_scan=of_scan)
    present = family_columns(connection, family)
    if not present and not missing:
        raise InvalidInput(f"tag family '{family}': got no tags, expected at least one")
    if not missing:
        return []
    before = discover_views.tag_columns(connection)
    if present:
        for tag, kind in missing.items():
            connection.execute(f'ALTER TABLE {LAKE}.main.{table} ADD COLUMN "{tag}" {kind}')
    else:
        body = "".join(f', "{tag}" {kind}' for tag, kind in missing.items())
        connection.execute(f"CREATE TABLE {LAKE}.main.{table} (fkey VARCHAR NOT NULL{body})")
    discover_views.create(connection, before=before)
    return list(missing)


def missing_columns(
    cursor: Cursor, family: str, columns: Mapping[str, str], *, of_scan: bool = False
) -> dict[str, str]:
    """Those of the columns that the family would have to be given; all of them checked.

    Raises:
        InvalidInput: As `write`.
    """
    table = _table(family) if of_scan else table_of(family)
    present = {column.tag: column for column in discover_views.tag_columns(cursor)}
    missing = {}
    for tag, kind in columns.items():
        _check_type(tag, kind)
        if tag not in present:
            check_tag_name(tag)
            missing[tag] = kind
        elif present[tag].table != table:
            other = present[tag].table.removeprefix(_PREFIX)
            raise InvalidInput(
                f"tag '{tag}' belongs to family {other} already; choose another name for it"
            )
        elif present[tag].type != kind:
            raise InvalidInput(
                f"tag '{tag}' of family {family} is {present[tag].type}, got {kind}; keep its "
                f"type, choose another name, or drop the family first: framesift tags drop {family}"
            )
    check_most_tags(f"tag family '{family}'", present, len(missing))
    return missing


def check_most_tags(what: str, present: Sized, new: int) -> None:
    """Refuse more tags than a catalog may have.

    Args:
        what: What gets the tags.
        present: The tags that there are.
    """
    if new and len(present) + new > MOST_TAGS:
        raise InvalidInput(
            f"{what}: {new:,} new tags, and the catalog has {len(present):,} of at most "
            f"{MOST_TAGS:,}; drop a family that is not needed: framesift tags drop"
        )


def check_tag_name(tag: str) -> None:
    """Refuse a name that a tag cannot have.

    Raises:
        InvalidInput: Its form is wrong, or it is a column's or a reserved word.
    """
    if not _TAG_NAME.fullmatch(tag) or len(tag) > NAME_CHARACTERS:
        raise InvalidInput(
            f"tag '{tag}': expected a name of at most {NAME_CHARACTERS} lower-case letters, "
            "digits, underscores and, inside, hyphens, that begins with a letter"
        )
    if tag in CLASS_PIXELS_COLUMNS or tag in FILES_COLUMNS or tag in VIEW_COLUMNS:
        raise InvalidInput(f"tag '{tag}' is a column of every file already; choose another name")
    if tag in _RESERVED or tag in _sql_words():
        raise InvalidInput(
            f"tag '{tag}' is a word of SQL or of the catalog's views; choose another name, "
            f"such as {tag}_"
        )


def put_rows(connection: duckdb.DuckDBPyConnection, family: str, rows: "pa.Table") -> Written:
    """Set rows of a family inside the caller's transaction; see `write`.

    Raises:
        InvalidInput: The family lacks one of the columns, or as `write`.
    """
    table = table_of(family)
    columns = family_columns(connection, family)
    tags = [name for name in rows.column_names if name != "fkey"]
    for name in tags:
        if name not in columns:
            raise InvalidInput(f"tag family '{family}' has no tag '{name}'; define it first")
    connection.register("given_rows", rows)
    twice = connection.execute(
        "SELECT fkey FROM given_rows GROUP BY fkey HAVING count(*) > 1 LIMIT 1"
    ).fetchone()
    if twice is not None:
        raise InvalidInput(f"tag family '{family}': a row for {twice[0]} is given twice; keep one")
    unknown = connection.execute(
        f"SELECT fkey FROM given_rows ANTI JOIN {LAKE}.main.{FILES} USING (fkey) ORDER BY fkey"
    ).fetchall()
    new = {tag: column_as(f'g."{tag}"', rows.schema.field(tag).type, columns[tag]) for tag in tags}
    values = "".join(", {} AS {}".format(new.get(tag, f'h."{tag}"'), f'"{tag}"') for tag in columns)
    try:
        # Held before the old rows go: the other tags' values come from them.
        fresh = connection.execute(
            f"SELECT g.fkey{values} FROM given_rows AS g "
            f"SEMI JOIN {LAKE}.main.{FILES} AS f ON f.fkey = g.fkey "
            f"LEFT JOIN {LAKE}.main.{table} AS h ON h.fkey = g.fkey ORDER BY g.fkey"
        ).to_arrow_table()
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(f"tag family '{family}': a value does not fit: {reason}") from error
    connection.unregister("given_rows")
    connection.register("fresh_rows", fresh)
    tag_kinds.check_values(connection, "fresh_rows", {tag: columns[tag] for tag in tags})
    connection.execute(
        f"DELETE FROM {LAKE}.main.{table} WHERE fkey IN (SELECT fkey FROM fresh_rows)"
    )
    connection.execute(f"INSERT INTO {LAKE}.main.{table} BY NAME SELECT * FROM fresh_rows")
    connection.unregister("fresh_rows")
    return Written(fresh.num_rows, tuple(str(row[0]) for row in unknown))


def drop(store: WritableCatalog, family: str, expected: ExpectedVersion | None = None) -> int:
    """Remove a family with its tags and views from the current snapshot; how many rows it had.

    Older snapshots keep it.
    """
    table = table_of(family)
    with store.writing(f"tag family {family} dropped", author="tags") as connection:
        stored = to_change("tag family", family, expected, lambda: _held(connection, family))
        columns = stored.columns
        for tag in columns:
            connection.execute(f'DROP VIEW {LAKE}.{DISCOVER}."t_{tag}"')
        connection.execute(f"DROP TABLE {LAKE}.main.{table}")
        tag_kinds.forget(connection, columns)
        kept_tags.forget(connection, columns)
        confusion_cells.forget(connection, family)
        discover_views.create(connection)
        return stored.rows


def _held(connection: duckdb.DuckDBPyConnection, family: str) -> Family:
    columns = family_columns(connection, family)
    if not columns:
        names = {
            column.table.removeprefix(_PREFIX)
            for column in discover_views.tag_columns(connection)
            if column.table not in NOBODY_SETS
        }
        known = ", ".join(sorted(names)) or "none"
        raise NotFound("tag family", family, f"known: {known}")
    row = connection.execute(f"SELECT count(*) FROM {LAKE}.main.{table_of(family)}").fetchone()
    return Family(family, columns, int(row[0]) if row else 0)


def _check_type(tag: str, kind: str) -> None:
    if kind not in TYPES:
        raise InvalidInput(f"tag '{tag}': type '{kind}'; expected one of {', '.join(TYPES)}")


@cache
def _sql_words() -> frozenset[str]:
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(
            "SELECT keyword_name FROM duckdb_keywords() "
            "WHERE keyword_category IN ('reserved', 'type_function')"
        ).fetchall()
    return frozenset(str(row[0]) for row in rows)
