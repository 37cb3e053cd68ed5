"""Exit codes of commands: the table of docs/command-line.md."""

from collections.abc import Mapping
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


MEANINGS: Mapping[int, str] = {
    0: "done",
    ExitCode.FAILED: "failed; one line on the error output says why; none where a pipe closed the "
    "output early, as `head` does",
    ExitCode.USAGE: "wrong usage: no such command or option, or a value that is none",
    ExitCode.NOTHING_FOUND: "done, with --strict: no row, no frame",
    ExitCode.TARGETS_NOT_MET: "done, with --strict: the dataset is short of what was asked for",
    ExitCode.BAD_FILES: "done, with --strict: files or rows were bad and left out",
}
"""What each says, in the words of the page."""


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
