"""Options of commands derived from orders: what one means and may hold, its setting says."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline.runs.setting import Row, Setting, rows

_NEGATIVE = "--no-"


class OrderOptions:
    """Options of a command for fields of an order."""

    def __init__(
        self, order: type, names: Callable[[str], bool], more: Collection[str] = ()
    ) -> None:
        """Those of the fields whose names are chosen.

        Args:
            order: Has the fields.
            names: Chooses them.
            more: Parameters that the command has for something else.
        """
        self._rows = {
            f"order_{row.name}" if row.name in more else row.name: row
            for row in _in_order(rows(order))
            if names(row.name)
        }

    def parameters(self, *names: str) -> Iterator[inspect.Parameter]:
        """The options as Typer reads them from a signature: of these fields, or of all."""
        return (
            _parameter(name, row)
            for name, row in self._rows.items()
            if not names or row.name in names
        )

    def values(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The order's fields that a command line gave, by name; other parameters do not count."""
        values = {
            row.name: _value(row.setting, parameters.get(name)) for name, row in self._rows.items()
        }
        return {name: value for name, value in values.items() if value is not None}


def _in_order(every: tuple[Row, ...]) -> Iterator[Row]:
    """The rows in the order of a command's help."""
    behind: dict[str | None, list[Row]] = {}
    for row in every:
        behind.setdefault(row.setting.after, []).append(row)
    yield from behind.get("", ())
    for row in behind.get(None, ()):
        yield row
        yield from behind.get(row.name, ())


def option_of(order: type, name: str) -> Any:
    """Typer's option for a field of an order, in the annotation of a command's parameter."""
    return _option(_row(order, name))


def argument_of(order: type, name: str) -> Any:
    """Typer's argument for a field of an order, likewise."""
    setting = _row(order, name).setting
    return typer.Argument(help=setting.help, metavar=setting.metavar)


def _row(order: type, name: str) -> Row:
    return next(row for row in rows(order) if row.name == name)


def _option(row: Row) -> Any:
    setting, types = row.setting, row.types
    bounded = (
        setting.ranged
        and setting.parse is None
        and (int in types or (float in types and setting.ge is not None))
    )
    shows_default = row.default is not None and not row.is_list
    return typer.Option(
        _flag(row),
        min=setting.ge if bounded else None,
        max=setting.le if bounded else None,
        help=setting.help,
        metavar=setting.metavar,
        show_default=shows_default,
    )


def _flag(row: Row) -> str:
    return row.setting.option or f"--{row.name.replace('_', '-')}"


def _parameter(name: str, row: Row) -> inspect.Parameter:
    setting, types = row.setting, row.types
    annotation, default = row.type, row.default
    if row.is_list and setting.parse is None:
        annotation, default = list[str] | None, None
    elif setting.parse is not None or Path in types:
        annotation, default = str | None, None if row.is_list else default
    elif _flag(row).startswith(_NEGATIVE):
        default = False
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[annotation, _option(row)],
    )


def _value(setting: Setting, word: Any) -> Any:
    """The field's value that an option says; None where it says none."""
    if setting.option and setting.option.startswith(_NEGATIVE):
        return False if word else None
    if isinstance(word, list | tuple):
        return tuple(word) or None
    return setting.parse(word) if setting.parse is not None and word is not None else word
