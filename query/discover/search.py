"""Spectrum Discover's search: a condition, filters, groups and an order as statements in Db2's SQL.

rows      the records, or one row per group with count, sum and sumconsumed [bytes]
facets    of a grouped search: how many files there are by each combination of FACETS
counting  how many files are found, for when the rows were not all of them
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from sqlglot import exp

from catalog.errors import InvalidInput, SqlError
from catalog.text.bounded import MOST_FEW, MOST_MANY, Name, Sql, Text
from query.db2 import read_only
from query.db2.dialect import DURATIONS, Db2
from query.db2.read_only import Schema
from query.discover.buckets import BUCKETS

VIEW = "metaocean_view"

FACETS = (
    "platform", "datasource", "site", "cluster", "owner", "group", "filegroup", "sizerange",
    "timesinceaccess", "tier", "state", "collection",
)  # fmt: skip
"""Columns by which a grouped search counts files."""

_TOTALS = ("count", "sum", "sumconsumed")
_COMPARISONS = ("=", ">", "<", "<>", "<=", ">=")
_NOW = re.compile(
    r"\s*(?:now\(\)|current[ _]timestamp)"
    rf"(?:\s*([+-])\s*(\d{{1,6}})\s*({'|'.join(DURATIONS)})S?)?\s*",
    re.IGNORECASE,
)
"""A time as the product's own reports give it to a filter: NOW() - 30 DAYS."""

_MOST_COLUMNS = 100

_Order = Annotated[
    dict[Name, Literal["asc", "desc"]], Field(max_length=_MOST_COLUMNS, fail_fast=True)
]

Scalar = Text | bool | int | float


_Values = Annotated[list[Scalar], Field(max_length=MOST_MANY, fail_fast=True)]


class Filter(BaseModel):
    """One of a search's filters."""

    key: Name
    operator: Name
    value: Scalar | _Values | None = None


