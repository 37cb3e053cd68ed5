"""DuckLake's own tables are known in one place."""

import re

from tests.test_import_circles import PACKAGES, REPOSITORY

FOLDER = REPOSITORY / "catalog" / "lake" / "metadata"
_NAME = re.compile(r"\bducklake_(?:schema|snapshot|table|column|data|delete|file)")


def test_one_folder_names_them() -> None:
    """A release of DuckLake that changes a table changes statements of this folder alone."""
    named = {
        file
        for package in PACKAGES
        for file in (REPOSITORY / package).rglob("*.py")
        if _NAME.search(file.read_text(encoding="utf-8"))
    }
    assert named
    assert {file for file in named if not file.is_relative_to(FOLDER)} == set()
