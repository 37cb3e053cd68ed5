"""Options that several commands share, as one dataclass per group."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_type_hints

_Command = Callable[..., None]


def option_parameters(group: type[Any]) -> Iterator[inspect.Parameter]:
    """The options of a dataclass, as Typer reads them from a command's signature.

    Args:
        group: Its fields are annotated as Typer's options, each with a default.
    """
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        factory = field.default_factory
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,  # one without a default may follow one that has it
            default=field.default if factory is MISSING else factory(),
            annotation=hints[field.name],
        )


def with_options(name: str, group: type[Any]) -> Callable[[_Command], _Command]:
    """Give a command all options of a dataclass in place of its parameter ``name``.

    Args:
        name: The parameter, which is given an instance.
        group: See `option_parameters`.
    """

    def decorate(command: _Command) -> _Command:
        own = get_type_hints(command, include_extras=True)
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == name:
                parameters.extend(option_parameters(group))
            else:
                parameters.append(parameter.replace(annotation=own[parameter.name], kind=kind))

        @wraps(command)
        def given_all(**values: Any) -> None:
            options = {field.name: values.pop(field.name) for field in fields(group)}
            command(**{name: group(**options)}, **values)

        given_all.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        given_all.__annotations__ = {one.name: one.annotation for one in parameters}
        return given_all

    return decorate
