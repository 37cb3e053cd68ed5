"""Equations of a column with a text: a lookup reads the stored hash in place of the text."""

from collections.abc import Collection, Iterator

from sqlglot import exp

from query.db2.nulls import conjuncts


def lookups(condition: exp.Expr | None, names: Collection[str]) -> Iterator[tuple[exp.Column, str]]:
    """Columns that a condition equates with a text wherever it holds, and the text.

    Args:
        names: Of the columns that are looked for.
    """
    for member in conjuncts(condition) if condition is not None else ():
        equation = member.unnest()
        if isinstance(equation, exp.EQ):
            sides = equation.left.unnest(), equation.right.unnest()
            for column, text in (sides, sides[::-1]):
                is_text = isinstance(text, exp.Literal) and text.is_string
                if is_text and isinstance(column, exp.Column) and column.name in names:
                    yield column, text.name


def hash_of(text: str, function: str) -> exp.Expr:
    """The hash of a text, by the function that made those that are stored."""
    return exp.Anonymous(this=function, expressions=[exp.Literal.string(text)])
