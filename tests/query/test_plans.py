"""Statements that come again are planned once, where their answer has few rows."""

import pytest

from catalog.lake.sql_guard import SelectOnly
from catalog.store import CatalogStore
from query.run.prepared import prepare
from query.run.run_sql import run_sql

FEW = "select count(*) as planned from metaocean"
NONE = "select fkey from metaocean where filename = 'there is none'"
MANY = "select a.fkey from metaocean a, metaocean b, metaocean c fetch first 1025 rows only"
NOW = "select count(*) from metaocean where inserttime <= current timestamp"


def plan(store: CatalogStore, statement: str) -> str | None:
    """The plan that the next cursor has of a statement; "" where it is made when that comes."""
    with store.reading() as snapshot:
        assert isinstance(snapshot._cursor, SelectOnly)
        return snapshot._cursor._plans.get(prepare(snapshot, statement))


@pytest.mark.parametrize("statement", [FEW, NONE])
def test_few_rows_are_planned_at_the_second_sight(store: CatalogStore, statement: str) -> None:
    first = run_sql(store, statement).rows
    assert plan(store, statement) == ""
    second = run_sql(store, statement).rows
    name = plan(store, statement)
    assert name
    assert run_sql(store, statement).rows == second == first
    assert plan(store, statement) == name


def test_many_rows_are_not_planned(store: CatalogStore) -> None:
    for _ in range(3):
        assert run_sql(store, MANY).rows.num_rows == 1025
        assert plan(store, MANY) is None


def test_rows_that_were_not_read_are_not_planned(store: CatalogStore) -> None:
    """Whoever stops before the end does not know how many rows there are."""
    for _ in range(3):
        assert run_sql(store, MANY, max_rows=1).truncated
        assert plan(store, MANY) is None


def test_the_time_is_of_each_statement(store: CatalogStore) -> None:
    """A plan would keep the time of its making."""
    for _ in range(3):
        run_sql(store, NOW)
        assert not plan(store, NOW)


def test_a_files_statement_is_not_planned(stored: CatalogStore) -> None:
    """A cursor on Parquet serves once."""
    for _ in range(3):
        run_sql(stored, FEW)
        assert plan(stored, FEW) is None
