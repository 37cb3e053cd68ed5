"""A checked Db2 query as the DuckDB query that gives Db2's rows.

    names       every column gets its table; unknown ones are SQL0206N
    text        compared or calculated with a number, it is converted to one (DECFLOAT)
    'a ' = 'a'  blanks at the end do not count
    int(x)      truncates; text is trimmed of blanks first
    a / b       integers truncate; decimals are exact, truncated at Db2's scale
    sum, count  typed as a Db2 warehouse types them
    dates       durations, texts and functions: dates
    wide rows   SQL0670N: row_width

DuckDB alone would round int('12.7') to 13, refuse text beside a number and divide as DOUBLE.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, cast

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from catalog.errors import SqlError
from query.db2 import (
    dates as db2_dates,
)
from query.db2 import (
    regexes,
    syscat,
    texts,
    windows,
)
from query.db2 import (
    templates as db2_templates,
)
from query.db2 import (
    types as db2_types,
)
from query.db2.calls import (
    MOST_CHARACTERS,
    OF_ENGINE,
    VIEW_TEXT,
    Db2Aggregate,
    Db2Cast,
    Db2Function,
    Random,
)
from query.db2.dialect import Db2Duration
from query.db2.functions import BY_NODE, FUNCTIONS, SAME
from query.db2.names import Views, with_tables
from query.db2.nulls import NullsLast
from query.db2.read_only import Schema, balance, too_complex
from query.db2.row_width import RowWidths, guarded
from query.db2.scopes import columns_of
from query.db2.templates import WITHOUT_END_BLANKS, Typed, exchange, fill, number
from query.db2.time_limit import go_on
from query.db2.types import DOUBLE, INTEGER, OTHER, TEXT, Db2Type

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_CURRENT = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)

_Columns = dict[tuple[str, str], Db2Type]
_NAME = "name"
"""Key of the meta data of a call that OVER may follow: Db2's name."""

_ARGUMENT = "argument"
"""Key of the meta data of an aggregate over a window: the type of what it is over."""

_Outputs = list[tuple[str, Db2Type]]
_TypeOf = Callable[[object], Db2Type]


class Tables(Protocol):
    """Tables behind the views."""

    def schema(self) -> Schema:
        """Column types of the tables."""

    def exchange_views(self, query: exp.Query) -> None:
        """Rewrite in place a query whose columns have their tables, so that it reads the tables."""

    def finish(self, query: exp.Query) -> None:
        """Rewrite in place a query in DuckDB's terms, where its tables lack a column's values."""


def to_duckdb(query: exp.Query, schema: Views, tables: Tables | None = None) -> str:
    """The query in DuckDB's SQL with Db2's meaning; it must have passed read_only.check.

    Args:
        tables: What is behind the views. With it the tables are read, without self joins; without,
            the views as they are, which is the reference.
    """
    with _limited():
        qualified, typing = _rewritten(query, schema, tables)
        is_wide = typing.widths.may_be_wide(qualified)
        if tables is not None:
            tables.finish(qualified)
        statement: str = qualified.sql(dialect="duckdb")
        if is_wide:
            return guarded(statement, typing.of_query(qualified))
        return statement


def condition_to_duckdb(
    query: exp.Select,
    schema: Views,
    finish: Callable[[exp.Expr], exp.Expr] | None = None,
    look: Callable[[exp.Expr], None] | None = None,
) -> str:
    """The condition of a query's WHERE, as `to_duckdb`.

    Args:
        finish: Makes of the condition's tree in DuckDB's terms the one that is meant.
        look: Is shown the condition's tree in Db2's terms, whose columns have their tables.
    """
    with _limited():
        where: exp.Where = _rewritten(query, schema, None, look)[0].args["where"]
        rewritten = where.this if finish is None else finish(where.this)
        condition: str = rewritten.sql(dialect="duckdb")
        return condition


@contextmanager
def _limited() -> Iterator[None]:
    try:
        with db2_templates.size_limited():
            yield
    except RecursionError as error:
        raise too_complex() from error


