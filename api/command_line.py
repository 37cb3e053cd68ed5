"""The command ``framesift``. Exit codes: 0 done, 1 failed, 2 wrong usage."""

import gc
import os
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from api.places import chosen
from api.places.chosen import Given
from api.terminal import stderr
from catalog.errors import FramesiftError

_COMMANDS = {
    "info": "sources:info",
    "ingest": "ingest:ingest",
    "sample-data": "ingest:sample_data",
    "watch": "watch:watch",
    "sql": "sql:sql",
    "select": "query:select",
    "classes": "statistics:classes",
    "histogram": "statistics:histogram_",
    "correlate": "statistics:correlate",
    "gaps": "statistics:gaps",
    "stage": "datasets:stage",
    "train": "jobs:train",
    "validate": "jobs:validate",
    "audit": "people:audit",
    "compact": "care:compact",
    "serve": "server:serve",
    "mcp": "assistants:mcp",
    "login": "login:login",
    "logout": "login:logout",
    "demo": "demo:demo",
    "source": "sources:source_app",
    "tags": "tags:tags_app",
    "dataset": "datasets:dataset_app",
    "jobs": "jobs:jobs_app",
    "user": "people:user_app",
    "token": "people:token_app",
    "collection": "people:collection_app",
    "policy": "policy:policy_app",
    "catalog": "care:catalog_app",
}
"""Where each command is: a module of api.commands, and a function or a group of commands in it."""


class _Commands(TyperGroup):
    """Commands that are imported when they are called, or listed with their help."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # By their names a misspelled one is corrected; get_command makes them.
        self.commands.update(dict.fromkeys(_COMMANDS, self))

    def get_command(self, _: Any, name: str) -> Any:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name].split(":")
        found = getattr(import_module(f"api.commands.{module}"), attribute)
        alone = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name)
        else:
            alone.command(name)(found)
        return get_group(alone).commands[name]


app = typer.Typer(
    name="framesift",
    cls=_Commands,
    help="Find driving frames by what is in them, and get them to training and validation jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"framesift {version('framesift')}")
        raise typer.Exit


@app.callback()
def _framesift(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print it.")
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this server, not a home; or FRAMESIFT_SERVER."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="For it. Other users of this machine see the command line: better is 'framesift "
            "login', or FRAMESIFT_TOKEN.",
        ),
    ] = None,
) -> None:
    command = context.invoked_subcommand or ""
    chosen.choose(Given(server or None, token, command))
    if command in ("serve", "demo"):
        chosen.home()  # what they start would ask the other server


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 1."""
    # What was imported stays: looking through it for garbage at the end takes a sixth of the time
    # of a short command.
    gc.freeze()
    try:
        app()
    except FramesiftError as error:
        _fail(error)
    except BrokenPipeError:
        # The reader went away, as in `framesift sql ... | head`: nothing is left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        # Where it can be one, it is imported already.
        from framesift import FramesiftServerError, NotAuthenticated

        if not isinstance(error, FramesiftServerError):
            raise
        _fail(error, _LOGIN if isinstance(error, NotAuthenticated) else "")


_LOGIN = "; framesift login URL keeps one"


def _fail(error: Exception, more: str = "") -> None:
    line = str(error).replace("\n", " ").strip() + more
    stderr.print(f"error: {line}", markup=False, emoji=False)
    sys.exit(1)


if __name__ == "__main__":
    main()
