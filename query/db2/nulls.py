"""Columns that are not null, and orders in which nulls come last because there are none.

Db2 sorts nulls high, so that a falling order begins with them. Where there can be none, DuckDB is
told that they come last: only then does it find the first of each group without sorting all.
"""

from collections.abc import Iterator, Mapping

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from query.db2.calls import Db2Cast
from query.db2.scopes import columns_of

_Columns = Mapping[tuple[str, str], bool]
_STRICT = (Db2Cast, exp.Cast, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul)
"""Expressions that are null where an operand is, and nowhere else."""


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that hold where this one does, as far as AND takes them apart."""
    pending = [condition]  # no recursion: a chain of thousands is as deep
    while pending:
        operand = pending.pop()
        inner = operand.unnest()
        if isinstance(inner, exp.And):
            pending += [inner.right, inner.left]
        else:
            yield operand


def columns_without_null(condition: exp.Expr) -> Iterator[exp.Column]:
    """Columns that are not null where a condition holds, as far as is easily seen."""
    inner = condition.unnest()
    operands = []
    if isinstance(inner, exp.Not):
        test = inner.this.unnest()
        if isinstance(test, exp.Is) and isinstance(test.expression, exp.Null):
            operands = [test.this]
    elif isinstance(inner, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.Between):
        operands = [inner.this, inner.args.get("expression")]
    elif isinstance(inner, exp.In):
        operands = [inner.this]
    while operands:
        node = operands.pop()
        if isinstance(node, exp.Column):
            yield node
        elif isinstance(node, _STRICT):
            operands += [node.this, node.args.get("expression")]


class NullsLast:
    """Exchanges NULLS FIRST for NULLS LAST where there are no nulls, inner queries first."""

    def __init__(self, query: exp.Expr) -> None:
        """Know nothing of a query's columns yet.

        Args:
            query: All of it, whose columns have their tables.
        """
        self._outputs: dict[int, list[tuple[str, bool]]] = {}
        # What is not null in a query may be null beside the rows of an outer join with it.
        self._has_outer_join = any(join.side for join in query.find_all(exp.Join))

    def exchange(self, scope: Scope) -> None:
        """Exchange them in a query of which all inner ones were given before, in place."""
        root = scope.expression
        if not isinstance(root, exp.Select):
            return
        group = root.args.get("group")
        if group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets):
            return  # these make nulls of what they leave out
        known: dict[tuple[str, str], bool] = {}
        if not self._has_outer_join:
            known = columns_of(scope, self._outputs, {}, bool)
        where = root.args.get("where")
        for condition in conjuncts(where.this) if where is not None else ():
            known |= {(column.table, column.name): True
                      for column in columns_without_null(condition)}  # fmt: skip
        outputs = [
            (item.alias_or_name, _is_present(item.unalias(), known)) for item in root.expressions
        ]
        self._outputs[id(root)] = outputs
        known |= {("", name): present for name, present in outputs}
        for term in scope.find_all(exp.Ordered):
            if term.args.get("nulls_first") and _is_present(term.this, known):
                term.set("nulls_first", False)


def _is_present(node: exp.Expr, known: _Columns) -> bool:
    """Return whether an expression is never null."""
    pending = [node]
    while pending:
        inner = pending.pop()
        if isinstance(inner, exp.Column):
            if not known.get((inner.table, inner.name)):
                return False
        elif isinstance(inner, _STRICT):
            operands = (inner.this, inner.args.get("expression"))
            pending += [operand for operand in operands if operand is not None]
        elif not isinstance(inner, exp.Literal):
            return False
    return True
