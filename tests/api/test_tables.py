"""Tables on a narrow terminal, and statements on one."""

import io
import os
import pty
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from api.cli.rows_output import SHOWN
from api.cli.tables import table
from tests.api.servers import FRAMESIFT, environment

NAME = "camera_lidar_semantic/20180807_145028/camera/cam_front_center/" + "x" * 60 + ".png"
REASON = "is cut short: 500 bytes of 30,000 are there, so that no pixel of it can be counted"


def shown(width: int, monkeypatch: pytest.MonkeyPatch, *rows: tuple[object, ...]) -> list[str]:
    """The lines of a table with two columns."""
    file = io.StringIO()
    monkeypatch.setattr(table, "stdout", Console(file=file, width=width, soft_wrap=True))
    table.emit_table(("file", "reason"), rows)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_names_are_whole_and_sentences_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's name stands on one line at 80 columns and can be copied; a reason has lines."""
    lines = shown(80, monkeypatch, (NAME, "Traffic guide obj."), ("IBM COS", 1))
    assert lines[1] == f"{NAME}  Traffic guide obj."
    lines = shown(80, monkeypatch, ("a.png", REASON))
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines[1:]).split()) == f"a.png {REASON}"
    lines = shown(80, monkeypatch, (NAME, REASON))
    assert lines[1].startswith(NAME)
    assert all(len(word) <= len(NAME) for line in lines for word in line.split())


@pytest.mark.wide
def test_a_statement_on_a_terminal_is_a_table(catalogued: Path) -> None:
    """With names, and the first rows only; CSV as Discover's where it is piped or asked for."""

    def run(*arguments: str) -> str:
        primary, secondary = pty.openpty()
        process = subprocess.Popen(
            [str(FRAMESIFT), "sql", *arguments],
            env=environment(catalogued, {"TERM": "dumb", "COLUMNS": "80"}),
            stdout=secondary, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(secondary)
        parts = []
        try:
            while chunk := os.read(primary, 1 << 16):
                parts.append(chunk)
        except OSError:  # Linux's end of a terminal
            pass
        os.close(primary)
        assert process.wait() == 0, parts
        return b"".join(parts).decode().replace("\r\n", "\n")

    statement = "select count(*) as frames, 1.50 as share, 12345 as number from t_car"
    assert [line.split() for line in run(statement).splitlines()] == [
        ["frames", "share", "number"], ["24", "1.5", "12345"],
    ]  # fmt: skip
    assert run(statement, "--format", "csv") == "0,24,1.5,12345\n"
    many = run("select a.fkey from metaocean a, metaocean b")
    assert many.count("\n") == SHOWN + 2
    assert "only the first 1,000 rows; --format csv-named has all of them" in many
