"""Tests near a change: those that import a changed module, by the fewest steps.

`make test-near` runs them. Each changed file has its tests in the order of their distance in the
graph of imports, and among equals first the one that needs the fewest modules. A test that has the
module's name in its own (`test_tags_commands` of `api/cli/commands/tags.py`) counts as one that
imports it, since commands run in processes. All first ones are taken, then all second ones, until
there are MOST files.
"""

import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from grimp import ImportGraph, build_graph

from tests.test_import_circles import PACKAGES, REPOSITORY

MOST = 8
"""Files of tests: together they take 10 to 40 s of CPU."""
PAGES = "tests/test_documentation_names.py"


def changed_files(base: str) -> list[str]:
    """Paths that differ from where this branch left another, committed or not, and new ones."""

    def git(*words: str) -> list[str]:
        ended = subprocess.run(
            ["git", *words], cwd=REPOSITORY, check=True, text=True, capture_output=True
        )
        return ended.stdout.splitlines()

    (start,) = git("merge-base", base, "HEAD")
    return [
        *git("diff", "--name-only", "--no-renames", start),
        *git("ls-files", "--others", "--exclude-standard"),
    ]


def near(changed: list[str], graph: ImportGraph) -> list[str]:
    """Files of tests for changed files, the nearest first, each once."""
    ranked = [_tests_of(Path(path), graph) for path in changed]
    in_turn = (test for same_rank in zip_longest(*ranked) for test in same_rank if test)
    pages = [PAGES] if any(path.endswith(".md") for path in changed) else []
    return list(dict.fromkeys([*pages, *in_turn]))


def _tests_of(file: Path, graph: ImportGraph) -> list[str]:
    """Files of tests for one changed file, the nearest first."""
    module = _module_of(file)
    starts = {module} if module in graph.modules else set(_naming(file, graph))
    distances = dict.fromkeys(starts, 0)
    edge = starts
    while edge:
        importers = {name for one in edge for name in graph.find_modules_that_directly_import(one)}
        edge = importers - distances.keys()
        distances |= dict.fromkeys(edge, max(distances.values()) + 1)
    words = set(file.stem.removeprefix("test_").split("_"))
    tests = [name for name in graph.modules if ".test_" in name]
    for name in tests:
        if file.suffix and words <= set(name.rpartition(".test_")[2].split("_")):
            distances[name] = min(distances.get(name, 1), 1)
    breadths = {name: len(graph.find_upstream_modules(name)) for name in tests}
    near_ones = [(distances[name], breadths[name], name) for name in tests if name in distances]
    return [f"{name.replace('.', '/')}.py" for _, _, name in sorted(near_ones)]


def _naming(file: Path, graph: ImportGraph) -> Iterator[str]:
    """Modules that name a file which is none: a page, a template, a table."""
    for path in REPOSITORY.glob("*/**/*.py"):
        module = _module_of(path.relative_to(REPOSITORY))
        if file.suffix and module in graph.modules and file.name in path.read_text("utf-8"):
            yield module


def _module_of(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def main(base: str, most: int) -> None:
    """Write the files of tests to run, and to stderr how many are not among them."""
    changed = changed_files(base)
    tests = near(changed, build_graph(*PACKAGES, "tests", cache_dir=None))
    report = f"{len(changed)} files changed since {base}; {len(tests[:most])} files of tests run"
    if len(tests) > most:
        report += f", {len(tests) - most} farther ones do not (NEAR={len(tests)} runs all)"
    sys.stderr.write(f"{report}\n")
    sys.stdout.write(" ".join(tests[:most]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else MOST)