class Search(BaseModel):
    """The request of a search."""

    model_config = ConfigDict(frozen=True)

    query: Sql = Field(default="", description="A WHERE body in Db2's SQL.")
    filters: list[Filter] = Field(default=[], max_length=MOST_FEW, fail_fast=True)
    group_by: list[Name] = Field(default=[], max_length=_MOST_COLUMNS, fail_fast=True)
    sort_by: list[_Order] = Field(default=[], max_length=_MOST_COLUMNS, fail_fast=True)
    limit: int | None = Field(default=None, ge=0, lt=2**63, description="At most so many rows.")

    @field_validator("query", "filters", "group_by", "sort_by", mode="before")
    @classmethod
    def _missing(cls, value: Any, info: Any) -> Any:
        """Null is none."""
        return cls.model_fields[info.field_name].default if value is None else value

    @field_validator("sort_by", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [
            {name: way.lower() if isinstance(way, str) else way for name, way in item.items()}
            if isinstance(item, dict)
            else item
            for item in value
        ]


@dataclass(frozen=True)
class SearchSql:
    """A search in Db2's SQL."""

    table: str
    """The table that Spectrum Discover would ask."""
    rows: str
    facets: str | None
    """The statement of its facets; None where there are no groups."""
    counting: str


def to_sql(search: Search, schema: Schema) -> SearchSql:
    """The statements of a search.

    Args:
        schema: The views, of the snapshot that the statements are for.
    """
    names = _Names(schema[VIEW])
    where = _where(search, schema, names)
    counting = f"select count(*) from {VIEW}{where}"
    if not search.group_by:
        rows = f"select * from {VIEW}{where}{_order(search, names.sql)}{_limit(search)}"
        return SearchSql(VIEW, rows, None, counting)
    groups = list(dict.fromkeys(name.lower() for name in search.group_by))
    duplicates = groups == ["filename"]
    only = _DUPLICATES if duplicates else ""
    of_group = _quoted(groups)
    rows = (
        f"select {of_group}, {_TOTALS_SQL} from {_matching(names, where, groups)}{only} "
        f"group by {of_group}{_order(search, _of_groups(groups))}{_limit(search)}"
    )
    of_facets = _quoted(FACETS)
    facets = (
        f'select {of_facets}, count(*) as "count" from {_matching(names, where, FACETS)}{only} '
        f"group by {of_facets}"
    )
    return SearchSql("duplicates" if duplicates else "mrcapacity", rows, facets, counting)


_TOTALS_SQL = (
    'count(*) as "count", coalesce(sum(f_size), 0) as "sum", '
    'coalesce(sum(f_sizeconsumed), 0) as "sumconsumed"'
)

_DUPLICATES = (
    ", (select filename as d_filename, size as d_size from metaocean "
    "group by filename, size having count(*) > 1) d "
    "where found.f_filename = d.d_filename and found.f_size = d.d_size"
)
"""Only files of which there is another one of the same name and size."""


class _Names:
    """Columns and buckets, in any case."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = columns

    def sql(self, name: str) -> str:
        """The column of that name, or a bucket's value."""
        lower = name.lower()
        if lower in self.columns:
            return _quoted([lower])
        if lower in BUCKETS:
            return BUCKETS[lower].sql
        raise _unknown(name)

    def is_time(self, name: str) -> bool:
        """Return whether the column holds times."""
        return self.columns.get(name.lower()) == "TIMESTAMP"


def _unknown(name: str) -> SqlError:
    excerpt = name[:128].upper()
    return SqlError(-206, "42703", f'"{excerpt}" is not valid in the context where it is used.')


def _of_groups(groups: list[str]) -> Any:
    known = (*groups, *_TOTALS)

    def sql(name: str) -> str:
        if name.lower() not in known:
            raise _unknown(name)
        return _quoted([name.lower()])

    return sql


def _matching(names: _Names, where: str, columns: Any) -> str:
    """The files that match, as a table of these columns, and of those for totals and duplicates."""
    values = [f"{names.sql(name)} as {_quoted([name])}" for name in columns]
    more = "filename as f_filename, size as f_size, sizeconsumed as f_sizeconsumed"
    return f"(select {', '.join(values)}, {more} from {VIEW}{where}) found"


def _where(search: Search, schema: Schema, names: _Names) -> str:
    conditions = [_filter(item, names) for item in search.filters]
    if search.query.strip():
        # One condition and no more, and so it stays between the same parentheses.
        read_only.parse_condition(search.query, schema)
        conditions.insert(0, f"({search.query}\n)")
    return f" where {' and '.join(conditions)}" if conditions else ""


def _filter(item: Filter, names: _Names) -> str:
    column, operator, value = names.sql(item.key), item.operator.strip().lower(), item.value
    if operator == "is":
        return f"{column} is {_null(item)}"
    if operator == "in" and isinstance(value, list) and value:
        return f"{column} in ({', '.join(_literal(item, one, names) for one in value)})"
    if value is None or isinstance(value, list):
        raise InvalidInput(
            f"filter of {item.key[:128]}: the value {str(value)[:80]} does not go with operator "
            f"'{operator[:20]}'; expected one value, or with 'in' a list of them"
        )
    if operator == "in":
        return f"{column} in ({_literal(item, value, names)})"
    if operator not in (*_COMPARISONS, "like"):
        raise InvalidInput(
            f"filter of {item.key[:128]}: operator '{operator[:20]}': expected one of "
            f"{', '.join((*_COMPARISONS, 'in', 'like', 'is'))}"
        )
    return f"{column} {operator} {_literal(item, value, names)}"


def _null(item: Filter) -> str:
    text = "null" if item.value is None else " ".join(str(item.value).lower().split())
    if text not in ("null", "not null"):
        raise InvalidInput(
            f"filter of {item.key[:128]}: operator 'is' takes null or 'not null', not "
            f"{str(item.value)[:80]}"
        )
    return text


def _literal(item: Filter, value: Scalar, names: _Names) -> str:
    if isinstance(value, bool) or (isinstance(value, float) and value - value != 0):
        raise InvalidInput(
            f"filter of {item.key[:128]}: the value {value} is neither a text nor a number"
        )
    if not isinstance(value, str):
        return f"{value:+}".removeprefix("+")
    now = _NOW.fullmatch(value) if names.is_time(item.key) else None
    if now is None:
        return exp.Literal.string(value).sql(dialect=Db2)
    sign, number, unit = now.groups()
    return f"current timestamp {sign} {number} {unit}s" if sign else "current timestamp"


def _order(search: Search, sql: Any) -> str:
    items = [f"{sql(name)} {way}" for item in search.sort_by for name, way in item.items()]
    return f" order by {', '.join(items)}" if items else ""


def _limit(search: Search) -> str:
    return "" if search.limit is None else f" fetch first {search.limit} rows only"


def _quoted(names: Any) -> str:
    return ", ".join(exp.to_identifier(name, quoted=True).sql(dialect=Db2) for name in names)
