"""What a wrong statement is answered with: Db2's code and state, and the nearest name."""

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlglot import parser

from catalog.errors import FramesiftError, SqlError
from catalog.lake.statement_watch import within
from catalog.store import CatalogStore
from query.db2.functions import FUNCTIONS
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.oracle import answered_or_refused, check_refusal

FUZZ = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SQL_WORDS = r"""
select from where group by having order fetch first rows only with ur as and or not in is
null like escape between exists case when then else end union all distinct join left on
using cast int decimal sum count avg max coalesce over partition values value fkey size
metaocean t_car t_front frames car * ( ) , . ; = < > <> ^= + - / % || ' " 'x' 1 1.5 1e3
"group" -- /* */ ? :x [ ] { } :: -> for read update lateral unnest table current timestamp
date interval limit offset natural window filter within pivot qualify recursive a b c
rand tablesample bernoulli repeatable median lag percentile_cont regexp_like substr char decode
rollup cube grouping sets lateral syscat.tables to_date timestampdiff rows preceding following
"""
WORDS = st.sampled_from(SQL_WORDS.split())


@pytest.mark.parametrize(
    ("text", "sqlcode", "sqlstate", "words"),
    [
        ("select * from t_carr", -204, "42704", '"T_CARR" is an undefined name.*"T_CAR"'),
        ("select * from metaocen", -204, "42704", '"METAOCEN" .*"METAOCEAN"'),
        ("select * from db2inst1.t_car", -204, "42704", '"DB2INST1.T_CAR"'),
        ("select valu from t_car", -206, "42703", '"VALU" is not valid.*"VALUE"'),
        ("select t_car.valu from t_car", -206, "42703", '"T_CAR.VALU".*"T_CAR.VALUE"'),
        ("select x.value from t_car", -206, "42703", '"X.VALUE"'),
        ("select 1 from t_car where v = 1", -206, "42703", '"V"'),
        ("select value v from t_car where v = '1'", -206, "42703", '"V"'),
        ("select value from t_car where value = \"x\"", -206, "42703", '"X"'),
        ("select a.n from (select value v from t_car) a", -206, "42703", '"A.N"'),
        ("select n from (select value from t_car) as a(m)", -206, "42703", '"N"'),
        ("select fkey from t_car, t_front", -203, "42702", '"FKEY" is ambiguous'),
        ("select 1 from t_car, t_front as t_car", -212, "42712", '"t_car" is a duplicate table'),
        ("select 1 from t_car a, t_front A", -212, "42712", '"a" is a duplicate table'),
        ("with x as (select 1 from t_car) select 1 from x, t_car x", -212, "42712", '"x"'),
        ("select countt(*) from t_car", -440, "42884", '"COUNTT"'),
        ("select * from", -104, "42601", "unexpected token"),
        ("selec * from t_car", -104, "42601", "unexpected token"),
        ("select 'abc from t_car", -104, "42601", "unexpected token"),
        ("select (1 from t_car", -104, "42601", "unexpected token"),
        ("hello", -104, "42601", '"hello".*SELECT'),
        ("", -198, "42617", "blank or empty"),
        (" ; ;", -198, "42617", "blank or empty"),
        ("-- x", -198, "42617", "blank or empty"),
        ("select 1; select 2", -142, "42612", "several statements"),
        ("delete from t_car", -142, "42612", "DELETE"),
        ("select fkey, count(*) from t_car", -119, "42803", "GROUP BY"),
        ("select max(count(*)) from t_car", -112, "42607", "aggregate"),
        ("select 1 from t_car where count(*) > 1", -120, "42903", "aggregate"),
        ("select fkey from t_car union select * from t_car", -421, "42826", "1 and 2"),
        ("select fkey from t_car order by 7", -125, "42805", "7"),
        ("select (select value from t_front) from t_car", -811, "21000", "more than one row"),
        ("select 1 from metaocean where mtime > 'x'", -180, "22007", "date or time"),
        ("select 1 from metaocean where mtime > 5", -401, "42818", "not compatible"),
        ("select 1 from t_car where fkey like 'x!a' escape '!'", -130, "22025", "escape"),
        ("select 1 from t_car where fkey like 'x' escape 'ab'", -130, "22025", "ESCAPE"),
    ],
)  # fmt: skip
def test_code_state_and_words(
    store: CatalogStore, text: str, sqlcode: int, sqlstate: str, words: str
) -> None:
    """The message is Db2's, on one line, and names the nearest name where there is one."""
    with pytest.raises(SqlError) as error:
        run_sql(store, text)
    assert (error.value.sqlcode, error.value.sqlstate) == (sqlcode, sqlstate), error.value
    assert re.search(words, error.value.text)
    assert re.fullmatch(r"SQL\d{4}N  .*  SQLSTATE=\w{5}", str(error.value))


_OPERANDS = (
    "fkey",
    "mtime",
    "size",
    "date(mtime)",
    "1 = 1",
    "null",
    "(select 1 from t_car)",
    "'x'",
)


@pytest.mark.parametrize(
    "every", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.wide)]
)
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_of_anything(store: CatalogStore, name: str, every: bool) -> None:
    """Every function, given what it does not take, in every clause: rows, or Db2's error.

    Some: each clause once, with one of three lists of operands.
    """
    count = FUNCTIONS[name].most or FUNCTIONS[name].least + 1
    for number, clause in enumerate(
        (
            "select {call} from metaocean",
            "select size from metaocean where {call} > 1",
            "select {call} over (order by size) from metaocean",
            "select max({call}) from metaocean group by rollup({call})",
        )
    ):
        for shift in range(3) if every else ((number + len(name)) % 3,):
            given = [_OPERANDS[(shift * 3 + place * 5) % len(_OPERANDS)] for place in range(count)]
            call = f"{name}({', '.join(given)})"
            answered_or_refused(store, clause.replace("{call}", call))


@pytest.mark.parametrize("name", sorted({*parser.Parser.FUNCTION_PARSERS} - {*FUNCTIONS}))
def test_functions_of_the_parser_s_own(store: CatalogStore, name: str) -> None:
    """None is known by another name than the statement has."""
    for call in (f"{name}(value)", f"{name}(value, 1)", f"{name}(value, 1, 'x', 2)", f"{name}()"):
        answered_or_refused(store, f"select {call} from t_car")


@FUZZ
@given(text=st.text(max_size=80))
def test_random_text(store: CatalogStore, text: str) -> None:
    """Text of any characters gives SqlError and no other exception."""
    answered_or_refused(store, text)
    answered_or_refused(store, f"select {text} from t_car")


@FUZZ
@given(words=st.lists(WORDS, max_size=14))
@example(words=["date", "(", "value", ")"])
def test_random_words(store: CatalogStore, words: list[str]) -> None:
    """SQL's words in any order give rows or SqlError and no other exception."""
    text = " ".join(words)
    answered_or_refused(store, text)
    answered_or_refused(store, f"select value, {text} from t_car")
    answered_or_refused(store, f"select value from t_car where {text}")


@FUZZ
@given(words=st.lists(WORDS, max_size=10))
def test_random_where_bodies(store: CatalogStore, words: list[str]) -> None:
    """The same of a selection's WHERE body."""
    body = " ".join(words)
    try:
        with within(2):
            selected = select_frames(store, Question(where=body))
    except FramesiftError as error:
        check_refusal(error, body)
        return
    every = select_frames(store, Question()).frames["fkey"].to_pylist()
    assert set(selected.frames["fkey"].to_pylist()) <= {*every}
