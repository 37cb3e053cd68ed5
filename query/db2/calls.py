"""Nodes that sqlglot has no class for, which the parser makes of calls, and how they are built."""

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

VIEW_TEXT = "text of"
"""Key of the meta data of a CAST that stands for a view's text: the type of what it is text of."""

Build = Callable[[list[exp.Expr]], exp.Expr]
"""Makes the node of a call from its arguments, as many as the function takes."""


class Db2Cast(exp.Expression, exp.Func):
    """INT(x) and its family: converts as Db2 does, not as the engine's CAST."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "precision": False,
        "scale": False,
    }


class Db2Function(exp.Expression, exp.Func):
    """DAYS(x) and others that sqlglot has no class for, or one of another meaning."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "name": True, "expressions": False}
    is_var_len_args = True


def cast(kind: str) -> Build:
    """A conversion to ``kind``; what follows the value are its precision and its scale."""

    def build(args: list[exp.Expr]) -> exp.Expr:
        this, precision, scale, *_ = [*args, None, None]
        return Db2Cast(this=this, kind=kind, precision=precision, scale=scale)

    return build


def function(name: str) -> Build:
    """A call that becomes the row's template, or what semantics makes of it."""

    def build(args: list[exp.Expr]) -> exp.Expr:
        return Db2Function(this=args[0], name=name, expressions=args[1:])

    return build


def coalesce(args: list[exp.Expr]) -> exp.Expr:
    """VALUE(a, b, ...)."""
    return exp.Coalesce(this=args[0], expressions=args[1:])


def position(args: list[exp.Expr]) -> exp.Expr:
    """POSSTR(text, sought)."""
    return exp.StrPosition(this=args[0], substr=args[1])


def of(node: type[exp.Expr]) -> Build:
    """A node of one argument."""

    def build(args: list[exp.Expr]) -> exp.Expr:
        return node(this=args[0])

    return build


def joined(args: list[exp.Expr]) -> exp.Expr:
    """CONCAT(x, y)."""
    return exp.Concat(expressions=args, safe=True, coalesce=False)


def listed(args: list[exp.Expr]) -> exp.Expr:
    """LISTAGG(x, separator)."""
    return exp.GroupConcat(this=args[0], separator=args[1] if args[1:] else None)
