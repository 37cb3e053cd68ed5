"""One SELECT over the catalog's tables, and nothing else: decided on the parsed statement.

The engine is locked down as well (catalog.store); this check gives the clear message and keeps
what the engine itself would allow: its table functions, its own tables, its settings.
"""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from catalog.errors import SqlError, nearest_names
from query.db2_dialect import Db2, Db2Cast

MAX_STATEMENT_BYTES = 1_000_000
MAX_TOKENS = 200_000
"""Words and signs of a statement; parsing takes 10 microseconds for each."""

MAX_DEPTH = 200

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> DuckDB type; all names in lower case."""

_STATEMENTS = ("attach", "copy", "describe", "detach", "drop", "pragma", "set", "use", "export")

_FUNCTIONS: frozenset[type[exp.Expr]] = frozenset((
    Db2Cast,
    exp.Abs, exp.And, exp.Or, exp.Avg, exp.Case, exp.If, exp.Cast, exp.Ceil, exp.Coalesce,
    exp.Concat, exp.Count, exp.CurrentDate, exp.CurrentTimestamp, exp.Day, exp.DenseRank,
    exp.Exists, exp.Floor, exp.Left, exp.Length, exp.Lower, exp.Max, exp.Min, exp.Mod, exp.Month,
    exp.Nullif, exp.Pow, exp.Quarter, exp.Rank, exp.Replace, exp.Right, exp.Round, exp.RowNumber,
    exp.Sign, exp.Sqrt, exp.Stddev, exp.StrPosition, exp.Substring, exp.Sum, exp.Trim, exp.Trunc,
    exp.Upper, exp.Variance, exp.Week, exp.Year,
))  # fmt: skip
"""Functions a statement may call; everything else is refused by name."""

_PARTS: frozenset[type[exp.Expr]] = frozenset((
    exp.Add, exp.Alias, exp.All, exp.Any, exp.Between, exp.Boolean, exp.Column, exp.CTE, exp.DPipe,
    exp.DataType, exp.DataTypeParam, exp.Distinct, exp.Div, exp.EQ, exp.Escape, exp.Except,
    exp.Fetch, exp.From, exp.GT, exp.GTE, exp.Group, exp.Having, exp.Identifier, exp.In,
    exp.Intersect, exp.Is, exp.Join, exp.LT, exp.LTE, exp.Like, exp.Limit, exp.LimitOptions,
    exp.Literal, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null, exp.Offset, exp.Order, exp.Ordered,
    exp.Paren, exp.Select, exp.Star, exp.Sub, exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple,
    exp.Union, exp.Var, exp.Where, exp.Window, exp.WindowSpec, exp.With,
))  # fmt: skip
"""What else a statement may be made of; a node of any other kind is refused."""

_TYPES = frozenset((exp.DType.DATE, exp.DType.TIME, exp.DType.TIMESTAMP))
"""Types of a CAST besides the numbers and texts that db2_dialect turns into functions."""


def parse(text: str) -> exp.Query:
    """The one query in ``text``.

    Raises:
        SqlError: Not SQL, several statements, or one that is no query.
    """
    statements = _parsed(text)
    if not statements:
        raise SqlError(-198, "42617", "The statement string is blank or empty.")
    if len(statements) > 1:
        raise _not_allowed("several statements; send one SELECT at a time")
    statement = statements[0]
    if not isinstance(statement, exp.Query | exp.DML | exp.DDL | exp.Command) and (
        statement.key not in _STATEMENTS
    ):
        raise SqlError(
            -104,
            "42601",
            f'An unexpected token "{text.split()[0][:40]}" was found. Expected: SELECT.',
        )
    if not isinstance(statement, exp.Query):
        raise _not_allowed(f"a {statement.key.upper()} statement; only SELECT is")
    return statement


def parse_condition(text: str) -> exp.Select:
    """The WHERE body in ``text``, as ``SELECT fkey FROM frames WHERE body``.

    Raises:
        SqlError: It is no condition, or more than one.
    """
    try:
        # In parentheses that a comment at its end cannot reach, so that it can only be one.
        query = parse(f"SELECT fkey FROM frames WHERE ({text}\n)")
    except SqlError as error:
        if error.sqlcode != -104:
            raise
        shown = " ".join(text.split())[:200]
        raise SqlError(-104, "42601", f'The condition "{shown}" is not valid.') from error
    where = query.args.get("where")
    if not (
        isinstance(query, exp.Select)
        and isinstance(where, exp.Where)
        and isinstance(where.this, exp.Paren)
        and not isinstance(where.this.this, exp.Query)
        and not any(value for name, value in query.args.items() if name not in _BARE)
    ):
        shown = " ".join(text.split())[:200]
        raise SqlError(-104, "42601", f'The condition "{shown}" is not valid.')
    return query


_BARE = ("kind", "expressions", "from_", "where")
"""What SELECT ... FROM ... WHERE holds, and no other clause."""


def _parsed(text: str) -> list[exp.Expr]:
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise SqlError(-104, "42601", "The statement is not valid Unicode text.") from error
    if length > MAX_STATEMENT_BYTES:
        raise too_complex()
    if "\0" in text:
        raise SqlError(-104, "42601", "The statement has a NUL character.")
    try:
        dialect = Db2()
        tokens = dialect.tokenize(text)
        if len(tokens) > MAX_TOKENS:
            raise too_complex()
        return [found for found in dialect.parser().parse(tokens, text) if found is not None]
    except (ParseError, TokenError) as error:
        raise _syntax_error(error) from error
    except RecursionError as error:
        raise too_complex() from error


def too_complex() -> SqlError:
    """Db2's error for a statement beyond its limits."""
    return SqlError(-101, "54001", "The statement is too long or too complex.")


