"""Nests of what Db2's rules make long: each operand is computed once, whatever it is."""

from decimal import Decimal

import pytest

from catalog.errors import SqlError
from catalog.store import CatalogStore
from tests.query.catalogs import one, rows

DEEP = 12


def nest(before: str, innermost: str, after: str, depth: int = DEEP) -> str:
    """An expression in itself, so many times."""
    return before * depth + innermost + after * depth


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (nest("1000 / (", "7", " + 1)"), 7),
        (nest("(", "4096 * 3", " / 2)"), 3),
        (nest("(", "4096.0e0", " / 2)"), 1.0),
        (nest("", "5.000", " / 1.0", 6), Decimal(5)),
        (nest("upper(", "'a'", " || 'x')"), "A" + "X" * DEEP),
        (nest("replace(", "'ab'", ", 'b', 'bc')"), "ab" + "c" * DEEP),
        (nest("int(varchar(", "' 7 '", "))"), 7),
        (nest("(", "date('2020-01-31')", " + 1 month)"), "2021-01-29"),
        (nest("mod(1000, ", "999", ")", 2), 0),
        (nest("coalesce(", "nullif(1, 1)", " || 'x', 'y')", 3), "yxx"),
    ],
)
def test_a_deep_nest_is_answered(store: CatalogStore, expression: str, expected: object) -> None:
    """With the value that the steps have one by one."""
    value = one(store, expression)
    assert (str(value) if isinstance(expected, str) else value) == expected


def test_operands_are_anything(store: CatalogStore) -> None:
    """Sums, windows, queries and columns of an outer query, and the group that it makes."""
    deep = nest("(", "{}", " / 1.0e0)")
    [(total, files)] = rows(store, "select sum(size), count(*) from metaocean")
    for of in ("sum(size)", "sum(sum(size)) over ()", "(select sum(size) from metaocean)"):
        one_row = "sysibm.sysdummy1" if of.startswith("(") else "metaocean"
        assert rows(store, f"select {deep.format(of)} from {one_row}") == [(total,)]
    size = deep.format("size")
    grouped = rows(store, f"select {size}, count(*) as n from metaocean group by {size}")
    assert sum(int(str(n)) for _, n in grouped) == files
    inner = f"select 1 from metaocean m where {deep.format('m.size + o.size')} = 2e0 * o.size"
    assert rows(store, f"select count(*) from metaocean o where not exists ({inner})") == [(0,)]


def test_a_table_may_be_called_as_the_operands(store: CatalogStore) -> None:
    """Names of the statement are not those of the rewriting."""
    deep = nest("(", "operands.a", " / operands.b)", 3)
    inner = "(select 64 as a, 2 as b, 5 as operands from sysibm.sysdummy1) operands"
    assert rows(store, f"select {deep}, operands.operands from {inner}") == [(8, 5)]


def test_what_fails_inside_of_a_nest(store: CatalogStore) -> None:
    """It has Db2's error, and none where CASE leaves it out."""
    deep = nest("1 / (", "size - size", ")", 3)
    with pytest.raises(SqlError, match="Division by zero"):
        rows(store, f"select {deep} from metaocean")
    left_out = f"select max(case when size < 0 then {deep} end) from metaocean"
    assert rows(store, left_out) == [(None,)]
