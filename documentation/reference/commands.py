"""The page of commands: help, arguments and options of each, as `--help` has them."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from api.cli.main import app
from documentation.reference.markdown import code, escaped, table

_HEAD = """\
# Commands

Every command with its arguments and options, as `framesift COMMAND --help` prints them.
[The command line](../command-line.md) has what all commands share: which home or server a command
works on, output and exit codes. `-h` and `--help` are options of each, and `--server` and `--token`
may stand behind each, too.

"""


def page() -> str:
    """The whole page."""
    root: Any = get_command(app)
    parts = [_HEAD, "## framesift\n\n", _parameters(root, "framesift")]
    group = ""
    for name, command in leaves():
        first, *rest = name.split()
        if rest and first != group:
            group = first
            parts.append(f"## {first}\n\n{escaped(_below(root, first).help or '')}\n\n")
        parts.append(f"{'###' if rest else '##'} {name}\n\n{_command(name, command)}")
    return "".join(parts)


def leaves() -> Iterator[tuple[str, Any]]:
    """Each command's words and command; groups are left out."""
    root: Any = get_command(app)
    for name in root.list_commands(None):
        command = _below(root, name)
        if hasattr(command, "commands"):
            for below in command.list_commands(None):
                yield f"{name} {below}", _below(command, below)
        else:
            yield name, command


def _below(group: Any, name: str) -> Any:
    return group.get_command(None, name)


def _command(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=f"framesift {name}")
    usage = command.get_usage(context).removeprefix("Usage: ")
    text = [f"    {' '.join(usage.split())}\n", escaped(command.help or "")]
    if command.epilog:
        text.append(escaped(command.epilog))
    return "\n".join([*text, "", _parameters(command, f"framesift {name}"), ""])


def _parameters(command: Any, name: str) -> str:
    context = command.context_class(command, info_name=name)
    records = [parameter.get_help_record(context) for parameter in command.params]
    rows = [
        (code(names), escaped(help_))
        for names, help_ in (record for record in records if record is not None)
        if not names.startswith("-h, ")
    ]
    return f"{table(('', ''), rows)}\n" if rows else ""