def check(query: exp.Query, schema: Schema) -> None:
    """Every node of the tree is one that only reads the tables of ``schema``.

    Raises:
        SqlError: SQL0204N unknown table, SQL0440N unknown function, SQL0142N not supported.
    """
    names_in_with = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    for node in query.walk():
        if node.depth > MAX_DEPTH:
            raise too_complex()
        if isinstance(node, exp.Table):
            _check_table(node, schema, names_in_with)
        _check_kind(node)


def _check_kind(node: exp.Expr) -> None:
    """The node is of a kind that only reads."""
    if type(node) in _FUNCTIONS:
        if isinstance(node, exp.Cast):
            _check_cast(node)
        return
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        raise SqlError(
            -440,
            "42884",
            f'No authorized routine named "{name[:40].upper()}" of type "FUNCTION" having '
            "compatible arguments was found.",
        )
    if type(node) not in _PARTS:
        raise _not_allowed(f"{node.key.upper()} inside a query")
    if isinstance(node, exp.Star) and any(node.args.values()):
        raise _not_allowed("a star with exceptions")
    if isinstance(node, exp.Limit | exp.Fetch | exp.Offset):
        _check_limit(node)


def _check_cast(node: exp.Cast) -> None:
    if node.to.this not in _TYPES:
        raise SqlError(-204, "42704", f'"{node.to.sql()[:40].upper()}" is an undefined type.')


def _check_limit(node: exp.Expr) -> None:
    """FETCH FIRST n ROWS: n is written out and fits a BIGINT."""
    options = node.args.get("limit_options")
    if options is not None and (options.args.get("percent") or options.args.get("with_ties")):
        raise _not_allowed("a limit in percent or with ties")
    count = node.args.get("count") or node.args.get("expression")
    if count is None:
        return  # FETCH FIRST ROW ONLY
    text = count.name if isinstance(count, exp.Literal) and not count.is_string else ""
    if not text.isdecimal() or int(text[:20]) >= 2**63:
        raise SqlError(
            -104,
            "42601",
            f'The number of rows "{count.sql()[:40]}" is not valid. '
            "Expected: a whole number below 2^63.",
        )


def _check_table(table: exp.Table, schema: Schema, names_in_with: set[str]) -> None:
    name = table.name.lower()
    if not isinstance(table.this, exp.Identifier) or table.catalog:
        raise _not_allowed("a table function or a table of another database")
    if not table.db and name in names_in_with:
        return
    if table.db and table.db.lower() != "bluadmin":
        raise _undefined(f"{table.db}.{table.name}", "")
    if name not in schema:
        nearest = nearest_names(name, schema)
        raise _undefined(table.name, nearest[0] if nearest else "")


def _undefined(name: str, nearest: str) -> SqlError:
    hint = f' The nearest is "{nearest.upper()}".' if nearest else ""
    return SqlError(-204, "42704", f'"{name.upper()}" is an undefined name.{hint}')


def _not_allowed(what: str) -> SqlError:
    return SqlError(-142, "42612", f"The SQL statement is not supported: {what}.")


def _syntax_error(error: Exception) -> SqlError:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    token = details.get("highlight") or "END-OF-STATEMENT"
    before = (details.get("start_context") or "").split()
    after = f' following "{" ".join(before[-3:])}"' if before else ""
    return SqlError(-104, "42601", f'An unexpected token "{token}" was found{after}.')
