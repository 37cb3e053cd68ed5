"""The rule of a collection: a condition on metaocean's own columns, and nothing else.

A rule may fail for a row, as ``int(filename) = 3`` does where the name is no number. An error would
tell of rows that may not be seen, so the part that fails is neither true nor false there, as one
that asks a null: the row is seen where the rest decides so whatever that part is.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache

import duckdb
from sqlglot import exp

from catalog.errors import CollectionFails, InvalidInput, SqlError
from catalog.lake.catalog import Catalog
from catalog.lake.connection import SAFE
from catalog.lake.layouts import ROW
from catalog.lake.schema import FILES, FILES_COLUMNS
from catalog.text.quoting import literal
from query.db2 import read_only
from query.db2.calls import Random
from query.db2.errors import translated
from query.db2.names import Views
from query.db2.semantics import condition_to_duckdb
from query.db2.templates import fill
from query.run.collection_column import COLLECTION
from query.run.run_sql import execute

_SCHEMA = Views({ROW: {name.lower(): kind for name, kind in FILES_COLUMNS.items()}})

_EXPECTED = "expected a condition on metaocean's columns, such as datasource = 'a2d2'"

# In WHERE only: of a SELECT's columns DuckDB 1.5.5 takes what stands twice out of TRY.
_TRIED = "TRY(CAST({part} AS BOOLEAN))"

_PART_FAILS = "TRY(CAST({part} AS BOOLEAN) IS NULL) IS NULL"

_RULE_FAILS = "{tried} IS NULL AND {failing}"

_ERROR = f"""CASE WHEN CAST('!' || coalesce("{ROW}"."fkey", '') AS BOOLEAN) THEN NULL END"""
"""Fails as error() does, of a row's value: TRY takes no error(), and a constant fails before it."""

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.Like,
)  # fmt: skip
_VALUES = (exp.Column, exp.Literal, exp.Null, exp.Lower, exp.Upper, exp.Trim)
"""Operands of comparisons that cannot fail."""

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{6})?)?")


def check_rule(text: str) -> None:
    """The text can be a collection's rule.

    Tags are left out on purpose: whoever may write a tag would decide who sees the row.

    Raises:
        InvalidInput: It is no condition, asks other rows, names something that is no column of
            metaocean, or fails whatever the row.
    """
    rule, failing = _in_duckdb(text, _may_fail), _in_duckdb(text, _failing)
    try:
        kind, fails = _tried(rule, failing)
    except duckdb.Error as error:
        why = translated(error).text.removesuffix(".")
        raise InvalidInput(
            f"rule '{_short(text)}': it cannot be evaluated: {why}; {_EXPECTED}"
        ) from error
    if kind != "BOOLEAN":
        raise InvalidInput(f"rule '{_short(text)}': it is a value of type {kind}; {_EXPECTED}")
    if fails:
        raise InvalidInput(
            f"rule '{_short(text)}': it fails whatever the file, as a division by zero does or "
            f"a text that is no number or date; {_EXPECTED}"
        )


def try_rule(text: str, catalog: Callable[[], Catalog]) -> None:
    """`check_rule`, and the rule fails for no row that there is; for who sees them all.

    Args:
        catalog: Opens the catalog with its rows; not asked where the rule can fail for none.

    Raises:
        InvalidInput: It cannot be a rule, or fails for a row; the message names one.
    """
    check_rule(text)
    if _in_duckdb(text, _never_failing) == _in_duckdb(text, _may_fail):
        return  # none of its parts can
    failing = _in_duckdb(text, _failing)
    statement = f'SELECT "{ROW}".fkey FROM main.{FILES} AS "{ROW}" WHERE {failing} LIMIT 1'
    with catalog().reading() as snapshot:
        fkeys = execute(snapshot, statement).column(0).to_pylist()
    if fkeys:
        raise InvalidInput(
            f"rule '{_short(text)}': it fails for a file, {fkeys[0]}; expected one that holds or "
            "does not for each: compare its text, or convert in CASE what can be converted"
        )


def rows_of(rules: Sequence[str]) -> str:
    """The rows of any of some collections, as a condition in DuckDB's SQL that fails for no row.

    Args:
        rules: Without one there are no rows.

    Returns:
        A condition over the columns of catalog.lake.layouts.ROW.

    Raises:
        CollectionFails: A rule is none.
    """
    try:
        rewritten = [_in_duckdb(rule, _never_failing) for rule in sorted(set(rules))]
    except InvalidInput as error:
        raise CollectionFails from error
    return " OR ".join(f"({rule})" for rule in rewritten) or "false"


@lru_cache(maxsize=64)
def collection_column(named_rules: tuple[tuple[str, str], ...]) -> str:
    """The name of the first of some collections that a row is in, null where it is in none.

    Args:
        named_rules: Name and rule of each collection, the first one first.

    Returns:
        A value in DuckDB's SQL over the columns of ROW; empty where there are no collections.
    """
    cases = []
    for name, rule in named_rules:
        try:
            holds = _in_duckdb(rule, _never_failing)
            if holds != _in_duckdb(rule, _may_fail):  # TRY holds in WHERE only: see _TRIED
                of_files = f'main.{FILES} AS "{ROW}" WHERE {holds}'
                holds = f'"{ROW}"."fkey" IN (SELECT "{ROW}"."fkey" FROM {of_files})'
        except InvalidInput:
            continue  # it holds for no row, as for its users
        cases.append(f"WHEN {holds} THEN {literal(name)}")
    return f"CASE {' '.join(cases)} END" if cases else ""


