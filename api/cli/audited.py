"""The audit log's entries of commands on a home; a server's requests get theirs over HTTP."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import typer

from api.cli import destination
from api.cli.exit_codes import ExitCode
from catalog.errors import FramesiftError

_CHANGING = frozenset(
    {
        "ingest", "watch", "select", "stage", "train", "validate", "predict", "run", "improve",
        "preflight", "scaling",
        "compact", "catalog check", "catalog restore",
        "source add", "source set", "source remove",
        "tags add", "tags group", "tags set", "tags extract", "tags import", "tags import-map",
        "tags import-scores", "tags remove", "tags drop",
        "dataset create", "dataset split", "dataset extend", "dataset reduce", "dataset rebuild",
        "dataset rename", "dataset describe", "dataset remove",
        "cache verify", "cache limit", "cache pin", "cache unpin", "cache evict",
        "stagings cancel", "jobs cancel", "jobs resume", "jobs remove", "policy run",
        "trigger add", "trigger remove", "trigger enable", "trigger disable",
        "webhook add", "webhook remove",
        "question save", "question seen", "question remove",
        "user add", "user passwd", "user disable", "user remove", "user roles", "user quota",
        "token create", "token revoke",
        "collection add", "collection assign", "collection remove",
    }
)  # fmt: skip
_ONLY_WITH = {
    "select": ("save",),
    "tags group": ("words",),
    "catalog check": ("repair",),
    "cache limit": ("soft", "hard", "soft_files", "hard_files", "free", "user"),
}
"""Commands that change something only with one of these options."""
_ONLY_READS = frozenset({"dry_run", "errors"})
"""Options with which no command changes anything."""
_LEFT_OUT = frozenset({"as_json", "access_key", "url", "command", "option"})
"""Parameters that may hold secrets, or say nothing of the change."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
DONE, FAILED, INTERRUPTED = "done", "failed", "interrupted"
"""Outcomes; a request's is its HTTP status."""


def audit(command: Any, name: str) -> None:
    """Have a command, and those below it, write an entry each time one of them changes a home.

    Args:
        command: Of click.
    """
    for word, below in getattr(command, "commands", {}).items():
        audit(below, f"{name} {word}")
    if name in _CHANGING:
        command.invoke = partial(_invoke, name, command.invoke)


def _invoke(name: str, invoke: Callable[[Any], Any], context: Any) -> Any:
    if destination.server() is not None or _changes_nothing(name, context.params):
        return invoke(context)
    outcome = FAILED
    try:
        answer = invoke(context)
        outcome = DONE
    except typer.Exit as error:  # with another code it has done its work: see --strict
        outcome = FAILED if error.exit_code == ExitCode.FAILED else DONE
        raise
    except (KeyboardInterrupt, SystemExit):  # the latter by SIGTERM
        outcome = INTERRUPTED
        raise
    finally:
        _add(name, _words(context), outcome)
    return answer


def _changes_nothing(name: str, options: dict[str, Any]) -> bool:
    if any(options.get(option) for option in _ONLY_READS):
        return True
    needed = _ONLY_WITH.get(name, ())
    return bool(needed) and not any(options[option] for option in needed)


def _words(context: Any) -> str:
    """The options and arguments of the command, as the user typed them."""
    words: list[str] = []
    for parameter in context.command.params:
        is_typed = context.get_parameter_source(parameter.name).name == "COMMANDLINE"
        if not is_typed or parameter.name in _LEFT_OUT or not parameter.expose_value:
            continue
        value = context.params[parameter.name]
        several = value if isinstance(value, (list, tuple)) else [value]
        if parameter.param_type_name == "argument":
            words += [str(one) for one in several]
        elif parameter.is_flag:
            words.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            words += [f"{parameter.opts[0]} {one}" for one in several]
    return _CREDENTIALS.sub("", " ".join(words))


def _add(name: str, words: str, outcome: str) -> None:
    # They import the databases.
    from api.services.call import user_here
    from catalog.accounts import audit_log

    try:
        records = destination.home().records
        audit_log.add(records, f"command line ({user_here()})", name, words, outcome)
    except FramesiftError:
        if outcome == DONE:
            raise  # of a command that failed there may be no home
