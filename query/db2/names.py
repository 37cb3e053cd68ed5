"""Every column of a query with the table it is from, or Db2's error for it."""

import re
from collections.abc import Mapping, Set
from functools import cached_property

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from catalog.errors import SqlError, nearest_names
from query.db2 import syscat
from query.db2.dialect import Db2
from query.db2.read_only import Schema
from query.db2.scopes import name_rows
from query.db2.typography import odd_characters

MAX_COLUMNS = 4_096
"""Columns of one query. Stars of stars would otherwise double them with every level."""


class Views(dict[str, Mapping[str, str]]):
    """The tables that a statement may name: a read_only.Schema, kept with its snapshot's facts.

    Where files' are among them, those of the schema SYSCAT are, too.
    """

    def __init__(self, *tables: Mapping[str, Mapping[str, str]], **more: Mapping[str, str]) -> None:
        """Know tables by their names in lower case."""
        super().__init__(*tables, **more)
        if "metaocean" in self:
            self.update(syscat.VIEWS)

    @cached_property
    def normalised(self) -> MappingSchema:
        """Names as sqlglot looks them up: to make it takes as long as to resolve a statement."""
        tables: dict[str, object] = {table: dict(columns) for table, columns in self.items()}
        return MappingSchema(tables, dialect=Db2)


def with_tables(query: exp.Query, schema: Views) -> exp.Query:
    """The query with every star written out and every column's table before it.

    Raises:
        SqlError: SQL0206N unknown column, SQL0203N ambiguous column, SQL0212N two tables of one
            name, SQL0840N too many columns.
    """
    _number_unnamed(query)
    try:
        _Names(schema).check(query)
        for table in query.find_all(exp.Table):
            table.set("db", None)  # BLUADMIN is the only schema there is
        qualified: exp.Expr = qualify(
            query, dialect=Db2, schema=schema.normalised, quote_identifiers=True
        )
    except SqlglotError as error:
        raise _not_resolved(error) from error
    if not isinstance(qualified, exp.Query):
        raise TypeError(f"qualify made a {qualified.key} of a query")
    for select in qualified.find_all(exp.Select):
        if select.args.get("distinct") is not None:
            _check_distinct_order(select)
    name_rows(qualified, schema)
    return qualified


def _check_distinct_order(select: exp.Select) -> None:
    """DISTINCT rows may be ordered by what they show: of another column, a row has many."""
    order = select.args.get("order")
    selected = {item.unalias() for item in select.expressions}
    names = {item.alias_or_name for item in select.expressions}
    for term in order.expressions if order is not None else ():
        key = term.this.unnest()
        is_name = isinstance(key, exp.Column) and not key.table and key.name in names
        if not (is_name or isinstance(key, exp.Literal) or key in selected):
            raise SqlError(
                -214, "42822", f'An expression in ORDER BY, "{_printed(key)}", is not valid: it is '
                "not in the SELECT list of a SELECT DISTINCT.",
            )  # fmt: skip


def _printed(expression: exp.Expr) -> str:
    plain = expression.copy()
    for identifier in plain.find_all(exp.Identifier):
        identifier.set("quoted", False)
    return str(plain.sql(dialect=Db2))[:60].upper()


def output_columns(query: exp.Query, schema: Views) -> list[str]:
    """The names of a query's columns, in lower case; the query may not be used any more.

    Raises:
        SqlError: As `with_tables`.
    """
    _number_unnamed(query)
    try:
        return _Names(schema).check(query)
    except SqlglotError as error:
        raise _not_resolved(error) from error


def _number_unnamed(query: exp.Query) -> None:
    """Give each result column that is no plain column the name ``_col_`` and its position."""
    for select in list(query.find_all(exp.Select)):
        for index, item in enumerate(select.expressions):
            if isinstance(item, exp.Alias | exp.Column) or item.is_star:
                continue
            # An Alias round a subquery too, whose own alias sqlglot does not take for a name.
            name = item.args.get("alias") if isinstance(item, exp.Subquery) else None
            identifier = name.this if name is not None else exp.to_identifier(f"_col_{index}")
            item.set("alias", None)
            select.expressions[index] = named = exp.Alias(this=item.copy(), alias=identifier)
            named.parent, named.arg_key, named.index = select, "expressions", index


