"""One SELECT over the catalog's tables, and nothing else: decided on the parsed statement.

The engine is locked down as well (catalog.store); this check gives the clear message and keeps
what the engine itself would allow: its table functions, its own tables, its settings.
"""

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from catalog.errors import SqlError, nearest_names
from query.db2 import syscat
from query.db2.dialect import Db2, Db2Duration, join_names
from query.db2.functions import BY_NODE
from query.db2.random import sample_tables
from query.db2.time_limit import go_on
from query.db2.typography import as_typed, odd_characters

MAX_STATEMENT_BYTES = 1_000_000
MAX_TOKENS = 100_000
"""Words and signs of a statement; parsing takes 10 microseconds for each, rewriting 20 to 60."""

MAX_DEPTH = 200
"""Levels of a statement, a chain of ANDs or ORs counting for its logarithm."""

MAX_CONSTANT_BYTES = 32_672

MAX_TABLES = 256
"""Tables and queries in a statement, each: names are looked up in all of them."""

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> DuckDB type; all names in lower case."""

_STATEMENTS = ("attach", "copy", "describe", "detach", "drop", "pragma", "set", "use", "export")

_PARTS: frozenset[type[exp.Expr]] = frozenset((
    Db2Duration,
    exp.Add, exp.Alias, exp.All, exp.And, exp.Any, exp.Between, exp.Boolean, exp.Case, exp.Cast,
    exp.Column, exp.CTE, exp.Cube, exp.DPipe, exp.DataType, exp.DataTypeParam, exp.Distinct,
    exp.Div, exp.EQ,
    exp.Escape, exp.Except, exp.Exists, exp.Fetch, exp.From, exp.GT, exp.GTE, exp.Group,
    exp.GroupingSets, exp.Having, exp.Lateral, exp.Rollup,
    exp.Identifier, exp.If, exp.In, exp.Intersect, exp.Is, exp.Join, exp.LT, exp.LTE, exp.Like,
    exp.Limit, exp.LimitOptions, exp.Literal, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Null,
    exp.Offset, exp.Or, exp.Order, exp.Ordered, exp.Paren, exp.Select, exp.Star, exp.Sub,
    exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Union, exp.Var,
    exp.Where, exp.Window, exp.WindowSpec, exp.With, exp.WithinGroup,
))  # fmt: skip
"""Nodes that a statement may contain beside functions; any other node is refused."""

_WINDOWED = (
    exp.AggFunc, exp.Anonymous, exp.DenseRank, exp.Rank, exp.RowNumber, exp.WithinGroup,
)  # fmt: skip
"""Nodes that OVER may follow; an earlier check refuses unknown functions."""

_TYPES = frozenset((exp.DType.DATE, exp.DType.TIME, exp.DType.TIMESTAMP))
"""Types of a CAST besides the numbers and texts that db2.dialect turns into functions."""


def parse(text: str, schema: Schema | None = None) -> exp.Query:
    """The one query in ``text``.

    Args:
        schema: What it may name; without it no name has a hyphen unless in quotes.

    Raises:
        SqlError: Not SQL, several statements, or one that is no query.
    """
    statements = _parsed(text, schema or {})
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
    _replace_dummy(statement)
    syscat.named(statement)
    _make_lateral(statement)
    sample_tables(statement)
    balance(statement)
    return statement


def _replace_dummy(query: exp.Query) -> None:
    """SYSIBM.SYSDUMMY1, the one row that clients ask for the time or for a sign of life."""
    for table in list(query.find_all(exp.Table)):
        if (table.db.lower(), table.name.lower()) == ("sysibm", "sysdummy1"):
            row = exp.Select(expressions=[exp.alias_(exp.Literal.string("Y"), "ibmreqd")])
            alias = table.alias or "sysdummy1"
            table.replace(
                exp.Subquery(this=row, alias=exp.TableAlias(this=exp.to_identifier(alias)))
            )


def _make_lateral(query: exp.Query) -> None:
    """``TABLE (SELECT ...) AS t``, Db2's older word for LATERAL."""
    for table in list(query.find_all(exp.Table)):
        call = table.this
        rows = call.expressions if isinstance(call, exp.Anonymous) else ()
        if call.name.upper() == "TABLE" and len(rows) == 1 and isinstance(rows[0], exp.Query):
            inner = rows[0] if isinstance(rows[0], exp.Subquery) else exp.Subquery(this=rows[0])
            table.replace(exp.Lateral(this=inner, alias=table.args.get("alias")))


def balance(query: exp.Expr) -> None:
    """Make trees of the chains that the parser makes of ``a OR b OR c ...``, in place.

    A chain of thousands of terms would be as many levels deep.
    """
    for kind in (exp.And, exp.Or):
        heads = [node for node in query.find_all(kind) if not isinstance(node.parent, kind)]
        for head in heads:
            terms = _terms(head, kind)
            if len(terms) > 2:
                head.replace(_tree(terms, kind))


def _terms(head: exp.Expr, kind: type[exp.Connector]) -> list[exp.Expr]:
    terms: list[exp.Expr] = []
    pending = [head]
    while pending:
        node = pending.pop()
        if isinstance(node, kind):
            pending += [node.right, node.left]
        else:
            terms.append(node)
    return terms


