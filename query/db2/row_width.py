"""Limits the width of a statement's rows: Db2's error where one is wider than a row may be.

DuckDB hands rows over 2,048 at a time and copies every text of each, a constant's too, outside of
its memory limit: so many rows of 32 kB are 67 MB, and of 256 kB they are half a gigabyte.
"""

from collections.abc import Mapping, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from query.db2.calls import MAX_TEXT, Db2Cast, Db2Function
from query.db2.read_only import Schema
from query.db2.scopes import columns_of
from query.db2.types import TEXT, Db2Type

MAX_ROW = 32_677
"""Db2's longest row, in pages of 32 KiB [bytes]."""

TOO_WIDE = "SQL0670N:"
"""Prefix of the DuckDB error that a guarded query raises on a row beyond MAX_ROW; the row's size
follows."""

_NARROW = MAX_ROW // 2
"""Statements whose rows are estimated below are not guarded: estimates of stored texts are none of
their longest, and there are others in every row."""

_STORED_TEXT = 64
_NUMBER = 8

_LENGTH_AT = {"LPAD": 0, "RPAD": 0, "SUBSTR": 1}
"""Functions with an argument for a text's length -> its position among what follows the text."""

_Outputs = list[tuple[str, int]]
_Columns = dict[tuple[str, str], int]


def _of_view(kind: str) -> int:
    return _STORED_TEXT if kind == "VARCHAR" else _NUMBER


class RowWidths:
    """The estimated bytes of each query's columns, inner queries first."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._outputs: dict[int, _Outputs] = {}

    def add(self, scope: Scope) -> None:
        """Estimate a query of which all inner ones were added."""
        root = scope.expression
        if isinstance(root, exp.Select):
            columns = self._columns(scope)
            self._outputs[id(root)] = [
                (item.alias_or_name, self._of(item, columns)) for item in root.expressions
            ]
        elif isinstance(root, exp.SetOperation):
            sides = self._of_query(root.this), self._of_query(root.expression)
            self._outputs[id(root)] = [
                (name, max(one, other)) for (name, one), (_, other) in zip(*sides, strict=False)
            ]

    def may_be_wide(self, query: exp.Expr) -> bool:
        """Return whether a row of the query may be wider than rows usually are."""
        return sum(width for _, width in self._of_query(query)) > _NARROW

    def _of_query(self, query: exp.Expr) -> _Outputs:
        return self._outputs.get(id(query.unnest()), [])

    def _columns(self, scope: Scope) -> _Columns:
        return columns_of(scope, self._outputs, self._schema, _of_view)

    def _of(self, node: exp.Expr, columns: Mapping[tuple[str, str], int]) -> int:
        if isinstance(node, exp.Subquery | exp.Query):
            return max((width for _, width in self._of_query(node)), default=MAX_TEXT)
        if isinstance(node, exp.Column):
            # One of a query that names itself is not known.
            return columns.get((node.table, node.name), MAX_TEXT)
        if isinstance(node, exp.Literal):
            return len(node.name.encode()) if node.is_string else _NUMBER
        if isinstance(node, exp.GroupConcat):
            return MAX_TEXT
        if isinstance(node, Db2Cast | Db2Function):
            return self._of_call(node, columns)
        widths = [self._of(child, columns) for child in node.iter_expressions()]
        if isinstance(node, exp.DPipe | exp.Concat):
            return min(MAX_TEXT, sum(widths))
        if isinstance(node, exp.Replace):
            grown = widths[0] * max(1, widths[-1])
            return min(MAX_TEXT, grown)
        return max([_NUMBER, *widths])

    def _of_call(self, node: Db2Cast | Db2Function, columns: Mapping[tuple[str, str], int]) -> int:
        """A call, which may make a longer text than it is given."""
        if isinstance(node, Db2Cast) and node.args["kind"] == "CHAR":
            return _constant(node.args.get("precision"))
        name = node.args.get("name")
        if name in _LENGTH_AT and len(node.expressions) > _LENGTH_AT[name]:
            return _constant(node.expressions[_LENGTH_AT[name]])
        widths = [self._of(child, columns) for child in node.iter_expressions()]
        if name == "REGEXP_REPLACE":
            return min(MAX_TEXT, widths[0] * max([1, *widths[2:3]]))
        return max([_NUMBER, *widths])


def _constant(length: exp.Expr | None) -> int:
    """The bytes of a text of that length; of no constant, the most."""
    digits = length.name if isinstance(length, exp.Literal) and not length.is_string else ""
    return min(MAX_TEXT, int(digits[:6])) if digits.isdecimal() else MAX_TEXT


def guarded(statement: str, outputs: Sequence[tuple[str, Db2Type]]) -> str:
    """The statement in DuckDB's SQL, failing on a row that is too wide before it is handed over."""
    columns = [f"_{number}" for number in range(len(outputs))]
    width = _sum([
        _width(column, kind) for column, (_, kind) in zip(columns, outputs, strict=True)
    ])  # fmt: skip
    error = f"error('{TOO_WIDE}' || CAST({width} AS VARCHAR))"
    first = f"CASE WHEN {width} > {MAX_ROW} THEN {error} ELSE {columns[0]} END"
    items = ", ".join(
        f"{value} AS {exp.to_identifier(name, quoted=True).sql()}"
        for value, (name, _) in zip([first, *columns[1:]], outputs, strict=True)
    )
    return f"SELECT {items} FROM ({statement}) AS _rows({', '.join(columns)})"


def _sum(terms: list[str]) -> str:
    """A sum as a tree: DuckDB's expressions have at most 1,000 levels."""
    while len(terms) > 1:
        pairs = [f"({one} + {other})" for one, other in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def _width(column: str, kind: Db2Type) -> str:
    if kind.is_number or kind.is_datetime:
        return str(_NUMBER)
    text = column if kind is TEXT else f"CAST({column} AS VARCHAR)"
    return f"coalesce(strlen({text}), 0)"
