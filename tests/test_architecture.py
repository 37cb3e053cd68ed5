"""The picture in docs/architecture.md is what the import contracts and the imports say.

``python -m tests.test_architecture`` draws it again.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from grimp import build_graph

from tests.test_import_circles import PACKAGES, REPOSITORY

PAGE = REPOSITORY / "docs" / "architecture.md"
_DRAWN = re.compile(r"(<!-- drawn: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def contracts() -> list[dict[str, Any]]:
    """Contracts of layers in pyproject.toml: of packages, and of a package's folders."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    listed: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return [contract for contract in listed if contract["type"] == "layers"]


def drawn() -> dict[str, str]:
    """The text of each part that is drawn."""
    return {"imports": _picture(), "folders": "\n".join(_folders())}


def redrawn(page: str) -> str:
    """The page with all parts drawn again."""
    parts = drawn()
    return _DRAWN.sub(lambda part: part[1] + parts[part[2]] + part[4], page)


def _picture() -> str:
    """Layers as arrows; dotted ones are of packages that import some folders of another."""
    chains = [contract["layers"] for contract in contracts() if "containers" not in contract]
    whole = {pair for chain in chains for pair in pairwise(chain)}
    implied = {(high, low) for chain in chains for at, high in enumerate(chain)
               for low in chain[at + 1 :]}  # fmt: skip
    imported: dict[tuple[str, str], set[str]] = {}
    graph = build_graph(*set(PACKAGES) - {"framesift_start"}, cache_dir=None)
    for name in sorted(graph.modules):
        for other in graph.find_modules_directly_imported_by(name):
            pair, leaf = (name.split(".")[0], other.split(".")[0]), other.split(".")[:2]
            if pair[0] != pair[1] and pair not in implied:
                imported.setdefault(pair, set()).add(leaf[-1])
    return "\n".join(
        [
            "```mermaid",
            "flowchart LR",
            *(f"  {high} --> {low}" for high, low in sorted(whole)),
            *(
                f'  {high} -. "{"<br>".join(sorted(leaves))}" .-> {low}'
                for (high, low), leaves in sorted(imported.items())
            ),
            "```",
            "",
        ]
    )


def _folders() -> Iterator[str]:
    """A table for each package: its folders and modules, the highest layer first."""
    layers = {contract["containers"][0]: contract["layers"] for contract in contracts()
              if "containers" in contract}  # fmt: skip
    for package in ("api", "pipeline", "query", "ingest", "catalog", "training"):
        yield f"### {package}\n\n{_sentence(package)}\n\n| Layer | | |\n|---|---|---|"
        for number, layer in enumerate(reversed(layers[package]), 1):
            for name in layer.split(" | "):
                yield f"| {number} | `{_path(package, name)}` | {_sentence(f'{package}.{name}')} |"
        yield ""


def _path(package: str, name: str) -> str:
    is_folder = (REPOSITORY / package / name).is_dir()
    return f"{package}/{name}/" if is_folder else f"{package}/{name}.py"


def _sentence(module: str) -> str:
    """The first line of a module's or a package's docstring."""
    path = REPOSITORY.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return text.splitlines()[0].replace("``", "`").replace("|", r"\|")


def test_the_page_has_the_picture_of_the_contracts() -> None:
    """Drawn again it is the same."""
    page = PAGE.read_text("utf-8")
    assert [part[2] for part in _DRAWN.finditer(page)] == list(drawn())
    assert redrawn(page) == page, "draw it again: python -m tests.test_architecture"


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text("utf-8")), "utf-8")