def files_in(rule: str, catalog: Catalog) -> int:
    """The number of files for which a rule holds now."""
    of_files = f'main.{FILES} AS "{ROW}" WHERE {rows_of([rule])}'
    with catalog.reading() as snapshot:
        return int(execute(snapshot, f"SELECT count(*) FROM {of_files}").column(0)[0].as_py())


def _tried(rule: str, failing: str) -> tuple[str, bool]:
    """The rule's type, and whether it fails for a file of which nothing is known."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        **SAFE,
        "enable_external_access": False,
        "threads": 1,
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in FILES_COLUMNS.items())
        connection.execute(f"CREATE TABLE {FILES} ({columns})")
        connection.execute(f"INSERT INTO {FILES} (fkey) VALUES (NULL)")
        rows = f'FROM {FILES} AS "{ROW}"'
        kind = connection.execute(f"DESCRIBE SELECT {rule} {rows} WHERE {rule}").fetchall()[0][1]
        if kind != "BOOLEAN":
            return kind, False
        return kind, bool(connection.execute(f"SELECT 1 {rows} WHERE {failing}").fetchall())


def _in_duckdb(rule: str, finish: Callable[[exp.Expr], exp.Expr]) -> str:
    try:
        query = read_only.parse_condition(rule)
        _check(query.args["where"])
        query.args["from_"].this.set("this", exp.to_identifier(ROW))
        read_only.check(query, _SCHEMA)
        return condition_to_duckdb(query, _SCHEMA, finish)
    except (SqlError, InvalidInput) as error:
        raise InvalidInput(f"rule '{_short(rule)}': {error}") from error


def _check(where: exp.Where) -> None:
    if where.find(exp.Query, exp.Star):
        raise InvalidInput("it asks other rows; compare columns only")
    if where.find(Random):
        raise InvalidInput("RAND is another number each time; a collection has the same files")
    for column in where.find_all(exp.Column):
        if column.table or column.name.lower() not in _SCHEMA[ROW]:
            raise InvalidInput(
                f"{column.sql()} is no column of metaocean; expected some such as datasource, "
                "path, filename, site, owner"
            )
        if column.name.lower() == COLLECTION:
            raise InvalidInput("it names collection, which rules decide; compare other columns")
    for node in where.walk():
        node.comments = None


def _may_fail(rule: exp.Expr) -> exp.Expr:
    """The rule, failing in a way that TRY takes."""
    for node in list(rule.find_all(exp.Anonymous)):
        if node.name.lower() == "error":
            node.replace(fill(_ERROR))
    return rule


def _never_failing(rule: exp.Expr) -> exp.Expr:
    """The rule, null where a part that fails would decide."""
    for operand in _failing_parts(_may_fail(rule)):
        operand.replace(fill(_TRIED, part=operand))
    return rule


def _failing(rule: exp.Expr) -> exp.Expr:
    """Where a part fails that would decide."""
    failing: exp.Expr = exp.false()
    for operand in _failing_parts(_may_fail(rule)):
        failing = exp.Or(this=failing, expression=fill(_PART_FAILS, part=operand))
    failure = fill(_RULE_FAILS, tried=_never_failing(rule), failing=failing)
    read_only.balance(failure)
    return failure


def _failing_parts(rule: exp.Expr) -> list[exp.Expr]:
    """The parts of a rule that can fail, of those that it connects by AND, OR and NOT.

    The rest stays as it is: DuckDB skips row groups by it, and not by what stands in TRY.
    """
    parts: list[exp.Expr] = []
    pending = [rule]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Paren | exp.And | exp.Or | exp.Not):
            pending += node.iter_expressions()
        elif not (isinstance(node, _COMPARISONS) and all(map(_cannot_fail, node.walk()))):
            parts.append(node)
    return parts


def _cannot_fail(node: exp.Expr) -> bool:
    """A node of a comparison fails for no row, whatever it holds."""
    if isinstance(node, _COMPARISONS):
        # Text beside a time is made one of, and beside a condition a BOOLEAN.
        kinds = {_SCHEMA[ROW][column.name.lower()] for column in node.find_all(exp.Column)}
        operands = [operand.unnest() for operand in node.iter_expressions()]
        values = all(isinstance(operand, (*_VALUES, exp.Case)) for operand in operands)
        times = "TIMESTAMP" not in kinds or all(map(_is_time, node.find_all(exp.Literal)))
        return values and times and len(kinds) < 2
    if isinstance(node, exp.Case):  # a text without blanks at its end, which no user writes so
        return all(_is_suffix(branch.this.unnest()) for branch in node.args["ifs"])
    # A fraction beside a BIGINT makes that a DECIMAL, which it may not fit.
    is_fraction = isinstance(node, exp.Literal) and not node.is_string and not node.is_int
    is_value = isinstance(node, (*_VALUES, exp.Identifier, exp.Paren, exp.If)) or _is_suffix(node)
    return is_value and not is_fraction


def _is_suffix(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "suffix"


def _is_time(literal: exp.Literal) -> bool:
    """Return whether it is a time as Python and DuckDB read it."""
    try:
        return bool(_TIME.fullmatch(literal.name) and datetime.fromisoformat(literal.name))
    except ValueError:
        return False


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
