"""A checked Db2 query as the DuckDB query that gives Db2's rows.

    names       every column gets its table; unknown ones are SQL0206N
    text        compared or calculated with a number, it is converted to one (DECFLOAT)
    int(x)      truncates; text is trimmed of blanks first
    a / b       integers truncate; decimals are exact, truncated at Db2's scale
    sum, count  typed as a Db2 warehouse types them

DuckDB alone would round int('12.7') to 13, refuse text beside a number and divide as DOUBLE.
"""

from collections.abc import Callable

from sqlglot import exp, parse_one
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from catalog.errors import SqlError, nearest_names
from query import db2_types
from query.db2_dialect import Db2, Db2Cast
from query.db2_types import DOUBLE, INTEGER, OTHER, TEXT, Db2Type
from query.read_only import Schema

_ARITHMETIC: dict[type[exp.Expression], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)
_SAME_AS_ARGUMENT = (
    exp.Abs, exp.Alias, exp.Ceil, exp.Floor, exp.Max, exp.Min, exp.Mod, exp.Neg, exp.Nullif,
    exp.Paren, exp.Round, exp.Trunc,
)  # fmt: skip
_RESULTS: dict[Db2Type, tuple[type[exp.Expression], ...]] = {
    TEXT: (
        exp.Concat, exp.DPipe, exp.Left, exp.Lower, exp.Replace, exp.Right, exp.Substring,
        exp.Trim, exp.Upper,
    ),
    INTEGER: (
        exp.Day, exp.Length, exp.Month, exp.Quarter, exp.Sign, exp.StrPosition, exp.Week,
        exp.Year,
    ),
    DOUBLE: (exp.Pow, exp.Sqrt, exp.Stddev, exp.Variance),
}  # fmt: skip

DIVISION_BY_ZERO = "SQL0801N"
"""What the query raises in DuckDB on a division by zero."""

_Columns = dict[tuple[str, str], Db2Type]
_Typed = tuple[exp.Expression, Db2Type]
_TypeOf = Callable[[object], Db2Type]


def to_duckdb(query: exp.Query, schema: Schema) -> exp.Query:
    """The DuckDB query with Db2's meaning; ``query`` must have passed read_only.check.

    Raises:
        SqlError: SQL0206N unknown column, SQL0203N ambiguous column, SQL0419N.
    """
    qualified = _qualify(query, schema)
    _Typing(schema).run(qualified)
    return qualified


def _qualify(query: exp.Query, schema: Schema) -> exp.Query:
    _check_columns(query, schema)
    for table in query.find_all(exp.Table):
        table.set("db", None)  # BLUADMIN is the only schema there is
    tables = {table: dict(columns) for table, columns in schema.items()}
    try:
        return qualify(query, dialect=Db2, schema=tables, quote_identifiers=True)  # type: ignore[return-value]
    except OptimizeError as error:
        raise SqlError(-206, "42703", " ".join(str(error).split())) from error


def _check_columns(query: exp.Query, schema: Schema) -> None:
    """Raise Db2's own error for a column that is in no table of its scope, or in several."""
    for scope in traverse_scope(query):
        levels = [_known_columns(scope, schema)]
        outer = scope.parent
        while outer is not None:  # a subquery sees the tables around it
            levels.append(_known_columns(outer, schema))
            outer = outer.parent
        outputs = {name.lower() for name in _outputs(scope)}
        for column in scope.columns:
            inside = column.find_ancestor(exp.Query) is scope.expression
            if inside and not isinstance(column.this, exp.Star):
                late = column.find_ancestor(exp.Order, exp.Group, exp.Having)
                _check_column(column, levels, outputs if late else set())


def _outputs(scope: Scope) -> list[str]:
    return scope.expression.named_selects if isinstance(scope.expression, exp.Query) else []


def _known_columns(scope: Scope, schema: Schema) -> dict[str, set[str]]:
    """Column names of each table of a scope; of a subquery that selects * , all it could have."""
    known: dict[str, set[str]] = {}
    for alias, source in scope.sources.items():
        if isinstance(source, Scope):
            known[alias.lower()] = {name.lower() for name in _outputs(source)}
            if source.expression.is_star:
                known[alias.lower()] |= set().union(*_known_columns(source, schema).values())
        else:
            known[alias.lower()] = set(schema.get(source.name.lower(), ()))
    return known


def _check_column(column: exp.Column, levels: list[dict[str, set[str]]], outputs: set[str]) -> None:
    name, table = column.name.lower(), column.table.lower()
    if table:
        columns = next((known[table] for known in levels if table in known), set())
        if name not in columns:
            raise _unknown_column(f"{table}.{name}", {f"{table}.{c}" for c in columns})
        return
    for known in levels:
        holders = [alias for alias, columns in known.items() if name in columns]
        if len(holders) > 1:
            raise SqlError(-203, "42702", f'A reference to column "{name.upper()}" is ambiguous.')
        if holders:
            return
    if name not in outputs:
        raise _unknown_column(name, set().union(*levels[0].values()))


