"""Exit codes of commands: the table of docs/command-line.md."""

from enum import IntEnum
from typing import Annotated

import typer


class ExitCode(IntEnum):
    """The end of a command, as a program can tell it; 0 is done."""

    FAILED = 1
    USAGE = 2
    NOTHING_FOUND = 3
    TARGETS_NOT_MET = 4
    BAD_FILES = 5


StrictFlag = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="End with 3 where nothing is found, 4 where targets are not met, 5 where files or "
        "rows are bad; the answer is the same.",
    ),
]


def end(code: ExitCode, *, when: bool) -> None:
    """End the command with a code ``when`` it applies, after its answer was given."""
    if when:
        raise typer.Exit(code)
