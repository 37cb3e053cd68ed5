"""Equations of a column with texts: a lookup reads the stored hash in place of the text."""

from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from query.db2.nulls import conjuncts

_FEW = 10
"""So many texts at most are looked up by their hashes: of 20, every vector that DuckDB reads has
one that looks alike."""

_HASHED = "_hashed"


def lookups(
    condition: exp.Expr | None, names: Collection[str]
) -> Iterator[tuple[exp.Column, Sequence[str]]]:
    """Columns that a condition equates with one of few texts wherever it holds, and the texts.

    Args:
        names: Of the columns that are looked for.
    """
    for member in conjuncts(condition) if condition is not None else ():
        column, texts = one_of(member)
        if column is not None and column.name in names and len(texts) <= _FEW:
            yield column, texts


def one_of(condition: exp.Expr) -> tuple[exp.Column | None, Sequence[str]]:
    """The column that a condition equates with texts, and these; None for another condition."""
    inner = condition.unnest()
    if isinstance(inner, exp.Or):
        columns: list[exp.Column] = []
        unique: dict[str, None] = {}
        for side in inner.flatten():
            column, texts = one_of(side)
            if column is None or column != (columns or [column])[0]:
                return None, ()
            columns.append(column)
            unique.update(dict.fromkeys(texts))
        return columns[0], [*unique]
    if isinstance(inner, exp.In):
        left, operands = inner.this.unnest(), inner.expressions
    elif isinstance(inner, exp.EQ):
        pair = inner.left.unnest(), inner.right.unnest()
        left, *operands = pair if isinstance(pair[0], exp.Column) else pair[::-1]
    else:
        return None, ()
    literals = [operand.unnest() for operand in operands]
    if not (isinstance(left, exp.Column) and literals) or not all(
        isinstance(literal, exp.Literal) and literal.is_string for literal in literals
    ):
        return None, ()
    return left, [*dict.fromkeys(literal.name for literal in literals)]


def has_hash(
    stored: exp.Column, texts: Sequence[str], function: str, name: str, table: str
) -> exp.Expr:
    """The condition that a stored hash is that of one of some texts.

    DuckDB reads the other columns of few rows only where a join tells it which these are, and not
    where a list does.

    Args:
        function: Made the hashes that are stored.
        name: The hashes' column in the table.
        table: Has every row that is looked for.
    """
    hashes: list[exp.Expr] = [
        exp.Anonymous(this=function, expressions=[exp.Literal.string(text)]) for text in texts
    ]
    if len(hashes) == 1:
        return exp.EQ(this=stored, expression=hashes[0])
    column = exp.column(name, table=_HASHED, quoted=True)
    among = exp.Select(expressions=[column]).from_(
        exp.table_(table, db="main", quoted=True, alias=_HASHED)
    )
    among = among.where(exp.In(this=column.copy(), expressions=hashes), copy=False)
    return exp.In(this=stored, query=exp.Subquery(this=among))


def hashed(column: exp.Column, texts: Sequence[str]) -> Sequence[str]:
    """Texts as their stored hashes were made: blanks at the end do not count, but in an fkey."""
    if column.name == "fkey":
        return texts
    return [*dict.fromkeys(text.rstrip(" ") for text in texts)]
