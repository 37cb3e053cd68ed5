"""docs/selections.md: what it shows is run, its tables are the program's."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from query.question.condition import (
    MAX_DEPTH,
    MAX_LEAVES,
    SHARE_DIGITS,
    Group,
    Leaf,
)
from query.question.operators import OPERATORS, SHAPES
from query.question.question import Question
from tests.api.servers import several
from tests.pipeline.homes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "selections.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    """The code below the page's mark of that name."""
    match = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    return match[1]


def test_the_explanation_is_the_programs(home: Path) -> None:
    """Sentence and statement to the letter, but for the snapshot's number."""
    command, _, explanation = example("explain").partition("\n")
    ((status, out, err),) = several(home, shlex.split(command.removeprefix("$ framesift ")))
    assert (status, err) == (0, "")
    assert re.sub(r"snapshot \d+", "snapshot N", out) == re.sub(
        r"snapshot \d+", "snapshot N", explanation
    )


@pytest.mark.wide
def test_the_commands_run(home: Path, tmp_path: Path) -> None:
    """Each of them, and the question of the page as a file, answers with frames."""
    file = tmp_path / "question.json"
    file.write_text(example("question"))
    commands = [shlex.split(line.removeprefix("framesift "))
                for line in example("commands").splitlines()]  # fmt: skip
    commands.append(["select", "--question", str(file)])
    assert len(commands) == 7
    ended = several(home, *([*command, "--json"] for command in commands))
    for command, (status, out, err) in zip(commands, ended, strict=True):
        assert status == 0, (command, err)
        answer: dict[str, Any] = json.loads(out)
        assert answer["count"] if "count" in answer else answer["frames"], command
    question = Question.model_validate_json(example("question"))
    assert question.model_dump(mode="json", exclude_defaults=True) == json.loads(file.read_text())


def test_the_client_runs(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The lines as they stand, with the server's URL."""
    exec(example("client"), {"url": server})
    sentence, _, rest = capsys.readouterr().out.partition(" select platform")
    assert sentence.startswith("frames with 10,000 to 400,000 car pixels")
    assert int(rest.split()[-1]) > 0


def test_the_tables_are_the_programs() -> None:
    """Operators row by row; every kind of condition with its fields; the limits."""
    rows = [
        f"| `{row.name}` | {', '.join(row.types)} | {SHAPES[row.shape]} | `{row.sql}` "
        f"| {row.words} |"
        for row in OPERATORS.values()
    ]
    assert "\n".join(rows) in PAGE
    kinds = Question.model_json_schema()["$defs"]
    for model in (*Leaf.__args__, Group):
        properties = kinds[model.__name__]["properties"]
        names = properties["kind"].get("enum", [properties["kind"].get("const")])
        fields = ", ".join(f"`{name}`" for name in properties if name != "kind")
        for name in names:
            line = next(line for line in PAGE.splitlines() if line.startswith("| `")
                        and f"`{name}`" in line.split("|")[1] and fields in line)  # fmt: skip
            assert line.split("|")[2].strip() == fields
    assert f"Groups may be {MAX_DEPTH} deep and have {MAX_LEAVES} leaves" in PAGE
    assert f"at most {SHARE_DIGITS} decimals" in PAGE
