"""Options that several commands share, as one dataclass per group."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_type_hints

_Command = Callable[..., None]


def with_options(name: str, group: type[Any]) -> Callable[[_Command], _Command]:
    """Give a command all options of a dataclass in place of its parameter ``name``.

    Args:
        name: The parameter, which is given an instance.
        group: A dataclass whose fields are annotated as Typer's options, each with a default.
    """

    def decorate(command: _Command) -> _Command:
        hints = get_type_hints(group, include_extras=True)
        own = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        kind = inspect.Parameter.KEYWORD_ONLY  # one without a default may follow one that has it
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name != name:
                parameters.append(parameter.replace(annotation=own[parameter.name], kind=kind))
                continue
            for field in fields(group):
                factory = field.default_factory
                default = field.default if factory is MISSING else factory()
                parameters.append(
                    inspect.Parameter(
                        field.name, kind, default=default, annotation=hints[field.name]
                    )
                )

        @wraps(command)
        def given_all(**values: Any) -> None:
            options = {field.name: values.pop(field.name) for field in fields(group)}
            command(**{name: group(**options)}, **values)

        given_all.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        given_all.__annotations__ = {one.name: one.annotation for one in parameters}
        return given_all

    return decorate
