"""Has typer make the type of a parameter when there is a value of it.

Otherwise it makes a pydantic adapter of every parameter, and importing that takes a third of a
short command, which --help and completion do without.
"""

from typing import Any

from typer import core


def make_types_late() -> None:
    """Change typer in this process."""
    parameter = getattr(core, "_TyperParameter", None)
    made = getattr(parameter, "get_runtime_param", None)
    if made is not None:  # of another version of typer: slower, and the same
        parameter.get_runtime_param = lambda self: _LateType(lambda: made(self))  # type: ignore[union-attr]


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
        return self._made().coerce(value, param=param, ctx=ctx)