def _tree(terms: list[exp.Expr], kind: type[exp.Connector]) -> exp.Expr:
    while len(terms) > 1:
        pairs = [
            kind(this=left, expression=right)
            for left, right in zip(terms[::2], terms[1::2], strict=False)
        ]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def parse_condition(text: str, schema: Schema | None = None) -> exp.Select:
    """The WHERE body in ``text``, as ``SELECT fkey FROM frames WHERE body``.

    Raises:
        SqlError: It is no condition, or more than one.
    """
    try:
        # In parentheses that a comment at its end cannot reach, so that it can only be one.
        query = parse(f"SELECT fkey FROM frames WHERE ({as_typed(text)}\n)", schema)
    except SqlError as error:
        if error.sqlcode != -104:
            raise
        excerpt = " ".join(text.split())[:200]
        raise SqlError(-104, "42601", f'The condition "{excerpt}" is not valid.') from error
    where = query.args.get("where")
    if not (
        isinstance(query, exp.Select)
        and isinstance(where, exp.Where)
        and isinstance(where.this, exp.Paren)
        and not isinstance(where.this.this, exp.Query)
        and not any(value for name, value in query.args.items() if name not in _BARE)
    ):
        excerpt = " ".join(text.split())[:200]
        raise SqlError(-104, "42601", f'The condition "{excerpt}" is not valid.')
    return query


_BARE = ("kind", "expressions", "from_", "where")
"""Clauses of SELECT ... FROM ... WHERE, and no other."""


def _parsed(text: str, schema: Schema) -> list[exp.Expr]:
    try:
        length = len(text.encode())
    except UnicodeEncodeError as error:
        raise SqlError(-104, "42601", "The statement is not valid Unicode text.") from error
    if length > MAX_STATEMENT_BYTES:
        raise too_complex()
    if "\0" in text:
        raise SqlError(-104, "42601", "The statement has a NUL character.")
    text = as_typed(text)
    try:
        dialect = Db2()
        tokens = dialect.tokenize(text)
        if len(tokens) > MAX_TOKENS:
            raise too_complex()
        if "-" in text:
            columns = {name for names in schema.values() for name in names}
            named = {name for name in columns.union(schema) if "-" in name}
            join_names(tokens, named, columns)
        return [query for query in dialect.parser().parse(tokens, text) if query is not None]
    except (ParseError, TokenError) as error:
        raise _syntax_error(error) from error
    except RecursionError as error:
        raise too_complex() from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # The parser's own faults, as with a function that has too few arguments: VAR_MAP(a).
        raise SqlError(-104, "42601", "The statement is not valid SQL.") from error


def too_complex() -> SqlError:
    """Db2's error for a statement beyond its limits."""
    return SqlError(-101, "54001", "The statement is too long or too complex.")


def check(query: exp.Query, schema: Schema) -> None:
    """Every node of the tree is one that only reads the tables of ``schema``.

    Raises:
        SqlError: SQL0204N unknown table, SQL0440N unknown function, SQL0142N not supported.
    """
    names_in_with = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    level: list[exp.Expr] = [query]
    depth = tables = 0
    while level:
        go_on()
        tables += sum(isinstance(node, exp.Table | exp.Select) for node in level)
        if depth > MAX_DEPTH:
            raise too_complex()
        if tables > 2 * MAX_TABLES:
            raise SqlError(-129, "54004", f"The statement has more than {MAX_TABLES} tables.")
        for node in level:
            if isinstance(node, exp.Table):
                _check_table(node, schema, names_in_with)
            _check_kind(node)
        level = [child for node in level for child in node.iter_expressions()]
        depth += 1


def _check_kind(node: exp.Expr) -> None:
    """The node is of a kind that only reads."""
    if type(node) in BY_NODE:
        return
    if isinstance(node, exp.Func) and type(node) not in _PARTS:
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        raise SqlError(
            -440,
            "42884",
            f'No authorized routine named "{name[:40].upper()}" of type "FUNCTION" having '
            "compatible arguments was found.",
        )
    if type(node) not in _PARTS:
        raise _not_allowed(f"{node.key.upper()} inside a query")
    if isinstance(node, exp.Cast):
        _check_cast(node)
    if isinstance(node, exp.Literal) and len(node.name.encode()) > MAX_CONSTANT_BYTES:
        raise SqlError(
            -102, "54002", f"A constant is longer than {MAX_CONSTANT_BYTES} bytes: "
            f'"{node.name[:40]}".',
        )  # fmt: skip
    if isinstance(node, exp.Star) and (
        any(node.args.values()) or not isinstance(node.parent, exp.Select | exp.Column | exp.Count)
    ):
        raise _not_allowed("a star inside an expression or with exceptions")
    if isinstance(node, exp.Limit | exp.Fetch | exp.Offset):
        _check_limit(node)
    if isinstance(node, exp.Lateral):
        _check_lateral(node)
    if isinstance(node, exp.Window) and not isinstance(node.this, _WINDOWED):
        raise SqlError(-104, "42601", "OVER is not valid here. Expected: an aggregate or OLAP "
                       "function before it.")  # fmt: skip


def _check_cast(node: exp.Cast) -> None:
    if node.to.this not in _TYPES:
        raise SqlError(-204, "42704", f'"{node.to.sql()[:40].upper()}" is an undefined type.')


def _check_lateral(node: exp.Lateral) -> None:
    """LATERAL (SELECT ...) AS t, and no function."""
    words = any(node.args.get(name) for name in ("view", "outer", "cross_apply", "ordinality"))
    if words or not isinstance(node.this, exp.Subquery) or not node.alias:
        raise _not_allowed("LATERAL of anything but a query in parentheses with a name after it")


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
    hint += odd_characters(name)
    return SqlError(-204, "42704", f'"{name.upper()}" is an undefined name.{hint}')


def _not_allowed(what: str) -> SqlError:
    return SqlError(-142, "42612", f"The SQL statement is not supported: {what}.")


def _syntax_error(error: Exception) -> SqlError:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    token = details.get("highlight") or "END-OF-STATEMENT"
    before = (details.get("start_context") or "").split()
    after = f' following "{" ".join(before[-3:])}"' if before else ""
    return SqlError(-104, "42601", f'An unexpected token "{token}" was found{after}.')
