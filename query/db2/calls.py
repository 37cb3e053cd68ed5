"""Nodes that sqlglot has no class for, which the parser makes of calls, and how they are built."""

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp

MAX_TEXT = 32_672
"""Db2's longest VARCHAR [bytes]."""

MOST_CHARACTERS = "most characters"
"""Key of the meta data of SUBSTR: characters that its text may have."""

OF_ENGINE = "of the engine"
"""Key of the meta data of a condition that means in DuckDB what it shall: it is not rewritten."""

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


class Db2Aggregate(exp.Expression, exp.AggFunc):
    """MEDIAN(x), LAG(x) and others over several rows that sqlglot has no class for."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "name": True, "expressions": False}
    is_var_len_args = True


class Random(exp.Expression, exp.Func):
    """RAND(), and what says which rows of a table a sample has.

    Arguments:
        this: The seed; the same for all rows of a statement, and another for each, where there is
            none and a table is given.
        table: Name of a table in FROM, whose rows it tells apart; else each row is another.
        expressions: Columns that tell rows apart, once they are known.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "table": False, "expressions": False}
    is_var_len_args = True


def random(args: list[exp.Expr]) -> exp.Expr:
    """RAND(), RAND(seed)."""
    return Random(this=args[0] if args else None)


def aggregate(name: str) -> Build:
    """A call over several rows that becomes what query.db2.windows makes of it."""

    def build(args: list[exp.Expr]) -> exp.Expr:
        return Db2Aggregate(this=args[0], name=name, expressions=args[1:])

    return build


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


def substr(args: list[exp.Expr]) -> exp.Expr:
    """SUBSTR(text, start, length)."""
    call = Db2Function(this=args[0], name="SUBSTR", expressions=args[1:])
    call.meta[MOST_CHARACTERS] = _most_characters(args[0])
    return call


def _most_characters(text: exp.Expr) -> int:
    """The length attribute of a text, as far as it is written in the statement."""
    inner = text.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string:
        return len(inner.name)
    length = inner.args.get("precision") if isinstance(inner, Db2Cast) else None
    if isinstance(length, exp.Literal) and inner.args["kind"] in ("CHAR", "VARCHAR"):
        return int(length.name) if length.name.isdecimal() and len(length.name) < 6 else MAX_TEXT
    return MAX_TEXT


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


def of_two(node: type[exp.Expr]) -> Build:
    """A node of two arguments."""

    def build(args: list[exp.Expr]) -> exp.Expr:
        return node(this=args[0], expression=args[1])

    return build


def joined(args: list[exp.Expr]) -> exp.Expr:
    """CONCAT(x, y)."""
    return exp.Concat(expressions=args, safe=True, coalesce=False)


def listed(args: list[exp.Expr]) -> exp.Expr:
    """LISTAGG(x, separator)."""
    return exp.GroupConcat(this=args[0], separator=args[1] if args[1:] else None)
