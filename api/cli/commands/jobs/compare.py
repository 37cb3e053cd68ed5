"""framesift jobs compare."""

from typing import Annotated

import typer

from api.cli.commands.jobs.follow import plain
from api.cli.tables.table import emit_table
from api.cli.target import target
from api.cli.terminal import JsonFlag, emit_json
from catalog.errors import InvalidInput


def compare(
    names: Annotated[list[str], typer.Argument(metavar="JOB JOB...", help="Two jobs, or more.")],
    as_json: JsonFlag = False,
) -> None:
    """Show jobs beside each other: the settings in which they differ, and what they measured."""
    if len(names) < 2:
        raise InvalidInput(f"job {names[0]}: name another job to compare it with")
    compared = target().jobs.compare(names)
    if as_json:
        emit_json(compared)
        return
    emit_table(
        ("", *names),
        [
            [name, *("" if value is None else plain(value) for value in values)]
            for group in ("job", "settings", "metrics")
            for name, values in compared[group].items()
        ],
    )
