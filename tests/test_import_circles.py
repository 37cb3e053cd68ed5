"""No module needs one that needs it: imports inside functions and for types alone count, too."""

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = (
    "api", "catalog", "framesift", "framesift_start", "ingest", "pipeline", "query", "sample_data",
    "training",
)  # fmt: skip


def _imports(tree: ast.AST, modules: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                # "from a import b" means the module b of a, where there is one.
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def arrows(root: Path) -> dict[str, set[str]]:
    """The modules that each module below a folder imports."""
    files = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in (root / package).rglob("*.py")
    }
    names = frozenset(files)
    return {
        name: set(_imports(ast.parse(path.read_text("utf-8")), names)) - {name}
        for name, path in files.items()
    }


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle's modules in the order of their imports; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


@pytest.mark.wide
def test_no_circles() -> None:
    """A module can be read, tested and moved without those that need it."""
    assert not (loop := circle(arrows(REPOSITORY))), " -> ".join(loop)


def test_every_kind_of_import_counts(tmp_path: Path) -> None:
    """Of modules and their names, at the top, in a function, for types only."""
    for name, text in {
        "__init__": "",
        "one": "import api.two",
        "two": "def late():\n    from api.three import name",
        "three": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from api import four",
        "four": "from api import one, other",
        "five": "from api.one import name",
    }.items():
        (tmp_path / "api").mkdir(exist_ok=True)
        (tmp_path / "api" / f"{name}.py").write_text(text)
    graph = arrows(tmp_path)
    loop = circle(graph)
    assert set(loop) == {f"api.{name}" for name in ("one", "two", "three", "four")}
    assert all(after in graph[before] for before, after in pairwise(loop))
    graph["api.three"].clear()
    assert circle(graph) == []
