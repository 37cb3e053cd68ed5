"""The columns that a query can name, of views and of queries inside it; what tells rows apart."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from query.db2.calls import Random
from query.db2.read_only import Schema, too_complex

MAX_NAMING = 20_000
"""Columns that may tell the rows of a statement's random numbers apart."""

_FKEY = "fkey"

Known = TypeVar("Known")


def columns_of(
    scope: Scope,
    outputs: Mapping[int, Sequence[tuple[str, Known]]],
    schema: Mapping[str, Mapping[str, str]],
    of_view: Callable[[str], Known],
) -> dict[tuple[str, str], Known]:
    """Each column, by its table's alias and its name, with the type that is known of it.

    Args:
        outputs: What is known of the columns of the queries inside it, by their ``id``.
        schema: DuckDB's types of the views' columns.
        of_view: What is known of a view's column by its type.
    """
    columns: dict[tuple[str, str], Known] = {}
    if scope.parent is not None and scope.is_correlated_subquery:
        columns.update(columns_of(scope.parent, outputs, schema, of_view))
    for alias, source in scope.sources.items():
        if isinstance(source, Scope):
            inside = outputs.get(id(source.expression), ())
            columns.update({(alias, name): known for name, known in inside})
        else:
            for name, kind in schema.get(source.name.lower(), {}).items():
                columns[alias, name] = of_view(kind)
    return columns


def name_rows(query: exp.Query, schema: Schema) -> None:
    """Give each number of a seed the columns that tell rows apart, in place.

    Args:
        query: Whose columns have their tables.

    Raises:
        SqlError: SQL0101N, there are too many.
    """
    if query.find(Random) is None:
        return
    remaining = MAX_NAMING
    for scope in traverse_scope(query):
        for number in scope.find_all(Random):
            table: str = number.args.get("table") or ""
            if number.this is not None or table:
                columns = _columns(scope, table.lower(), schema)
                remaining -= len(columns)
                if remaining < 0:
                    raise too_complex()
                number.set("expressions", columns)


def _columns(scope: Scope, table: str, schema: Schema) -> list[exp.Expr]:
    group = scope.expression.args.get("group")
    if group is not None:  # a row is a group
        return [one.copy() for one in group.expressions if isinstance(one, exp.Column)]
    return [
        exp.column(name, table=alias, quoted=True)
        for alias, (_, source) in scope.selected_sources.items()
        if not table or alias.lower() == table
        for name in _names(source, schema)
    ]


def _names(source: object, schema: Schema) -> Sequence[str]:
    if isinstance(source, Scope):
        root = source.expression
        if isinstance(root, exp.Lateral):
            root = root.this.unnest()
        return root.named_selects if isinstance(root, exp.Query) else ()
    columns = schema.get(source.name.lower(), ()) if isinstance(source, exp.Table) else ()
    return (_FKEY,) if _FKEY in columns else list(columns)