def _rewritten(
    query: exp.Query,
    schema: Views,
    tables: Tables | None,
    look: Callable[[exp.Expr], None] | None = None,
) -> tuple[exp.Query, "_Typing"]:
    qualified = with_tables(query, schema)
    if look is not None:
        look(qualified.args["where"].this)
    if tables is not None:
        tables.exchange_views(qualified)
        balance(qualified)  # what is now joined by AND, one by one
    typing = _Typing(
        schema if tables is None else {**schema, **tables.schema()}, lists=tables is not None
    )
    typing.run(qualified)
    syscat.filled(qualified, schema)
    return qualified, typing


class _Typing:
    """Types every expression bottom-up, scope by scope, and rewrites what differs on the way."""

    def __init__(self, schema: Schema, *, lists: bool) -> None:
        """Have seen no scope yet.

        Args:
            lists: Make queries of long lists in WHERE; a condition alone may come to stand where no
                query may.
        """
        self.schema, self.lists = schema, lists
        self.outputs: dict[int, _Outputs] = {}
        self.widths = RowWidths(schema)

    def run(self, query: exp.Query) -> None:
        """Rewrite ``query`` in place."""
        nulls = NullsLast(query)
        for scope in traverse_scope(query):
            root = scope.expression
            self.widths.add(scope)
            nulls.exchange(scope)
            types: _Outputs = []
            if isinstance(root, exp.Select):
                _order_by_numbers(root)
                columns = self._columns(scope)
                parts = sorted(root.iter_expressions(), key=lambda p: p.arg_key != "expressions")
                for expression in parts:
                    node, kind = self._visit(expression, columns)
                    if node.arg_key == "expressions":
                        types.append((node.alias_or_name, kind))
                        columns["", node.alias_or_name] = kind  # as ORDER BY may call it
            elif isinstance(root, exp.SetOperation):
                types = self._combine(root)
            elif isinstance(root, exp.Lateral):
                types = self.of_query(root.this)
            self.outputs[id(root)] = types

    def _combine(self, root: exp.SetOperation) -> _Outputs:
        """Both sides' columns in their common types."""
        left, right = self.of_query(root.this), self.of_query(root.expression)
        if len(left) != len(right):
            raise SqlError(
                -421, "42826", "The operands of a set operator do not have the same number of "
                f"columns: {len(left)} and {len(right)}.",
            )  # fmt: skip
        types: _Outputs = []
        for index, ((name, one), (_, other)) in enumerate(zip(left, right, strict=True)):
            result = db2_types.common([one, other])
            types.append((name, result))
            for side, kind in ((root.this, one), (root.expression, other)):
                if kind is TEXT and result is DOUBLE:
                    self._as_number(side, index)
        return types

    def of_query(self, query: exp.Expr) -> _Outputs:
        """Names and types of a query's columns, once it is rewritten."""
        return self.outputs.get(id(query.unnest()), [])

    def _as_number(self, query: exp.Expr, index: int) -> None:
        """Turn a text column of a subquery's result into a number."""
        inner = query.unnest()
        if isinstance(inner, exp.SetOperation):
            self._as_number(inner.this, index)
            self._as_number(inner.expression, index)
        elif isinstance(inner, exp.Select):
            item = inner.expressions[index]
            column = exp.alias_(number(item.unalias()), item.alias_or_name, quoted=True)
            inner.expressions[index].replace(column)
        outputs = self.of_query(query)
        if outputs:
            outputs[index] = (outputs[index][0], DOUBLE)

    def _columns(self, scope: Scope) -> _Columns:
        return columns_of(scope, self.outputs, self.schema, db2_types.of_engine)

    def _visit(self, node: exp.Expr, columns: _Columns) -> Typed:
        """``node`` rewritten, and its type; a subquery has been rewritten already."""
        if isinstance(node, exp.Subquery | exp.Query):
            return node, next((kind for _, kind in self.of_query(node)), OTHER)
        if isinstance(node, exp.Column):
            return node, columns.get((node.table, node.name), OTHER)
        if VIEW_TEXT in node.meta:
            return node, TEXT
        if OF_ENGINE in node.meta:
            return node, OTHER
        if isinstance(node, exp.Literal):
            return node, TEXT if node.is_string else db2_types.of_number(node.name)
        go_on()
        types: dict[int, Db2Type] = {}
        for child in list(node.iter_expressions()):
            rewritten, kind = self._visit(child, columns)
            types[id(rewritten)] = kind
        return self._rewrite(node, lambda child: types.get(id(child), OTHER))

    def _rewrite(self, node: exp.Expr, of: _TypeOf) -> Typed:
        """One node whose parts are done."""
        if isinstance(node, _COMPARISONS):
            return self._compare(node, of)
        if isinstance(node, exp.In) and node.args.get("query") is not None:
            self._compare_with_query(node, node.args["query"], of)
            return node, OTHER
        if isinstance(node, exp.In | exp.Between):
            compared = _compare_many(node, of)
            if self.lists and isinstance(node, exp.In) and _is_in_where(node):
                _list_texts(node)
            return compared, OTHER
        if isinstance(node, exp.Is) and VIEW_TEXT in node.this.unnest().meta:
            node.this.replace(node.this.unnest().this)  # null where its text is
            return node, OTHER
        if isinstance(node, exp.Case | exp.Coalesce | exp.Nullif):
            return _alternatives(node, of)
        if isinstance(node, exp.Any | exp.All):
            return node, of(node.this)
        return _rewrite_value(node, of)

    def _compare(self, node: exp.Expr, of: _TypeOf) -> Typed:
        left, right = node.args["this"], node.args["expression"]
        if isinstance(right, exp.Any | exp.All):
            self._compare_with_query(node, right, of)
            return node, OTHER
        _make_comparable([left, right], [of(left), of(right)])
        if isinstance(node, exp.EQ | exp.NEQ) and of(left) is TEXT and of(right) is TEXT:
            bounds = _bounds(node)
            _ignore_end_blanks([left, right])
            if bounds:
                within = "{x} >= {low} AND {x} < {high} AND {e}"
                return exchange(node, fill(within, e=node, **bounds)), OTHER
        return node, OTHER

    def _compare_with_query(self, node: exp.Expr, query: exp.Expr, of: _TypeOf) -> None:
        value = node.args["this"]
        if of(value) is TEXT and of(query).is_number:
            value.replace(number(value))
        elif of(value).is_number and of(query) is TEXT:
            inner = query.this if isinstance(query, exp.Any | exp.All) else query
            self._as_number(inner, 0)


