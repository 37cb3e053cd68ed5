"""Tags: adding one with its type and kind, changing a kind, removing one, and class tags."""

from collections.abc import Sequence

import duckdb

from catalog.errors import AlreadyExists, InUse, InvalidInput, NotFound, nearest_names
from catalog.lake import group_tags
from catalog.lake import views as discover_views
from catalog.lake.catalog import WritableCatalog
from catalog.lake.connection import DISCOVER, LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import (
    CLASS_PIXELS,
    CLASS_PIXELS_COLUMNS,
    FILES_COLUMNS,
    FRAME_TREES,
    GROUP_TAGS,
    NOBODY_SETS,
    POSITION_TAGS,
    VIEW_COLUMNS,
)
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.tags import class_groups, kept_tags, tag_kinds
from catalog.tags.as_type import text_as
from catalog.tags.extractions import is_extracted
from catalog.tags.families import define, family_of
from catalog.tags.tag_rules import DEFAULT, OWN_FAMILY, TYPES, TagKind, kind_named
from catalog.values import TagColumn


def add_tag(
    store: WritableCatalog,
    tag: str,
    type_name: str,
    kind: str = DEFAULT.kind,
    allowed: Sequence[str] = (),
    family: str = OWN_FAMILY,
) -> TagKind:
    """Add a tag that no file has a value of yet; its kind as it was kept.

    Args:
        tag: Its name: lower-case letters, digits, underscores and, inside, hyphens.
        type_name: A key of TYPES.
        kind: "Open", "Restricted" or "Characteristics".
        allowed: The values of a Restricted tag; numbers and times in any spelling of their type.
        family: The tag family, made where there is none.

    Raises:
        InvalidInput: A name, type, kind or value cannot be used.
        AlreadyExists: There is a tag of that name.
    """
    if type_name not in TYPES:
        raise InvalidInput(f"type '{type_name}': expected one of {', '.join(TYPES)}")
    with store.writing(f"tag {tag} added", author="tags") as connection:
        if tag in _columns(connection):
            raise AlreadyExists("tag", tag, "framesift tags list shows its type and kind")
        new_kind = kind_named(kind, _spelled(connection, TYPES[type_name], allowed))
        define(connection, family, {tag: TYPES[type_name]})
        tag_kinds.put(connection, tag, new_kind)
    return new_kind


def set_kind(
    store: WritableCatalog,
    tag: str,
    kind: str,
    allowed: Sequence[str] = (),
    expected: ExpectedVersion | None = None,
) -> TagKind:
    """Give a tag another kind, or other values; its kind as it was kept."""
    with store.writing(f"tag {tag}: kind {kind}", author="tags") as connection:
        column = _to_change(connection, tag, expected)
        new_kind = kind_named(kind, _spelled(connection, column.type, allowed))
        rows = f"{LAKE}.main.{column.table}"
        tag_kinds.check_values(connection, rows, {tag: column.type}, {tag: new_kind})
        tag_kinds.put(connection, tag, new_kind)
    return new_kind


def drop_tag(store: WritableCatalog, tag: str, expected: ExpectedVersion | None = None) -> int:
    """Remove a tag with its values, its family with its last one; how many files had a value.

    A class group loses its definition. Older snapshots keep the tag.
    """
    with store.writing(f"tag {tag} dropped", author="tags") as connection:
        before = discover_views.tag_columns(connection)
        column = _to_change(connection, tag, expected)
        _refuse_derived(connection, column)
        table = f'{LAKE}.main."{column.table}"'
        row = connection.execute(f'SELECT count("{tag}") FROM {table}').fetchone()
        connection.execute(f'DROP VIEW {LAKE}.{DISCOVER}."t_{tag}"')
        if column.table == GROUP_TAGS:
            class_groups.forget(connection, tag)
        elif any(
            each.table == column.table and each != column for each in _columns(connection).values()
        ):
            connection.execute(f'ALTER TABLE {table} DROP COLUMN "{tag}"')
        else:
            connection.execute(f"DROP TABLE {table}")
        tag_kinds.forget(connection, [tag])
        kept_tags.forget(connection, [tag])
        discover_views.create(connection, before=before)
        return int(row[0]) if row else 0


