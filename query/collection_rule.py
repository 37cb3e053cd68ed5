"""The rule of a collection: a condition on metaocean's own columns, and nothing else."""

from collections.abc import Sequence

from sqlglot import exp

from catalog.errors import InvalidInput, SqlError
from catalog.lake_tables import FILES_COLUMNS
from catalog.limited_store import ROW
from query import read_only
from query.db2_semantics import to_duckdb
from query.read_only import Schema

_SCHEMA: Schema = {ROW: {name.lower(): kind for name, kind in FILES_COLUMNS.items()}}

_BEGIN = f'SELECT "{ROW}"."fkey" AS "fkey" FROM "{ROW}" AS "{ROW}" WHERE '
"""Stands before the condition in what query.db2_semantics makes."""


def check_rule(text: str) -> None:
    """The text can be a collection's rule.

    Tags are left out on purpose: whoever may write a tag would decide who sees the row.

    Raises:
        InvalidInput: It is no condition, asks other rows, or names something that is no column of
            metaocean.
    """
    rows_of([text])


def rows_of(rules: Sequence[str]) -> str:
    """The rows of any of some collections, as a condition in DuckDB's SQL.

    Args:
        rules: Without one there are no rows.

    Returns:
        A condition over the columns of catalog.limited_store.ROW.

    Raises:
        InvalidInput: A rule is none.
    """
    return " OR ".join(f"({_in_duckdb(rule)})" for rule in sorted(set(rules))) or "false"


def _in_duckdb(rule: str) -> str:
    try:
        query = read_only.parse_condition(rule)
        _check(query.args["where"])
        query.args["from_"].this.set("this", exp.to_identifier(ROW))
        read_only.check(query, _SCHEMA)
        made = to_duckdb(query, _SCHEMA)
    except (SqlError, InvalidInput) as error:
        raise InvalidInput(f"rule '{_short(rule)}': {error}") from error
    if not made.startswith(_BEGIN):
        raise InvalidInput(f"rule '{_short(rule)}': it is more than a condition")
    return made.removeprefix(_BEGIN)


def _check(where: exp.Where) -> None:
    if where.find(exp.Query, exp.Star):
        raise InvalidInput("it asks other rows; compare columns only")
    for column in where.find_all(exp.Column):
        if column.table or column.name.lower() not in _SCHEMA[ROW]:
            raise InvalidInput(
                f"{column.sql()} is no column of metaocean; expected some such as datasource, "
                "path, filename, site, owner, collection"
            )
    for node in where.walk():
        node.comments = None


def _short(text: str) -> str:
    return " ".join(text.split())[:200]