def _rewrite_value(node: exp.Expr, of: _TypeOf) -> Typed:
    for kinds, rewrite in _REWRITES:
        if isinstance(node, kinds):
            return rewrite(node, of)
    if isinstance(node, exp.Mod):
        node.expression.replace(db2_templates.not_zero(_as_number(node.expression, of)))
    return _read_number(node, of)


def _read_number(node: exp.Expr, of: _TypeOf) -> Typed:
    """An expression of DuckDB's, given a number where it takes one."""
    kind = _plain_type(node, of)
    reads_number = isinstance(node, exp.Neg) or _reads(node) == "number"
    if reads_number and of(node.this) is TEXT:
        node.this.replace(number(node.this))
        kind = DOUBLE if kind is TEXT else kind
    return node, kind


def _reads(node: exp.Expr) -> str:
    function = BY_NODE.get(type(node))
    return function.reads if function is not None else ""


def _plain_type(node: exp.Expr, of: _TypeOf) -> Db2Type:
    """The type of an expression that DuckDB evaluates as Db2 does."""
    if isinstance(node, exp.If):
        return of(node.args.get("true"))
    if isinstance(node, exp.Distinct):
        return of(next(iter(node.expressions), None))
    if isinstance(node, exp.Alias | exp.Neg | exp.Ordered | exp.Paren):
        return of(node.this)
    if isinstance(node, exp.Order):
        return of(node.expressions[0])
    function = BY_NODE.get(type(node))
    if function is None:
        return OTHER
    if function.gives == SAME:
        return of(node.this)
    return function.gives if isinstance(function.gives, Db2Type) else OTHER


def _as_number(node: exp.Expr, of: _TypeOf) -> exp.Expr:
    return number(node) if of(node) is TEXT else node


def _make_comparable(nodes: Sequence[exp.Expr], kinds: Sequence[Db2Type]) -> bool:
    """Text beside a number becomes one; whether there was any."""
    mixed = TEXT in kinds and any(kind.is_number for kind in kinds)
    if mixed:
        for node, kind in zip(nodes, kinds, strict=True):
            if kind is TEXT:
                exchange(node, db2_templates.integer_operand(node) or number(node))
    elif any(kind.is_datetime for kind in kinds):
        for node in nodes:
            if isinstance(node, exp.Literal) and node.is_string:
                exchange(node, db2_dates.as_iso(node))
    return mixed


