"""Class groups: how they are defined and removed; catalog.lake.group_tags says what they are."""

from collections.abc import Mapping, Sequence

import duckdb

from catalog.errors import AlreadyExists, InvalidInput, UnknownName
from catalog.lake import views as discover_views
from catalog.lake.catalog import WritableCatalog
from catalog.lake.connection import LAKE
from catalog.lake.group_tags import TABLE, class_groups, has_table
from catalog.lake.schema import CLASS_PIXELS, CLASS_PIXELS_COLUMNS
from catalog.tags.families import check_most_tags, check_tag_name


def define_group(store: WritableCatalog, tag: str, classes: Sequence[str]) -> tuple[str, ...]:
    """Make a tag that is the sum of classes' pixels; the classes' tags.

    Args:
        tag: Its name: lower-case letters, digits, underscores and, inside, hyphens.
        classes: Their tags or names.

    Raises:
        InvalidInput: The name cannot be used, a class comes twice or is a group, or there is none.
        AlreadyExists: There is a tag or a class of that name.
        UnknownName: The catalog has no such class.
    """
    check_tag_name(tag)
    with store.reading() as snapshot:
        by_name = {name.lower(): its for its, name in snapshot.classes.items()}
    if tag in by_name:
        raise AlreadyExists("class", tag, f"its tag is {by_name[tag]}; give the group another name")
    with store.writing(f"class group {tag}", author="tags") as connection:
        before = discover_views.tag_columns(connection)
        if tag in {column.tag for column in before}:
            raise AlreadyExists("tag", tag, "framesift tags list shows its family and type")
        known = {
            column.tag
            for column in before
            if column.table == CLASS_PIXELS and column.tag not in CLASS_PIXELS_COLUMNS
        }
        members = [by_name.get(name.lower(), name.lower()) for name in classes]
        _check_members(connection, tag, dict(zip(members, classes, strict=True)), known, by_name)
        if not members or len(set(members)) < len(members):
            raise InvalidInput(
                f"class group '{tag}': {', '.join(members) or 'no class'}; give one class or more, "
                "each once"
            )
        check_most_tags("class groups", before, 1)
        if not has_table(connection):
            connection.execute(
                f"CREATE TABLE {LAKE}.main.{TABLE} "
                "(tag VARCHAR, classes VARCHAR[], position INTEGER)"
            )
        connection.execute(
            f"INSERT INTO {LAKE}.main.{TABLE} "
            f"SELECT ?, ?, coalesce(max(position) + 1, 0) FROM {LAKE}.main.{TABLE}",
            [tag, members],
        )
        discover_views.create(connection, before=before)
    return tuple(members)


def forget(connection: duckdb.DuckDBPyConnection, tag: str) -> None:
    """Remove a group's definition inside the caller's transaction, and not its views."""
    connection.execute(f"DELETE FROM {LAKE}.main.{TABLE} WHERE tag = ?", [tag])


def _check_members(
    connection: duckdb.DuckDBPyConnection,
    tag: str,
    members: Mapping[str, str],
    known: set[str],
    by_name: Mapping[str, str],
) -> None:
    """Go on only where each is a class.

    Args:
        members: Its tag -> as it was given.
    """
    groups = class_groups(connection)
    for member, name in members.items():
        if member in groups:
            raise InvalidInput(
                f"class group '{tag}': {member} is a group itself; name its classes instead: "
                f"{' + '.join(groups[member])}"
            )
        if member not in known:
            raise UnknownName("class", name[:80], {*known, *by_name})