def _refuse_derived(cursor: Cursor, column: TagColumn) -> None:
    """Refuse to remove a tag that a scan or an extractor would not give again.

    Both read only what is new or has changed since they read it.
    """
    if column.table == CLASS_PIXELS and column.tag not in POSITION_TAGS:
        raise InUse("tag", column.tag, "it counts a class's pixels, which scans read from labels")
    if column.table == GROUP_TAGS:
        return
    if column.table in NOBODY_SETS:
        raise InUse("tag", column.tag, "scans give it to every frame")
    family = family_of(column.table)
    if is_extracted(cursor, family):
        raise InUse(
            "tag",
            column.tag,
            f"an extractor gives it with the others of its family; framesift tags drop {family}, "
            f"or DELETE /v1/families/{family}, removes all of them",
        )


def _to_change(cursor: Cursor, tag: str, expected: ExpectedVersion | None) -> TagColumn:
    def version(column: TagColumn) -> str:
        kind, groups = tag_kinds.kinds(cursor).get(tag, DEFAULT), group_tags.class_groups(cursor)
        return tag_kinds.tag_version(column, kind, groups.get(tag, ()))

    return to_change("tag", tag, expected, lambda: _column_of(cursor, tag), version)


def _column_of(cursor: Cursor, tag: str) -> TagColumn:
    known = _columns(cursor)
    if tag not in known:
        nearest = nearest_names(tag, known)
        hint = f"did you mean {' or '.join(nearest)}?" if nearest else ""
        raise NotFound("tag", tag[:80], hint or "framesift tags list shows them")
    return known[tag]


def _columns(cursor: Cursor) -> dict[str, TagColumn]:
    return {column.tag: column for column in discover_views.tag_columns(cursor)}


def _spelled(connection: duckdb.DuckDBPyConnection, kind: str, allowed: Sequence[str]) -> list[str]:
    """Values as a tag of that type shows them: "1" for the integer " 01"."""
    spelled = []
    for value in allowed:
        typed = text_as("CAST($1 AS VARCHAR)", kind)
        row = connection.execute(f"SELECT CAST({typed} AS VARCHAR)", [value.strip()]).fetchone()
        if row is None or row[0] is None:
            raise InvalidInput(f"value '{value}' of a Restricted tag is no {kind}")
        spelled.append(str(row[0]))
    return spelled


def add_class_tags(store: WritableCatalog, tags: Sequence[str]) -> list[str]:
    """Give every class a column in class_pixels and a view; the tags that were new."""
    with store.reading() as cursor:
        missing = _missing(cursor, tags)
    if not missing:
        return []
    with store.writing(f"{len(missing)} class tags") as connection:
        missing = _missing(connection, tags)  # another writer may have added some meanwhile
        for tag in missing:
            for table in (CLASS_PIXELS, FRAME_TREES):
                connection.execute(f'ALTER TABLE {table} ADD COLUMN "{tag}" INTEGER')
        discover_views.create(connection)
    return missing


def _missing(cursor: Cursor, tags: Sequence[str]) -> list[str]:
    present = _columns(cursor)
    for tag in tags:
        column = present.get(tag)
        other_family = column is not None and (column.table, column.type) != (
            CLASS_PIXELS,
            "INTEGER",
        )
        if column is not None and column.table == GROUP_TAGS:
            raise InvalidInput(
                f"class tag '{tag}': the catalog has a class group of that name; remove the group, "
                f"framesift tags remove {tag}, or give the class another tag in its layout"
            )
        is_column = tag in CLASS_PIXELS_COLUMNS or tag in FILES_COLUMNS or tag in VIEW_COLUMNS
        if other_family or is_column:
            raise InvalidInput(
                f"class tag '{tag}' would collide with a column of that name that the catalog "
                "already has; rename the class in class_list.json, or give it a tag in its layout"
            )
    return [tag for tag in tags if tag not in present]
