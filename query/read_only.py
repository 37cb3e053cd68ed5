"""One SELECT over the catalog's tables, and nothing else: decided on the parsed statement.

The engine is locked down as well (catalog.store); this check gives the clear message and keeps
what the engine itself would allow: its table functions, its own tables, its settings.
"""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from catalog.errors import SqlError, nearest_names
from query.db2_dialect import Db2, Db2Cast

MAX_STATEMENT_BYTES = 1_000_000
MAX_DEPTH = 200

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> DuckDB type; all names in lower case."""

_STATEMENTS = ("attach", "copy", "describe", "detach", "drop", "pragma", "set", "use", "export")

_FUNCTIONS: tuple[type[exp.Expression], ...] = (
    Db2Cast,
    exp.Abs, exp.And, exp.Or, exp.Avg, exp.Case, exp.If, exp.Cast, exp.Ceil, exp.Coalesce,
    exp.Concat, exp.Count, exp.CurrentDate, exp.CurrentTimestamp, exp.Day, exp.DenseRank,
    exp.Exists, exp.Floor, exp.Left, exp.Length, exp.Lower, exp.Max, exp.Min, exp.Mod, exp.Month,
    exp.Nullif, exp.Pow, exp.Quarter, exp.Rank, exp.Replace, exp.Right, exp.Round, exp.RowNumber,
    exp.Sign, exp.Sqrt, exp.Stddev, exp.StrPosition, exp.Substring, exp.Sum, exp.Trim, exp.Trunc,
    exp.Upper, exp.Variance, exp.Week, exp.Xor, exp.Year,
)  # fmt: skip
"""Functions a statement may call; everything else is refused by name."""


def parse(text: str) -> exp.Query:
    """The one query in ``text``.

    Raises:
        SqlError: Not SQL, several statements, or one that is no query.
    """
    if len(text.encode()) > MAX_STATEMENT_BYTES:
        raise SqlError(-101, "54001", "The statement is too long or too complex.")
    try:
        statements = [found for found in sqlglot.parse(text, dialect=Db2) if found is not None]
    except (ParseError, TokenError) as error:
        raise _syntax_error(error) from error
    except RecursionError as error:
        raise SqlError(-101, "54001", "The statement is too long or too complex.") from error
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


def check(query: exp.Query, schema: Schema) -> None:
    """Every node of the tree is one that only reads the tables of ``schema``.

    Raises:
        SqlError: SQL0204N unknown table, SQL0440N unknown function, SQL0142N not supported.
    """
    names_in_with = {cte.alias_or_name.lower() for cte in query.find_all(exp.CTE)}
    for node in query.walk():
        if node.depth > MAX_DEPTH:
            raise SqlError(-101, "54001", "The statement is too long or too complex.")
        if isinstance(node, exp.DML | exp.DDL | exp.Command) and not isinstance(node, exp.Query):
            raise _not_allowed(f"{node.key.upper()} inside a query")
        if isinstance(node, exp.Into | exp.Lock | exp.Parameter | exp.Placeholder | exp.Pivot):
            raise _not_allowed(f"{node.key.upper()}")
        if isinstance(node, exp.Table):
            _check_table(node, schema, names_in_with)
        elif isinstance(node, exp.Func) and not isinstance(node, _FUNCTIONS):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
            raise SqlError(
                -440,
                "42884",
                f'No authorized routine named "{name.upper()}" of type "FUNCTION" having '
                "compatible arguments was found.",
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