def _bounds(node: exp.Expr) -> dict[str, exp.Expr]:
    """Of ``column = 'text'`` the column, and the bounds of what is the text with blanks behind it.

    A column's statistics tell of those, and nothing of its texts without blanks.
    """
    column, text = node.args["this"].unnest(), node.args["expression"].unnest()
    if isinstance(column, exp.Literal):
        column, text = text, column
    if not (isinstance(node, exp.EQ) and isinstance(column, exp.Column) and not _is_fkey(column)
            and isinstance(text, exp.Literal)):  # fmt: skip
        return {}
    low = text.name.rstrip(" ")
    return {
        "x": column.copy(),
        "low": exp.Literal.string(low),
        "high": exp.Literal.string(f"{low}!"),  # the character after the blank
    }


def _is_fkey(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.name == "fkey"


def _ignore_end_blanks(nodes: Sequence[exp.Expr]) -> None:
    # Not on fkey: it names a file to the last character, and the joins on it must stay fast.
    if any(map(_is_fkey, nodes)):
        return
    for node in nodes:
        if isinstance(node, exp.Literal):
            # In place: to replace one of a list takes as long as the list is.
            node.set("this", node.name.rstrip(" "))
        else:
            exchange(node, fill(WITHOUT_END_BLANKS, x=node))


def _compare_many(node: exp.Expr, of: _TypeOf) -> exp.Expr:
    """IN a list, BETWEEN."""
    between = isinstance(node, exp.Between)
    operands = [node.args["low"], node.args["high"]] if between else list(node.expressions)
    values = [node.args["this"], *operands]
    kinds = [of(value) for value in values]
    if not _make_comparable(values, kinds) and not between and set(kinds) == {TEXT}:
        _ignore_end_blanks(values)
    return node


def _is_in_where(node: exp.Expr) -> bool:
    """Return whether a comparison is a condition of WHERE, or of its AND, OR and NOT."""
    outer = node.parent
    while isinstance(outer, exp.Connector | exp.Not | exp.Paren):
        outer = outer.parent
    return isinstance(outer, exp.Where)


LONG_LIST = 100
"""So many texts in a list of WHERE are one text for DuckDB."""
SEPARATOR = "\x1f"
"""What stands between them there."""


def _list_texts(node: exp.Expr) -> None:
    """Make a query of a long list of texts: DuckDB looks each row up in a table of them.

    A list of 1,000 behind an expression it compares one by one, 9 microseconds a row; and it takes
    50 ms to plan. Here the list is one text.
    """
    texts = node.expressions
    if len(texts) < LONG_LIST or not all(
        isinstance(text, exp.Literal) and text.is_string for text in texts
    ):
        return
    if any(SEPARATOR in text.name for text in texts):
        return
    listed = fill(
        "unnest(string_split({all}, {by}))",
        all=exp.Literal.string(SEPARATOR.join(text.name for text in texts)),
        by=exp.Literal.string(SEPARATOR),
    )
    node.set("expressions", None)
    node.set("query", exp.Subquery(this=exp.Select(expressions=[listed])))


def _order_by_numbers(select: exp.Select) -> None:
    """Have ORDER BY int(car) read the number, where car in the list is a view's text of it."""
    order = select.args.get("order")
    if order is None or select.args.get("group") or select.args.get("distinct"):
        return  # only what the list has can be ordered by then
    texts = {
        item.alias_or_name: item.unalias()
        for item in select.expressions
        if item.unalias().meta.get(VIEW_TEXT, "VARCHAR") != "VARCHAR"
    }
    for column in list(order.find_all(exp.Column)):
        if not column.table and column.name in texts and not isinstance(column.parent, exp.Ordered):
            column.replace(texts[column.name].copy())


def _alternatives(node: exp.Expr, of: _TypeOf) -> Typed:
    """CASE, COALESCE and NULLIF: what is compared and what is returned in common types."""
    if isinstance(node, exp.Nullif):
        pair = [node.this, node.expression]
        kinds = [of(value) for value in pair]
        mixed = _make_comparable(pair, kinds)
        return node, DOUBLE if mixed and kinds[0] is TEXT else kinds[0]
    if isinstance(node, exp.Case):
        branches: list[exp.If] = node.args["ifs"]
        _match_operand(node, branches, of)
        results = [branch.args["true"] for branch in branches]
        kinds = [of(branch) for branch in branches]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
            kinds.append(of(node.args["default"]))
    else:
        results = [node.this, *node.expressions]
        kinds = [of(result) for result in results]
    _make_comparable(results, kinds)
    return node, db2_types.common(kinds)


def _match_operand(case: exp.Case, branches: list[exp.If], of: _TypeOf) -> None:
    """``CASE x WHEN 1``: x and what it is compared with."""
    if case.this is None:
        return
    values = [case.this, *(branch.this for branch in branches)]
    # The conditions are inside their IF, so their types are read off the nodes themselves.
    kinds = [of(case.this), *(_of_constant(branch.this) for branch in branches)]
    _make_comparable(values, kinds)


def _of_constant(node: exp.Expr) -> Db2Type:
    inner = node.unnest()
    if isinstance(inner, exp.Neg):
        inner = inner.this.unnest()
    if not isinstance(inner, exp.Literal):
        return OTHER
    return TEXT if inner.is_string else db2_types.of_number(inner.name)


def _arithmetic(node: exp.Expr, of: _TypeOf) -> Typed:
    if any(of(node.args[key]).is_datetime for key in ("this", "expression")) or isinstance(
        node.expression, Db2Duration
    ):
        return _of_dates(node, of)
    kinds = {}
    for key in ("this", "expression"):
        operand = node.args[key]
        kinds[key] = of(operand)
        if kinds[key] is TEXT:
            operand.replace(number(operand))
            kinds[key] = DOUBLE
        elif kinds[key] is db2_types.SMALLINT:
            operand.replace(fill("CAST({x} AS INTEGER)", x=operand))  # Db2 calculates in INTEGER
            kinds[key] = INTEGER
    left, right = kinds["this"], kinds["expression"]
    if not (left.is_number and right.is_number):
        return node, OTHER
    result = db2_types.of_arithmetic(_ARITHMETIC[type(node)], left, right)
    if isinstance(node, exp.Div):
        return _replace(node, db2_templates.divide(node, left, right, result)), result
    if result.kind == "DECIMAL":
        if db2_templates.would_overflow(left, right, result):
            operand = node.args["this"]
            operand.replace(db2_templates.widened(operand, left))
        scales = (left.scale, right.scale)
        scale = sum(scales) if isinstance(node, exp.Mul) else max(scales)
        return _replace(node, db2_templates.exact(node, result, scale)), result
    return node, result


def _of_dates(node: exp.Expr, of: _TypeOf) -> Typed:
    left, right = of(node.this), of(node.expression)
    if isinstance(node.expression, Db2Duration):
        computed, kind = db2_dates.shift(node, left, right)
    elif isinstance(node, exp.Sub):
        computed, kind = db2_dates.difference(node, left, right)
    else:
        raise db2_dates.invalid()
    return _replace(node, computed), kind


def _like(node: exp.Expr, _: _TypeOf) -> Typed:
    like, escape = node, ""
    if isinstance(node, exp.Like) and isinstance(node.parent, exp.Escape):
        return node, OTHER  # the ESCAPE around it decides
    if isinstance(node, exp.Escape):
        like, escape = node.this, node.expression.name
    if not isinstance(like, exp.Like) or len(escape) > 1:
        raise SqlError(-130, "22025", "The ESCAPE of LIKE is not valid. Expected: one character.")
    pattern = like.expression.unnest()
    if isinstance(pattern, exp.Literal) and pattern.is_string:
        rewritten = db2_templates.like(like, escape)
    else:
        text, pattern = (fill("CAST({x} AS VARCHAR)", x=each) for each in (like.this, pattern))
        rewritten = texts.like(text, pattern, escape)
        rewritten = exp.Not(this=rewritten) if like.args.get("negate") else rewritten
    return node if rewritten is like else _replace(node, rewritten), OTHER


def _duration(node: exp.Expr, of: _TypeOf) -> Typed:
    """The sum around it makes something of it."""
    if not (isinstance(node.parent, exp.Add | exp.Sub) and node.arg_key == "expression"):
        raise db2_dates.invalid()
    return node, of(node.this)


def _current(node: exp.Expr, of: _TypeOf) -> Typed:
    kind = _plain_type(node, of)
    return _replace(node, fill(f"CAST({db2_dates.NOW} AS {kind.kind})")), kind


def _converted(node: exp.Expr, of: _TypeOf) -> Typed:
    """A conversion."""
    value_type = of(node.this)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.VARCHAR:
        return node, TEXT  # a column of the view that no source fills
    if isinstance(node, exp.Cast):  # DATE '2020-01-31'
        converted, kind = db2_dates.convert(node.this, node.to.this.value, value_type, None)
    elif node.args["kind"] in ("DATE", "TIME", "TIMESTAMP"):
        clock = node.args.get("precision")
        converted, kind = db2_dates.convert(node.this, node.args["kind"], value_type, clock)
    elif node.args["kind"] == "CHAR":
        text = texts.as_text(node.this, value_type)
        converted, kind = texts.to_char(cast(Db2Cast, node), value_type, text), TEXT
    else:
        converted, kind = db2_templates.convert(cast(Db2Cast, node), value_type)
    return _replace(node, converted), kind


def _called(node: exp.Expr, of: _TypeOf) -> Typed:
    """A function of the table that has a template, or one of _OWN."""
    own = _OWN.get(node.args["name"])
    if own is not None:
        rewritten, kind = own(node, of)
        return _replace(node, rewritten), kind
    function = FUNCTIONS[node.args["name"]]
    value, value_type = node.this, of(node.this)
    if value_type is TEXT and function.reads == "number":
        value = number(value)
    elif value_type is TEXT and function.reads:
        value, value_type = db2_dates.convert(value, function.reads, value_type, None)
    gives = cast(Db2Type, function.gives)
    result = fill(f"CAST({function.template} AS {gives.kind})", x=value)
    return _replace(node, result), gives


def _formatted(node: exp.Expr, of: _TypeOf) -> Typed:
    """VARCHAR_FORMAT."""
    value, kind = node.this, of(node.this)
    if kind is TEXT:
        value, kind = db2_dates.convert(value, "TIMESTAMP", kind, None)
    return db2_dates.formatted(value, kind, node.expressions[0]), TEXT


def _substr(node: exp.Expr, of: _TypeOf) -> Typed:
    """SUBSTR."""
    start, length, *_ = [*node.expressions, None]
    text = texts.as_text(node.this, of(node.this)) if of(node.this) is not TEXT else node.this
    return texts.substr(text, node.meta[MOST_CHARACTERS], start, length), TEXT


def _substring(node: exp.Expr, _: _TypeOf) -> Typed:
    """SUBSTRING, which takes what there is."""
    text = fill("CAST({x} AS VARCHAR)", x=node.this)
    start, length = node.args["start"], node.args.get("length")
    return _replace(node, texts.substring(text, start, length)), TEXT


def _padded(node: exp.Expr, of: _TypeOf) -> Typed:
    """LPAD and RPAD."""
    length, pad, *_ = [*node.expressions, None]
    text = texts.as_text(node.this, of(node.this))
    return texts.padded(text, length, pad, left=node.args["name"] == "LPAD"), TEXT


def _extreme(node: exp.Expr, of: _TypeOf) -> Typed:
    """GREATEST and LEAST."""
    values = [node.this, *node.expressions]
    kinds = [of(value) for value in values]
    _make_comparable(values, kinds)
    parts = {f"p{n}": value for n, value in enumerate([node.this, *node.expressions])}
    unknown = " OR ".join(f"{{{name}}} IS NULL" for name in parts)
    listed = ", ".join(f"{{{name}}}" for name in parts)
    function = node.args["name"].lower()
    kind = db2_types.common(kinds)
    chosen = f"CASE WHEN {unknown} THEN NULL ELSE {function}({listed}) END"
    if kind.kind == "DECIMAL":
        chosen = f"CAST({chosen} AS DECIMAL({kind.precision}, {kind.scale}))"
    return fill(chosen, **parts), kind


def _decoded(node: exp.Expr, of: _TypeOf) -> Typed:
    """DECODE: a CASE in which null equals null."""
    pairs = (len(node.expressions)) // 2
    compared = [node.this, *node.expressions[: 2 * pairs : 2]]
    kinds = [of(value) for value in compared]
    if not _make_comparable(compared, kinds) and set(kinds) == {TEXT}:
        _ignore_end_blanks(compared)
    results = [*node.expressions[1 : 2 * pairs : 2], *node.expressions[2 * pairs :]]
    kinds = [of(result) for result in results]
    _make_comparable(results, kinds)
    parts = {"x": node.this} | {f"p{n}": value for n, value in enumerate(node.expressions)}
    branches = " ".join(
        f"WHEN {{x}} IS NOT DISTINCT FROM {{p{2 * n}}} THEN {{p{2 * n + 1}}}" for n in range(pairs)
    )
    otherwise = f"{{p{2 * pairs}}}" if len(node.expressions) > 2 * pairs else "NULL"
    return fill(f"CASE {branches} ELSE {otherwise} END", **parts), db2_types.common(kinds)


def _cut(node: exp.Expr, of: _TypeOf) -> Typed:
    """TRUNC of a number, or of a date or time to the begin of something."""
    unit, kind = node.args.get("decimals"), of(node.this)
    if not (kind.is_datetime or (isinstance(unit, exp.Literal) and unit.is_string)):
        return _read_number(node, of)
    rewritten, kind = db2_dates.truncated(node.this, kind, unit)
    return _replace(node, rewritten), kind


def _over_rows(node: exp.Expr, of: _TypeOf) -> Typed:
    """MEDIAN, LAG and others."""
    call = cast(Db2Aggregate, node)
    rewritten, kind = windows.call(call, of)
    if rewritten is node:
        node.meta[_ARGUMENT] = of(node.this)
        return node, kind
    rewritten.meta[_NAME] = call.args["name"]
    return (exchange if isinstance(node.parent, exp.Window) else _replace)(node, rewritten), kind


def _correlated(node: exp.Expr, of: _TypeOf) -> Typed:
    for side in ("this", "expression"):
        node.args[side].replace(_as_number(node.args[side], of))
    if isinstance(node.parent, exp.Window):
        return node, DOUBLE  # the whole window is looked at
    return _replace(node, fill(_KNOWN, x=node)), DOUBLE


_KNOWN = "nullif({x}, 'nan'::DOUBLE)"
"""What DuckDB cannot compute is null in Db2."""


def _replaced(node: exp.Expr, _: _TypeOf) -> Typed:
    new = node.args.get("replacement") or exp.Literal.string("")
    return _replace(node, db2_templates.replaced(node.this, node.expression, new)), TEXT


def _concatenated(node: exp.Expr, _: _TypeOf) -> Typed:
    outer = node.parent
    while isinstance(outer, exp.Paren):
        outer = outer.parent
    if isinstance(outer, exp.DPipe | exp.Concat):
        return node, TEXT  # the whole chain is made at once
    parts = list(db2_templates.joined_parts(node))
    return _replace(node, db2_templates.concatenated(parts)), TEXT


def _list(node: exp.Expr, of: _TypeOf) -> Typed:
    if isinstance(node.parent, exp.WithinGroup):
        return node, TEXT  # made with its order
    call, order = node, []
    if isinstance(node, exp.WithinGroup):
        call, order = node.this, node.expression.expressions
    if isinstance(call, Db2Aggregate) and call.args["name"] in windows.PERCENTILES:
        rewritten, kind = windows.percentile(cast(exp.WithinGroup, node), of)
        rewritten.meta[_NAME] = call.args["name"]
        return (exchange if isinstance(node.parent, exp.Window) else _replace)(
            node, rewritten
        ), kind
    if isinstance(node.parent, exp.Window):
        raise SqlError(-142, "42612", "The SQL statement is not supported: LISTAGG with OVER.")
    if not isinstance(call, exp.GroupConcat):
        raise SqlError(-142, "42612", "The SQL statement is not supported: WITHIN GROUP here.")
    listed = db2_templates.list_of(call.this, call.args.get("separator"), order)
    return _replace(node, listed), TEXT


def _aggregate(node: exp.Expr, of: _TypeOf) -> Typed:
    argument = of(node.this)
    if argument is TEXT and not isinstance(node, exp.Count):
        _number_inside(node)
        argument = DOUBLE
    if isinstance(node, exp.Count):
        if VIEW_TEXT in node.this.meta:
            node.this.replace(node.this.this)  # null where its text is
        result = db2_types.COUNT
    elif isinstance(node, exp.Sum):
        result = db2_types.of_sum(argument)
    else:
        result = db2_types.of_average(argument)
    if isinstance(node.parent, exp.Window):
        node.meta[_ARGUMENT] = argument
        return node, result  # the whole window is converted
    if isinstance(node, exp.Avg) and result is not DOUBLE:
        total, count = exp.Sum(this=node.this.copy()), exp.Count(this=node.this.copy())
        return _replace(node, db2_templates.average(total, count, argument, result)), result
    return _replace(node, _in_type(node, result)), result


def _number_inside(aggregate: exp.Expr) -> None:
    inner = aggregate.this
    value = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
    value.replace(number(value))


def _window(node: exp.Expr, of: _TypeOf) -> Typed:
    result = of(node.this)
    name: str = node.this.meta.get(_NAME) or node.this.args.get("name") or ""
    windows.check(cast(exp.Window, node), name)
    if name == "RATIO_TO_REPORT":
        shares = windows.ratio(cast(exp.Window, node), node.this.meta[_ARGUMENT])
        return _replace(node, shares), DOUBLE
    if name == "NTILE":
        return _replace(node, _in_type(node, result)), result
    if isinstance(node.this, exp.Corr):
        return _replace(node, fill(_KNOWN, x=node)), DOUBLE
    if not isinstance(node.this, exp.Count | exp.Sum | exp.Avg) or result is DOUBLE:
        return node, result
    if isinstance(node.this, exp.Avg):
        total, count = node.copy(), node.copy()
        total.set("this", exp.Sum(this=node.this.this.copy()))
        count.set("this", exp.Count(this=node.this.this.copy()))
        mean = db2_templates.average(total, count, node.this.meta[_ARGUMENT], result)
        return _replace(node, mean), result
    return _replace(node, _in_type(node, result)), result


def _in_type(node: exp.Expr, kind: Db2Type) -> exp.Expr:
    if kind.is_integer:
        return fill(f"CAST(trunc({{x}}) AS {kind.kind})", x=node)
    if kind.kind == "DECIMAL":
        return fill(f"CAST({{x}} AS DECIMAL({kind.precision}, {kind.scale}))", x=node)
    return node


def _replace(node: exp.Expr, new: exp.Expr) -> exp.Expr:
    if new is node:
        return node
    # A projection must keep its name.
    if node.parent is not None and isinstance(node.parent, exp.Select):
        new = exp.alias_(new, node.alias_or_name, quoted=True)
    return exchange(node, new)


_REWRITES: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr, _TypeOf], Typed]], ...] = (
    (tuple(_ARITHMETIC), _arithmetic),
    ((Db2Cast, exp.Cast), _converted),
    ((Db2Function,), _called),
    ((Db2Duration,), _duration),
    ((exp.Like, exp.Escape), _like),
    ((Random,), lambda node, _: (_replace(node, db2_templates.random(cast(Random, node))), DOUBLE)),
    ((Db2Aggregate,), _over_rows),
    ((exp.Corr,), _correlated),
    ((exp.Substring,), _substring),
    ((exp.Trunc,), _cut),
    ((exp.Replace,), _replaced),
    ((exp.Concat, exp.DPipe), _concatenated),
    ((exp.GroupConcat, exp.WithinGroup), _list),
    ((exp.Count, exp.Sum, exp.Avg), _aggregate),
    ((exp.Window,), _window),
    (_CURRENT, _current),
)
"""Rewriting of an expression by its type, after its parts were rewritten."""

_OWN: dict[str, Callable[[exp.Expr, _TypeOf], Typed]] = {
    "ADD_MONTHS": lambda node, of: db2_dates.months_later(
        node.this, of(node.this), _as_number(node.expressions[0], of)
    ),
    "DECODE": _decoded,
    "GREATEST": _extreme,
    "LEAST": _extreme,
    "LPAD": _padded,
    "RPAD": _padded,
    "SUBSTR": _substr,
    "TIMESTAMPDIFF": lambda node, of: db2_dates.timestamp_difference(
        node.this, node.expressions[0], of(node.expressions[0])
    ),
    "TO_DATE": lambda node, _: db2_dates.read(node.this, next(iter(node.expressions), None)),
    "VARCHAR_FORMAT": _formatted,
    **dict.fromkeys(regexes.NAMES, lambda node, of: regexes.call(cast(Db2Function, node), of)),
}
"""Functions that no template makes."""
