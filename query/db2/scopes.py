"""The columns that a query can name, of views and of queries inside it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sqlglot.optimizer.scope import Scope

Known = TypeVar("Known")


def columns_of(
    scope: Scope,
    outputs: Mapping[int, Sequence[tuple[str, Known]]],
    schema: Mapping[str, Mapping[str, str]],
    of_view: Callable[[str], Known],
) -> dict[tuple[str, str], Known]:
    """Each column, by its table's alias and its name, with the type that is known of it.

    Args:
        scope: The query.
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
