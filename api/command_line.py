"""The command ``framesift``. Exit codes: 0 done, 1 failed, 2 wrong usage."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from api.commands import (
    care,
    catalog,
    datasets,
    demo,
    ingest,
    jobs,
    people,
    query,
    server,
    sources,
    sql,
    statistics,
    tags,
    watch,
)
from api.terminal import stderr
from catalog.errors import FramesiftError

app = typer.Typer(
    name="framesift",
    help="Find driving frames by what is in them, and get them to training and validation jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for module in (
    sources,
    ingest,
    watch,
    sql,
    query,
    statistics,
    tags,
    datasets,
    jobs,
    people,
    catalog,
    care,
    server,
    demo,
):
    module.register(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"framesift {version('framesift')}")
        raise typer.Exit


@app.callback()
def _framesift(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 1."""
    try:
        app()
    except FramesiftError as error:
        line = str(error).replace("\n", " ").strip()
        stderr.print(f"error: {line}", markup=False, emoji=False)
        sys.exit(1)
    except BrokenPipeError:
        # The reader went away, as in `framesift sql ... | head`: nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
