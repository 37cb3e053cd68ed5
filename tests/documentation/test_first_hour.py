"""docs/first-hour.md: its commands are run as they stand, in an empty folder."""

import os
import re
import shlex
import shutil
from pathlib import Path

import httpx
import pytest

from tests.api.servers import framesift, serving
from tests.pipeline.homes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "first-hour.md").read_text(encoding="utf-8")
EXAMPLES = REPOSITORY / "docs" / "examples"

pytestmark = pytest.mark.wide


def example(name: str) -> str:
    """The text below the page's mark of that name."""
    match = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert match, name
    return match[1]


def test_the_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A data set is cataloged, asked and divided, a program learns, is scored, and a user asks."""
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    # As where .venv/bin stands first on PATH.
    active = {"PATH": f"{REPOSITORY / '.venv' / 'bin'}:{os.environ['PATH']}"}

    def run(name: str) -> list[str]:
        printed = []
        for line in example(name).splitlines():
            program, *arguments = shlex.split(line)
            assert program == "framesift", line
            done = framesift(home, *arguments, variables=active)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            printed.append(done.stdout)
        return printed

    run("draw")
    assert example("home").strip() == f"export FRAMESIFT_HOME=$PWD/{home.name}"
    added, ingested, classes = run("scan")
    assert "looks like cityscapes" in added
    assert "counted 24 frames" in ingested
    assert {"road", "car"} < {line.split()[0] for line in classes.splitlines()}
    selected, counted, drawn = run("ask")
    assert re.search(r"^\d+ frames|^5 of \d+ frames", selected.splitlines()[-1]), selected
    cars = [int(row.split(",")[-1]) for row in counted.splitlines()]
    assert min(cars) > 0
    assert drawn
    created, gaps = run("dataset")
    train, validation = map(int, re.findall(r"(?:train|validation) (\d+)", created))
    assert train + validation == 24
    assert gaps
    shutil.copy(EXAMPLES / "rows_numpy.py", tmp_path)
    run("model")
    assert len(list((tmp_path / "predictions").rglob("*.png"))) == validation
    *_, shown = run("validate")
    assert "miou" in shown.replace(" ", "").lower(), shown
    assert (home / "jobs" / "rows-scores" / "report" / "report.html").is_file()
    imported, asked = run("next")
    assert f"scores of {validation} frames" in imported
    assert re.search(r"frames, snapshot", asked), asked
    *_, token = run("user")

    with serving(home, authenticates=True) as (url, _):
        named = {"$URL": url, "$TOKEN": token.strip()}
        ours, theirs = (
            [named.get(word, word.replace("$TOKEN", named["$TOKEN"]).replace("$URL", url))
             for word in shlex.split(line)]
            for line in example("team").splitlines()
        )  # fmt: skip
        done = framesift(tmp_path / "none", *ours[1:])
        assert done.returncode == 0, done.stderr
        (header,) = (word for word in theirs if word.startswith("Authorization: "))
        answer = httpx.get(theirs[-1], headers=dict([header.split(": ", 1)]), timeout=300)
        assert answer.json()["classes"]
        exec(example("client"), {"url": url, "token": named["$TOKEN"]})
    assert int(capsys.readouterr().out) > 0
