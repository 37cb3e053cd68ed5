"""The shape of a statement: what is left out of it, and what never is."""

import re
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import SqlError
from catalog.lake import sql_guard as select_only
from catalog.lake.statement_shape import Shape, shape_of
from query.run.run_sql import run_sql
from tests.query.catalogs import drawn


@pytest.mark.parametrize(
    ("statement", "shape"),
    [
        ("car >= 5", "car >= #"),
        ("a where int(x)>=10 and y = 3 order by 1", "a where int(x)>=# and y = # order by 1"),
        ("(x BETWEEN 5 AND 6) or z < 4", "(x BETWEEN # AND #) or z < #"),
        ("case when x > 5 then 1 else 2 end", "case when x > # then 1 else 2 end"),
        ("b <> 3 group by 1", "b <> # group by 1"),
        ("a = 'x''y' and b > 3;", "a = 'x''y' and b > #;"),
        ('"a>=5 and" >= 5', '"a>=5 and" >= #'),
        ("x->>'b' = 5", "x->>'b' = #"),
        ("fkey > ? and x >= 7", "fkey > ? and x >= #"),
        ("x = 007", "x = #"),
    ],
)
def test_numbers_that_are_compared_are_left_out(statement: str, shape: str) -> None:
    """Each by itself, whatever is around it."""
    template = shape_of(statement)
    assert template.with_numbers(["#"] * len(template.numbers)) == shape


@pytest.mark.parametrize(
    "statement",
    [
        "select a from b order by 1",
        "select a from b limit 5",
        "round(x, 2) > y",
        "x >= 5.5",
        "x >= 5e3",
        "x >= 5 + 1",
        "x >= -5",
        "x >= 1234567890",  # may be too large for an INTEGER
        "x = 5::bigint",
        "x between 5 and 6 + 1",
        "x = 5 days",
        "x >= 5 limit 4",
        "f(a => 5)",
        "a := 5",
        "a == 5",
        "a ||= 5",
        "a = 'b >= 5'",
        "a = 5 -- b",
        "a = 5 /* b */",
        "e'it\\'s' = b and a >= 5",
        "u&'x' = b and a >= 5",
        "$$a$$ = b and a >= 5",
        "a = 'open and b >= 5",
        'a = "open and b >= 5',
        "a='x'b and c >= 5",
        "a >= 5 and {b}",
        "a >= 5 and #1",
        "a >= 5\0",
    ],
)
def test_nothing_else_is(statement: str) -> None:
    """Nor anything of a text that is not plain."""
    assert shape_of(statement) == Shape((statement,), ())


TEXTS = st.text(
    st.sampled_from(list("ab xX'\"=<>!0123456789().,-/*;$\\_e \n")), max_size=40
) | st.lists(
    st.sampled_from(
        ["a", ">=", "=", "<>", "5", "17", "between", "and", "or", "(", ")", "'", "''", '"', "'t'",
         "--", ".", "e'", "then", ";", "+"]
    ),
    max_size=14,
).map(" ".join)  # fmt: skip


@given(statement=TEXTS)
def test_parts_and_numbers_are_the_statement(statement: str) -> None:
    """Nothing is lost, and a shape belongs to one set of numbers."""
    shape = shape_of(statement)
    assert shape.with_numbers(shape.numbers) == statement
    assert all(re.fullmatch("[0-9]{1,9}", number) for number in shape.numbers)
    again = shape_of(shape.with_numbers(["1"] * len(shape.numbers)))
    assert again.parts == shape.parts


@pytest.mark.wide
def test_a_shape_that_passed_opens_no_door(catalogued: Path, tmp_path: Path) -> None:
    """What is refused is refused beside an accepted statement of nearly the same text."""
    store = drawn(catalogued, tmp_path)
    with store.reading() as cursor:
        assert cursor.execute("SELECT 1 WHERE 2 > 1").fetchall() == [(1,)]
        assert cursor.execute("SELECT 1 WHERE 2 > 3").fetchall() == []
        assert ("SELECT 1 WHERE 2 > ", "") in select_only._ACCEPTED
        for statement in (
            "SELECT 1 WHERE 2 > getenv('HOME')",
            "SELECT 1 WHERE 2 > 1; SELECT 2",
            "SELECT 1 FROM read_text('/etc/passwd') WHERE 2 > 1",
            "COPY (SELECT 1 WHERE 2 > 1) TO 'x'",
        ):
            with pytest.raises((SqlError, duckdb.Error)):
                cursor.execute(statement).fetchall()
    for number in (1, 2, 3):
        with pytest.raises(SqlError):
            run_sql(store, f"select count(*) from read_text('/etc/passwd') where 1 > {number}")
