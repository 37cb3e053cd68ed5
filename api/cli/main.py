"""The command ``framesift``. Exit codes: 0 done, 1 failed, 2 wrong usage."""

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command, get_group

from api.cli import destination
from api.cli.audited import audit
from api.cli.destination import GlobalOptions
from api.cli.late_types import make_types_late
from api.cli.terminal import stderr
from catalog.errors import FramesiftError
from catalog.text.visible_text import visible
from pipeline.runs.without_packages import do_without

_COMMANDS = {
    "info": "sources:info",
    "ingest": "ingest:ingest",
    "sample-data": "ingest:sample_data",
    "watch": "watch:watch",
    "show": "show:show",
    "sql": "sql:sql",
    "select": "query:select",
    "classes": "statistics:classes",
    "histogram": "statistics:histogram_",
    "facets": "statistics:facets",
    "correlate": "statistics:correlate",
    "gaps": "statistics:gaps",
    "duplicates": "duplicates:duplicates",
    "stage": "staging.stage:stage",
    "train": "jobs.train:train",
    "validate": "jobs.validate:validate",
    "predict": "jobs.predict:predict",
    "run": "jobs.run:run",
    "preflight": "jobs.preflight:preflight",
    "scaling": "jobs.scaling:scaling",
    "improve": "jobs.improve:improve",
    "board": "board:board",
    "trigger": "automation.trigger:trigger_app",
    "webhook": "automation.webhook:webhook_app",
    "question": "questions:question_app",
    "audit": "accounts:audit",
    "compact": "maintenance:compact",
    "serve": "server:serve",
    "mcp": "server:mcp",
    "login": "login:login",
    "logout": "login:logout",
    "context": "login:context",
    "demo": "demo:demo",
    "source": "sources:source_app",
    "layout": "layouts:layout_app",
    "labels": "labels:labels_app",
    "tags": "tags:tags_app",
    "dataset": "datasets:dataset_app",
    "cache": "staging.cache:cache_app",
    "stagings": "staging.stagings:stagings_app",
    "scans": "scans:scans_app",
    "jobs": "jobs.jobs:jobs_app",
    "models": "jobs.models:models_app",
    "user": "accounts:user_app",
    "token": "accounts:token_app",
    "collection": "accounts:collection_app",
    "policy": "policy:policy_app",
    "backend": "backend:backend_app",
    "catalog": "maintenance:catalog_app",
}
"""Each command's module of api.cli.commands, and its function or group there."""


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
        imported = import_module(f"api.cli.commands.{module}")
        loaded = getattr(imported, attribute)
        alone = typer.Typer(rich_markup_mode=None)
        if isinstance(loaded, typer.Typer):
            alone.add_typer(loaded, name=name)
        else:
            alone.command(name, **getattr(imported, "TYPER_SETTINGS", {}))(loaded)
        command = get_group(alone).commands[name]
        _add_server_options(command)
        audit(command, name)
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what typer finds wrong with an option's value is told in our words."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValueError):
                from query.question.wrong_value import validation_message

                error.message = validation_message(error.__cause__)
            raise


def _add_server_options(command: Any) -> None:
    """Take --server and --token behind the command as well as before it."""
    for below in getattr(command, "commands", {}).values():
        _add_server_options(below)
    if not hasattr(command, "commands"):
        command.params += [option for option in _server_options() if _is_new(option, command)]


def _is_new(option: Any, command: Any) -> bool:
    return all(set(option.opts).isdisjoint(other.opts) for other in command.params)


def _server_options() -> list[Any]:
    """The options as one of typer's own commands has them."""
    alone = typer.Typer(add_completion=False)
    alone.command()(_chosen)
    options = get_command(alone).params
    for option in options:
        option.expose_value = False
    return list(options)


def _chosen(
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", hidden=True, callback=lambda value: _choose(server=value)),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", hidden=True, callback=lambda value: _choose(token=value)),
    ] = None,
) -> None:
    """Its parameters are the options."""


def _choose(**options: str | None) -> None:
    chosen_options = {name: text for name, text in options.items() if text}
    if chosen_options:
        destination.choose(replace(destination.global_options(), **chosen_options))
        _check_place()


def _check_place() -> None:
    """Refuse a server where what the command starts would ask it, too."""
    if destination.global_options().command in ("serve", "demo"):
        destination.home()


app = typer.Typer(
    name="framesift",
    cls=_Commands,
    help="Find driving frames by what is in them, and get them to training and validation jobs.",
    epilog="New here? 'framesift demo --no-train' goes through the main job on drawn frames, and "
    "docs/first-hour.md on to your own.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(flag: bool) -> None:
    if flag:
        from importlib.metadata import version  # with zipfile and email

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
        typer.Option(metavar="URL", help="Server to use instead of a home; or FRAMESIFT_SERVER."),
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
    destination.choose(GlobalOptions(server or None, token, context.invoked_subcommand or ""))
    _check_place()


def main() -> None:
    """Run the command line; an expected error is one line on stderr and exit code 1."""
    # What was imported stays: looking through it for garbage at the end takes a sixth of the time
    # of a short command.
    gc.freeze()
    do_without("pandas")
    if _needs_no_numpy(sys.argv[1:]):
        do_without("numpy")
    make_types_late()
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


def _needs_no_numpy(arguments: Sequence[str]) -> bool:
    """Return whether a command reads rows alone; else Arrow imports NumPy, 50 ms of its CPU."""
    command, *options = arguments or [""]
    if command == "select":
        # A sample is drawn, a dataset written with it; a file's question may have a sample.
        return not any(text.startswith(("--sample", "--save", "--question")) for text in options)
    return command == "sql"


_LOGIN = "; framesift login URL keeps one"


def _fail(error: Exception, more: str = "") -> None:
    line = visible(str(error).replace("\n", " ").strip()) + more
    stderr.print(f"error: {line}", markup=False, emoji=False)
    sys.exit(1)


if __name__ == "__main__":
    main()
