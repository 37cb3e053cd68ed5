"""Random numbers, and samples of tables as conditions on such numbers.

RAND()                                   another number for each row, and at each time
RAND(7)                                  the same number for the same row, at each time
t TABLESAMPLE BERNOULLI (10)             each row with a chance of 10 percent
t TABLESAMPLE SYSTEM (10) REPEATABLE (7) the same, and the same rows at each time

What is the same at each time is a hash of the seed and of what names the row (templates.random), so
that it depends neither on the way in which a statement is computed nor on other rows.
"""

from sqlglot import exp

from catalog.errors import SqlError
from query.db2.calls import Random


def sample_tables(query: exp.Expr) -> None:
    """Make conditions of each TABLESAMPLE, in place.

    Raises:
        SqlError: SQL0104N, a form that Db2 does not have; SQLSTATE 2202H, no percentage.
    """
    for sample in list(query.find_all(exp.TableSample)):
        table = sample.parent
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise SqlError(
                -104, "42601", "TABLESAMPLE is not valid here. Expected: the name of a table "
                "before it.",
            )  # fmt: skip
        chosen = _chosen(sample, table)
        sample.pop()
        _restrict(table, chosen)


def _chosen(sample: exp.TableSample, table: exp.Table) -> exp.Expr:
    """The condition that holds for the rows of a sample."""
    method, size, seed = (sample.args.get(name) for name in ("method", "percent", "seed"))
    extra = {name for name, value in sample.args.items() if value} - {"method", "percent", "seed"}
    if extra or method is None or method.name.upper() not in ("BERNOULLI", "SYSTEM"):
        raise SqlError(
            -104, "42601", "The TABLESAMPLE is not valid. Expected: BERNOULLI or SYSTEM, a "
            "percentage in parentheses and, for the same rows each time, REPEATABLE (a number).",
        )  # fmt: skip
    percent = _number(size)
    if percent is None or not 0 < percent <= 100:
        raise SqlError(
            -171, "2202H", "The size of a TABLESAMPLE is not valid. Expected: a number above 0, "
            "100 at most.",
        )  # fmt: skip
    if seed is not None and _number(seed) is None:
        raise SqlError(
            -171, "2202G", "The REPEATABLE of a TABLESAMPLE is not valid. Expected: a number."
        )
    number = Random(this=seed and seed.copy(), table=table.alias_or_name)
    return exp.LT(this=number, expression=exp.Literal.number(repr(percent / 100)))


def _number(node: exp.Expr | None) -> float | None:
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return float(node.name) if is_number and node is not None else None


def _restrict(table: exp.Table, condition: exp.Expr) -> None:
    """Leave the rows of a table in FROM for which the condition holds."""
    clause = table.parent
    select = None if clause is None else clause.parent
    is_inner = isinstance(clause, exp.From) or (
        isinstance(clause, exp.Join)
        and not (clause.side or clause.method)
        and clause.kind in ("", "INNER", "CROSS")
    )
    if isinstance(select, exp.Select) and is_inner and not _keeps_rows(select):
        select.where(condition, copy=False)
        return
    # An outer join would lose its rows by a condition on the whole.
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    inner = table.copy()
    inner.set("alias", alias.copy())
    rows = exp.Select(expressions=[exp.Star()]).from_(inner).where(condition)
    table.replace(exp.Subquery(this=rows, alias=alias))


def _keeps_rows(select: exp.Expr | None) -> bool:
    """Return whether a join of a query has rows without a partner."""
    joins = select.args.get("joins") or () if isinstance(select, exp.Select) else ()
    return any(join.side in ("RIGHT", "FULL", "LEFT") for join in joins)
