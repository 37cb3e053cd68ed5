"""Has typer make the type of a parameter when there is a value that needs it.

Otherwise it makes a pydantic adapter of every parameter, and importing that takes a third of a
short command, which --help and completion do without. So do texts, choices and small whole numbers
that are right as they stand: typer makes the type of all others, and says what is wrong with them.
"""

import re
from typing import Any, Literal, get_args, get_origin

from typer import core

_SMALL = re.compile("[0-9]{1,9}", re.ASCII)


def make_types_late() -> None:
    """Change typer in this process."""
    parameter = getattr(core, "_TyperParameter", None)
    runtime_param = getattr(parameter, "get_runtime_param", None)
    if runtime_param is not None:  # of another version of typer: slower, and the same
        parameter.get_runtime_param = lambda self: _LateType(lambda: runtime_param(self))  # type: ignore[union-attr]


class _LateType:
    """Stands for the type of a parameter until it gets a value."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter's type, as typer makes it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if ctx.resilient_parsing:  # completion asks no command
            return value
        descriptor = param.type_descriptor
        plain = _plain(value, descriptor.annotation, descriptor.parameter_info)
        return self._made().coerce(value, param=param, ctx=ctx) if plain is None else plain


def _plain(value: Any, annotation: Any, about: Any) -> Any:
    """The value that a parameter's text means without doubt; else None."""
    if about.parser is not None:
        return None
    if get_origin(annotation) is list and isinstance(value, tuple | list):
        (kind,) = get_args(annotation)
        values = [_plain(one, kind, about) for one in value]
        return None if None in values else values
    if not isinstance(value, str):
        return None
    is_itself = annotation is str or (
        get_origin(annotation) is Literal and value in get_args(annotation)
    )
    if is_itself:
        return value
    if annotation is int and _SMALL.fullmatch(value) and not about.clamp:
        number = int(value)
        least, most = about.min, about.max
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    return None