def _not_resolved(error: SqlglotError) -> SqlError:
    text = " ".join(str(error).split())
    if text.startswith("Unknown output column"):
        position = text.rpartition(" ")[2]
        return SqlError(
            -125, "42805", f"The column number {position} in ORDER BY or GROUP BY is not valid."
        )
    used_twice = text.removeprefix("Alias already used: ")
    if used_twice != text:
        return SqlError(
            -212, "42712", f'"{used_twice}" is a duplicate table designator. Name one otherwise.'
        )
    column = re.search(r"""[Cc]olumn:? ['"]*([^'" ,]+)""", text)
    name = f'"{column[1].upper()}"' if column else "A name"
    return SqlError(-206, "42703", f"{name} is not valid in the context where it is used.")


class _Names:
    """The column names of every scope, inner scopes first."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.outputs: dict[int, list[str]] = {}
        self.tags = set(schema.get("metaocean_view", ())) - set(schema.get("metaocean", ()))

    def check(self, query: exp.Query) -> list[str]:
        """The query's columns; raise for one that is in no table of its scope, or in several."""
        outputs: list[str] = []
        for scope in traverse_scope(query):
            outputs = self._outputs(scope)
            if len(outputs) > MAX_COLUMNS:
                raise SqlError(
                    -840, "54004", f"The SELECT list has more than {MAX_COLUMNS} columns."
                )
            self.outputs[id(scope)] = outputs
            self._check_scope(scope)
        return outputs

    def _outputs(self, scope: Scope) -> list[str]:
        if scope.outer_columns:
            return [name.lower() for name in scope.outer_columns]
        if scope.set_operation_scopes:
            return self.outputs[id(scope.set_operation_scopes[0])]
        root = scope.expression
        if isinstance(root, exp.Lateral):
            inner = root.this.unnest()
            return next(
                self.outputs[id(one)]
                for one in scope.sources.values()
                if isinstance(one, Scope) and one.expression is inner
            )
        if not isinstance(root, exp.Query):
            return []
        names: list[str] = []
        for item in root.selects:
            names += self._names_of(item, scope) if item.is_star else [item.alias_or_name.lower()]
        return names

    def _names_of(self, star: exp.Expr, scope: Scope) -> list[str]:
        """The columns that ``*`` or ``table.*`` stands for."""
        prefix = star.table.lower() if isinstance(star, exp.Column) else ""
        return [
            name
            for alias, source in scope.selected_sources.items()
            if not prefix or alias.lower() == prefix
            for name in self._columns(source[1])
        ]

    def _columns(self, source: exp.Expr | Scope) -> list[str]:
        if isinstance(source, Scope):
            known = self.outputs.get(id(source))
            if known is None:  # a recursive CTE names itself before it is complete
                root = source.expression
                names = source.outer_columns or (
                    root.named_selects if isinstance(root, exp.Query) else []
                )
                known = [name.lower() for name in names]
            return known
        return list(self.schema.get(source.name.lower(), ()))

    def _level(self, scope: Scope) -> dict[str, set[str]]:
        return {
            alias.lower(): set(self._columns(source))
            for alias, (_, source) in scope.selected_sources.items()
        }

    def _check_scope(self, scope: Scope) -> None:
        levels = [self._level(scope)]
        outer = scope.parent
        while outer is not None:  # a subquery sees the tables around it
            levels.append(self._level(outer))
            outer = outer.parent
        outputs = set(self.outputs[id(scope)])
        for column in scope.columns:
            inside = column.find_ancestor(exp.Query) is scope.expression
            if inside and not isinstance(column.this, exp.Star):
                late = column.find_ancestor(exp.Order, exp.Group, exp.Having)
                _check_column(column, levels, outputs if late else set(), self.tags)


def _check_column(
    column: exp.Column, levels: list[dict[str, set[str]]], outputs: set[str], tags: Set[str]
) -> None:
    name, table = column.name.lower(), column.table.lower()
    if table:
        columns = next((known[table] for known in levels if table in known), set())
        if name not in columns:
            raise _unknown_column(f"{table}.{name}", {f"{table}.{c}" for c in columns}, tags)
        return
    for known in levels:
        holders = [alias for alias, columns in known.items() if name in columns]
        if len(holders) > 1:
            raise SqlError(-203, "42702", f'A reference to column "{name.upper()}" is ambiguous.')
        if holders:
            return
    if name not in outputs:
        raise _unknown_column(name, set().union(*levels[0].values()), tags)


def _unknown_column(name: str, known: set[str], tags: Set[str]) -> SqlError:
    nearest, tag = nearest_names(name, sorted(known)), name.rpartition(".")[2]
    hint = f' The nearest is "{nearest[0].upper()}".' if nearest else ""
    if tag in tags:
        hint = f" It is a tag: ask metaocean_view for it, or t_{tag}, whose column is value."
    hint += odd_characters(name)
    return SqlError(
        -206, "42703", f'"{name.upper()}" is not valid in the context where it is used.{hint}'
    )