def _unknown_column(name: str, known: set[str]) -> SqlError:
    nearest = nearest_names(name, sorted(known))
    hint = f' The nearest is "{nearest[0].upper()}".' if nearest else ""
    return SqlError(
        -206, "42703", f'"{name.upper()}" is not valid in the context where it is used.{hint}'
    )


class _Typing:
    """Types every expression bottom-up, scope by scope, and rewrites what differs on the way."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.outputs: dict[int, dict[str, Db2Type]] = {}

    def run(self, query: exp.Query) -> None:
        """Rewrite ``query`` in place."""
        for scope in traverse_scope(query):
            root = scope.expression
            types: dict[str, Db2Type] = {}
            if isinstance(root, exp.Select):
                columns = self._columns(scope)
                for part in list(root.iter_expressions()):
                    node, kind = self._visit(part, columns)
                    if node.arg_key == "expressions":
                        types[node.alias_or_name] = kind
            elif isinstance(root, exp.SetOperation):
                types = self.outputs.get(id(root.this.unnest()), {})
            self.outputs[id(root)] = types

    def _columns(self, scope: Scope) -> _Columns:
        columns: _Columns = {}
        if scope.parent is not None and scope.is_correlated_subquery:
            columns.update(self._columns(scope.parent))
        for alias, source in scope.sources.items():
            if isinstance(source, Scope):
                types = self.outputs.get(id(source.expression), {})
                columns.update({(alias, name): kind for name, kind in types.items()})
            else:
                for name, kind in self.schema.get(source.name.lower(), {}).items():
                    columns[alias, name] = db2_types.of_engine(kind)
        return columns

    def _visit(self, node: exp.Expression, columns: _Columns) -> _Typed:
        """``node`` rewritten, and its type; a subquery has been rewritten already."""
        if isinstance(node, exp.Subquery | exp.Query):
            inner = node.this if isinstance(node, exp.Subquery) else node
            return node, next(iter(self.outputs.get(id(inner), {}).values()), OTHER)
        if isinstance(node, exp.Column):
            return node, columns.get((node.table, node.name), OTHER)
        if isinstance(node, exp.Literal):
            return node, TEXT if node.is_string else db2_types.of_number(node.name)
        types: dict[int, Db2Type] = {}
        for part in list(node.iter_expressions()):
            rewritten, kind = self._visit(part, columns)
            types[id(rewritten)] = kind
        return _rewrite(node, lambda part: types.get(id(part), OTHER))


def _rewrite(node: exp.Expression, of: _TypeOf) -> _Typed:
    """One node whose parts are done."""
    if type(node) in _ARITHMETIC:
        return _arithmetic(node, of(node.this), of(node.expression))
    if isinstance(node, _COMPARISONS):
        _compare(node, of(node.this), of(node.expression))
        return node, OTHER
    if isinstance(node, exp.Between):
        return _compare_many(node, [node.args["low"], node.args["high"]], of)
    if isinstance(node, exp.In):
        return _compare_many(node, node.expressions, of)
    if isinstance(node, Db2Cast):
        return _convert(node, of(node.this))
    if isinstance(node, exp.Count):
        return _replace(node, "CAST({x} AS HUGEINT)", x=node), db2_types.COUNT
    if isinstance(node, exp.Sum | exp.Avg):
        return _aggregate(node, of(node.this))
    return node, _plain_type(node, of)


def _plain_type(node: exp.Expression, of: _TypeOf) -> Db2Type:
    """The type of an expression that DuckDB evaluates as Db2 does."""
    if isinstance(node, exp.Case):
        return db2_types.common([*map(of, node.args["ifs"]), of(node.args.get("default"))])
    if isinstance(node, exp.If):
        return of(node.args.get("true"))
    if isinstance(node, exp.Coalesce):
        return db2_types.common([of(node.this), *map(of, node.expressions)])
    if isinstance(node, exp.Cast):
        return db2_types.of_engine(node.to.sql("duckdb").upper().replace(", ", ","))
    if isinstance(node, _SAME_AS_ARGUMENT):
        return of(node.this)
    for result, functions in _RESULTS.items():
        if isinstance(node, functions):
            return result
    return OTHER


def _arithmetic(node: exp.Expression, left: Db2Type, right: Db2Type) -> _Typed:
    if left is TEXT:
        node.set("this", _number(node.this))
        left = DOUBLE
    if right is TEXT:
        node.set("expression", _number(node.expression))
        right = DOUBLE
    if not (left.is_number and right.is_number):
        return node, OTHER
    result = db2_types.of_arithmetic(_ARITHMETIC[type(node)], left, right)
    if isinstance(node, exp.Div):
        return _divide(node, left, right, result), result
    return node, result


def _divide(node: exp.Div, left: Db2Type, right: Db2Type, result: Db2Type) -> exp.Expression:
    parts = {"a": node.this, "b": node.expression}
    if result.kind == "DOUBLE":
        return _replace(node, f"{{a}}::DOUBLE / {_NOT_ZERO}", **parts)
    if result.is_integer:
        return _replace(node, f"{{a}} // {_NOT_ZERO}", **parts)
    left, right = left.as_decimal(), right.as_decimal()
    # In unscaled integers: a * 10^r / b, truncated, is the quotient with scale r.
    dividend = f"({{a}} * {10**left.scale})::HUGEINT"
    divisor = f"({_NOT_ZERO} * {10**right.scale})::HUGEINT"
    shift = 10 ** (result.scale - left.scale + right.scale)
    quotient = f"({dividend} * {shift}::HUGEINT // {divisor})"
    unit = f"{10**result.scale}::HUGEINT"
    # Through text, because DuckDB's 38-digit DECIMAL has no room to shift a 31-digit one.
    text = (
        f"CASE WHEN {quotient} < 0 THEN '-' ELSE '' END"
        f" || (abs({quotient}) // {unit})::VARCHAR || '.'"
        f" || lpad((abs({quotient}) % {unit})::VARCHAR, {result.scale}, '0')"
        if result.scale
        else quotient
    )
    return _replace(node, f"CAST({text} AS DECIMAL(31, {result.scale}))", **parts)


def _compare(node: exp.Expression, left: Db2Type, right: Db2Type) -> None:
    if left is TEXT and right.is_number:
        node.set("this", _number(node.this))
    elif right is TEXT and left.is_number:
        node.set("expression", _number(node.expression))


def _compare_many(node: exp.Expression, others: list[exp.Expression], of: _TypeOf) -> _Typed:
    kinds = [of(other) for other in others]
    if of(node.this) is TEXT and kinds and all(kind.is_number for kind in kinds):
        node.set("this", _number(node.this))
    elif of(node.this).is_number:
        for other, kind in zip(others, kinds, strict=True):
            if kind is TEXT:
                other.replace(_number(other))
    return node, OTHER


def _convert(node: Db2Cast, argument: Db2Type) -> _Typed:
    kind, this = node.args["kind"], node.this
    trimmed = "trim({x})" if argument is TEXT else "{x}"
    if kind in ("INTEGER", "SMALLINT", "BIGINT"):
        # DOUBLE is exact for all 32-bit values; DECIMAL for 64-bit ones.
        number = f"CAST({trimmed} AS {'DECIMAL(38, 6)' if kind == 'BIGINT' else 'DOUBLE'})"
        source = "{x}" if argument.is_number else number
        result = db2_types.BIGINT if kind == "BIGINT" else INTEGER
        return _replace(node, f"CAST(trunc({source}) AS {kind})", x=this), result
    if kind == "DECIMAL":
        precision = int(node.args["precision"].name) if node.args.get("precision") else 15
        scale = int(node.args["scale"].name) if node.args.get("scale") else 0
        number = f"CAST({trimmed} AS DECIMAL(38, {min(38 - precision + scale, 18)}))"
        template = f"CAST(trunc({number}, {scale}) AS DECIMAL({precision}, {scale}))"
        return _replace(node, template, x=this), db2_types.decimal(precision, scale)
    source = "{x}" if kind == "VARCHAR" else trimmed
    return _replace(node, f"CAST({source} AS {kind})", x=this), (
        TEXT if kind == "VARCHAR" else DOUBLE
    )


def _aggregate(node: exp.Expression, argument: Db2Type) -> _Typed:
    if argument is TEXT:
        node.set("this", _number(node.this))
        argument = DOUBLE
    if isinstance(node, exp.Sum):
        result = db2_types.of_sum(argument)
        if result.kind == "BIGINT":
            return _replace(node, "CAST({x} AS BIGINT)", x=node), result
        return node, result
    result = db2_types.of_average(argument)
    if result.is_integer:
        return _replace(node, f"CAST(trunc({{x}}) AS {result.kind})", x=node), result
    return node, result


_NOT_ZERO = f"CASE WHEN {{b}} = 0 THEN error('{DIVISION_BY_ZERO}') ELSE {{b}} END"


def _number(text: exp.Expression) -> exp.Expression:
    """Text as a number, as Db2 converts it beside one; blanks around it do not count."""
    return _template("CAST(trim({x}) AS DOUBLE)", x=text)


def _replace(node: exp.Expression, template: str, **parts: exp.Expression) -> exp.Expression:
    made = _template(template, **parts)
    # A projection must keep its name.
    if node.parent is not None and isinstance(node.parent, exp.Select):
        return node.replace(exp.alias_(made, node.alias_or_name, quoted=True))
    return node.replace(made)


def _template(template: str, **parts: exp.Expression) -> exp.Expression:
    """DuckDB SQL with each ``{name}`` filled by an expression, in parentheses."""
    tree = parse_one(template.format(**{name: f"part_{name}" for name in parts}), dialect="duckdb")
    copies = {f"part_{name}": part.copy() for name, part in parts.items()}

    def fill(found: exp.Expression) -> exp.Expression:
        part = copies.get(found.name) if isinstance(found, exp.Column) else None
        return found if part is None else exp.paren(part.copy())

    filled: exp.Expression = tree.transform(fill)
    return exp.Paren(this=filled)
