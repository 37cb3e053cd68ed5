"""Columns of the wide table that a statement needs: those that it names."""

import re

import pytest

from catalog.lake.layouts import Wide
from catalog.values import TagColumn

TAGS = {
    name: TagColumn(name, table, kind)
    for name, table, kind in (
        ("car", "class_pixels", "INTEGER"), ("car_door", "class_pixels", "INTEGER"),
        ("sky", "class_pixels", "INTEGER"), ("scene", "tags_frame", "VARCHAR"),
    )
}  # fmt: skip


def columns(statement: str) -> set[str]:
    """Names of the columns that stand between SELECT and FROM."""
    sql = Wide().needed(TAGS, statement, labelled=False)
    listed = sql.removeprefix("SELECT ").partition(" FROM ")[0]
    return {re.findall(r"\w+", each)[-1] for each in re.split(r", (?![^(]*\))", listed)}


def test_only_named_columns_are_chosen() -> None:
    """With fkey; of a text its stored form, too; a name within another's may bring both."""
    assert columns('SELECT count(*) FROM frames WHERE "sky" > 1') == {"fkey", "sky"}
    assert columns('SELECT "Scene" FROM frames') == {"fkey", "scene", "_kept_scene"}
    assert columns('SELECT "car" FROM frames') == {"fkey", "car"}
    assert columns('SELECT "car_door" FROM frames') == {"fkey", "car", "car_door"}
    assert "image_file" in columns("SELECT image_file FROM frames")


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM frames", "select sky, * from f", "SELECT f.* FROM f",
                  "SELECT COLUMNS('s.*') FROM frames"],
)  # fmt: skip
def test_a_star_needs_every_column(statement: str) -> None:
    """What a statement may mean without naming it is there."""
    assert {*TAGS, "fkey", "filename", "image_size", "label_size"} <= columns(statement)
