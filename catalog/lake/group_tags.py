"""Class groups: tags whose value is the sum of the pixels of classes.

    class_groups         a row for each group: its tag, and the tags of its classes
    tags_class_groups    a view with a row for each frame and a column for each group

A group is a definition and no values: the view computes it of `class_pixels`, and in memory the
wide table has a column that is computed where it is read. A class that the frame's data set does
not have counts for nothing; where it has none of the classes, and where there is no label, the
group is null.
"""

from collections.abc import Iterable, Mapping, Sequence

from catalog.lake.connection import LAKE
from catalog.lake.cursor import Cursor
from catalog.lake.schema import CLASS_PIXELS, GROUP_TAGS
from catalog.values import TagColumn

TABLE = "class_groups"

ClassGroups = Mapping[str, tuple[str, ...]]
"""The class tags of each group, by the group's tag."""


def class_groups(cursor: Cursor, schema: str = "main") -> ClassGroups:
    """The groups that the cursor's snapshot has, in order of creation.

    Args:
        schema: Has the table, as the cursor names it.
    """
    if not has_table(cursor):
        return {}
    rows = cursor.execute(f"SELECT tag, classes FROM {schema}.{TABLE} ORDER BY position").fetchall()
    return {tag: tuple(classes) for tag, classes in rows}


def groups_among(tags: Iterable[TagColumn]) -> ClassGroups:
    """The groups that are among some tags."""
    return {tag.tag: tag.classes for tag in tags if tag.classes}


def has_table(cursor: Cursor) -> bool:
    """Return whether a catalog has the table of groups."""
    return bool(
        cursor.execute(
            # duckdb_tables() does not know the views that a limited catalog has in place of tables.
            "SELECT 1 FROM duckdb_columns() WHERE database_name = ? AND schema_name = 'main' "
            "AND table_name = ? LIMIT 1",
            [LAKE, TABLE],
        ).fetchall()
    )


def sum_of(classes: Sequence[str], table: str = "") -> str:
    """The expression for a group's value: an INTEGER, as a label has at most 2**25 pixels.

    Args:
        table: Alias of the classes' table, where there are others; empty else.
    """
    columns = [f'{table}."{tag}"' if table else f'"{tag}"' for tag in classes]
    pixels = " + ".join(f"coalesce({column}, 0)" for column in columns)
    return f"CASE WHEN coalesce({', '.join(columns)}) IS NOT NULL THEN {pixels} END"


def read_from(tag: TagColumn) -> str:
    """The table that a tag's values are read from: a group's is that of the classes."""
    return CLASS_PIXELS if tag.classes else tag.table


def value_of(tag: TagColumn, table: str) -> str:
    """The expression for a tag's value.

    Args:
        table: Alias of the table that it is read from.
    """
    return sum_of(tag.classes, table) if tag.classes else f'{table}."{tag.tag}"'


def view_of(groups: ClassGroups, database: str = LAKE) -> str:
    """The statement that makes the view of groups.

    Args:
        groups: One or more.
        database: Has the classes' table, and gets the view.
    """
    values = ", ".join(f'{sum_of(classes)} AS "{tag}"' for tag, classes in groups.items())
    return (
        f"CREATE OR REPLACE VIEW {database}.main.{GROUP_TAGS} AS "
        f"SELECT fkey, {values} FROM {database}.main.{CLASS_PIXELS}"
    )
