"""make test-near: which tests are near a change."""

import pytest
from grimp import ImportGraph, build_graph

from tests import near
from tests.test_import_circles import PACKAGES


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    """All imports of the product and of tests."""
    return build_graph(*PACKAGES, "tests", cache_dir=None)


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ("query/question/operators.py", "tests/query/test_operators.py"),
        ("tests/query/oracle.py", "tests/query/test_discover_search.py"),
        ("tests/query/test_operators.py", "tests/query/test_operators.py"),
        ("tests/api/rules_of_routes.txt", "tests/api/test_rules_of_routes.py"),
        ("docs/selections.md", near.PAGES),
    ],
)
def test_what_imports_or_names_a_file_is_near(graph: ImportGraph, changed: str, first: str) -> None:
    """Of a module, a helper, a test itself, a table and a page."""
    assert first in near.near([changed], graph)[:3]


def test_each_of_several_changes_has_its_nearest_tests_first(graph: ImportGraph) -> None:
    """A module that everything imports leaves room for the tests of another; none comes twice."""
    names = near.near(["catalog/errors.py", "api/cli/commands/tags.py"], graph)
    assert len(names) == len(set(names)) > 200
    assert "tests/api/test_tags_commands.py" in names[: near.MOST]


def test_what_nothing_imports_has_no_tests(graph: ImportGraph) -> None:
    """The report says so: none run."""
    assert near.near(["LICENSE"], graph) == []
