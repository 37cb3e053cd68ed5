"""Commands that docs/measurements.md names exist, and `make bench` writes their tables."""

import ast
import re
import shlex

import pytest

from benchmarks.measurements import PAGE, commands, in_markdown, with_output
from tests.test_documentation_names import ROOT

_COMMAND = re.compile(r"python -m (benchmarks\.\w+)((?:[^\S\n]|\\\n|[^`\n>\s])*)")

NAMED = sorted(
    {
        (module, " ".join(shlex.split(arguments.replace("\\\n", " "), comments=True)))
        for module, arguments in _COMMAND.findall(PAGE.read_text(encoding="utf-8"))
    }
)


def options_of(module: str) -> set[str]:
    """Options and words that a benchmark's parser knows, read from its source."""
    tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize(("module", "arguments"), NAMED)
def test_a_command_of_the_page(module: str, arguments: str) -> None:
    """The module is there, and its parser knows each option."""
    known = options_of(module)
    unknown = [
        word
        for word in shlex.split(arguments)
        if re.match(r"--\w", word) and word.rstrip(":.,;)") not in known
    ]
    assert not unknown, f"{module} has no {', '.join(unknown)}"


def test_the_page_names_commands() -> None:
    """Both ways: in a mark, and in text by hand; so that the test above tests something."""
    page = PAGE.read_text(encoding="utf-8")
    modules = {module for module, _ in NAMED}
    assert {"benchmarks.growth", "benchmarks.query_speed", "benchmarks.count_labels"} <= modules
    continued = "--frames 1000000 --workers 2 --clients 64 --seconds 300"
    assert ("benchmarks.serving_load", f"{continued} --datasette DIR/bin/datasette") in NAMED
    assert commands(page)
    assert page.count("<!-- measured:") == page.count("<!-- end measured -->")
    assert len(commands(page)) == page.count("<!-- measured:")


def test_each_table_has_a_command_or_a_date() -> None:
    """What no command writes is in a section that says when it was last changed."""
    generated = re.compile(r"<!-- measured: .*?<!-- end measured -->", re.DOTALL)
    by_hand = 0
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        if re.search(r"^\|", generated.sub("", section), re.MULTILINE):
            by_hand += 1
            assert re.search(r"\n\nBy hand, last changed 20\d\d-\d\d-\d\d\.\n", section), section[
                :60
            ]
    assert by_hand


def test_what_a_command_prints_replaces_what_stood_there() -> None:
    """Of that command alone: text by hand and other tables stay."""
    page = (
        "by hand\n<!-- measured: python -m benchmarks.a --b 1 -->\nold\n<!-- end measured -->\n"
        "more\n<!-- measured: .venv-bench/bin/python -m benchmarks.a --b 12 -->\n"
        "<!-- end measured -->\n"
    )
    assert commands(page) == [
        "python -m benchmarks.a --b 1", ".venv-bench/bin/python -m benchmarks.a --b 12",
    ]  # fmt: skip
    once = with_output(page, "python -m benchmarks.a --b 1", "| \\1 |")
    assert once == page.replace("old", "| \\1 |")
    assert with_output(once, "python -m benchmarks.a --b 1", "old") == page
    assert in_markdown("CPU s\n| a |\n|---|\n\nplain 1\nplain 2\n") == (
        "CPU s\n\n| a |\n|---|\n\n    plain 1\n    plain 2"
    )
