"""Statements rewritten once for all compared numbers become what they become one by one."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import SqlError
from query.db2 import read_only
from query.db2.names import Views
from query.db2.semantics import condition_to_duckdb, to_duckdb
from query.run.templates import Templates
from tests.query.test_join_elimination import NUMBERS, TAGS, statements

_VIEWS: read_only.Schema = {
    "metaocean": dict.fromkeys(("fkey", "filename", "filetype", "path", "platform"), "VARCHAR")
    | {"size": "BIGINT", "mtime": "TIMESTAMP"},
    "metaocean_view": dict.fromkeys(("fkey", "nodename", "filename", "filetype"), "VARCHAR")
    | {"size": "BIGINT"}
    | dict.fromkeys(TAGS, "VARCHAR"),
    **{f"t_{tag}": {"fkey": "VARCHAR", "value": "VARCHAR"} for tag in TAGS},
}
SCHEMA = Views(_VIEWS)

WRITTEN = (
    "select count(*) from t_car where int(value) >= {}",
    "select count(*) from t_car where value >= {} and value < {}",
    "select count(*) from t_car where int(value) / 7 > {} or int(value) * 100 / 3 <= {}",
    "select filename, size from metaocean where size between {} and {} order by 2 limit 5",
    "select filename from metaocean where size = {} fetch first 3 rows only",
    "select filetype, count(*) from metaocean group by filetype having count(*) > {}",
    "select case when size > {} then 'big' else 'small' end from metaocean",
    "select (size > {}), count(*) from metaocean group by (size > {})",
    "select case when size > {} then 1 end from metaocean group by case when size > {} then 1 end",
    "select count(*) from metaocean where filename = 'size >= 5' and size >= {}",
    "select count(*) from metaocean where mtime > '2018-08-07 14:50:28' and size >= {}",
    "select round(size, 2), substr(filename, 1, 4) from metaocean where size > {}",
    "select decimal(size, 12, 2) from metaocean where decimal(size, 12, 2) >= {}",
    "select 100.0 * sum(size) / count(*) from metaocean where size <> {} and size != {}",
    "select year(mtime) from metaocean where year(mtime) = {}",
    "select count(*) from metaocean m, t_car c where m.fkey = c.fkey and c.value > {}",
    "select fkey from metaocean where size > {} and (size < {} or size = {})",
    "select fkey from metaocean where size in (select int(value) from t_car where value > {})",
    "select fkey from metaocean where nothing > {}",
    "select fkey from metaocean where filename like '%x%' and int(filename) = {}",
    "select fkey from metaocean where (size > {}) = (size > {})",
)

CONDITIONS = (
    "car >= {}",
    "car between {} and {} and speed >= {}",
    "int(car) * 2 > {} or not (car = {})",
    "filename like '2018%' and size > {}",
    "size > (select max(size) from metaocean where size < {})",
)

INTEGERS = st.integers(0, 999_999_999).map(str) | st.sampled_from(
    ["0", "00", "007", "1", "2", "999999999", "918273645", "918273646", "2147483648", "5.0"]
)

ANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def _rewrite(statement: str) -> str:
    query = read_only.parse(statement, SCHEMA)
    read_only.check(query, SCHEMA)
    return to_duckdb(query, SCHEMA)


def _rewrite_condition(body: str) -> str:
    schema = {**SCHEMA, "frames": {**SCHEMA["metaocean_view"], **dict.fromkeys(NUMBERS, "BIGINT")}}
    query = read_only.parse_condition(body, schema)
    read_only.check(query, schema)
    return condition_to_duckdb(query, Views(schema))


def _made(statement: str, make: Callable[[str], str]) -> str:
    try:
        return make(statement)
    except SqlError as error:
        return f"refused: {error.sqlcode}"


@settings(ANY, max_examples=60)
@given(statement=st.sampled_from(WRITTEN) | st.sampled_from(CONDITIONS), data=st.data())
def test_any_numbers_give_what_they_give_alone(statement: str, data: st.DataObject) -> None:
    """Six times in a row, by when the shape is a template where it can be one."""
    rewrite = _rewrite if statement in WRITTEN else _rewrite_condition
    templates = Templates(4)
    for _ in range(6):
        numbers = [data.draw(INTEGERS) for _ in range(statement.count("{}"))]
        filled = statement.format(*numbers)
        through = _made(filled, lambda text: templates.rewritten(text, rewrite))
        assert through == _made(filled, rewrite)


@settings(ANY, max_examples=60)
@given(statement=statements(), numbers=st.lists(INTEGERS, min_size=4, max_size=4))
def test_any_statement_gives_what_it_gives_alone(statement: str, numbers: list[str]) -> None:
    """Of joins, groups and nested statements."""
    templates = Templates(4)
    for number in numbers:
        filled = statement.replace(" 900", f" {number}").replace(" 7", f" {numbers[0]}")
        through = _made(filled, lambda text: templates.rewritten(text, _rewrite))
        assert through == _made(filled, _rewrite)


@pytest.mark.parametrize("statement", WRITTEN[:3])
def test_the_third_of_a_shape_is_not_rewritten(statement: str) -> None:
    """That is what it is for; without numbers it is the second."""
    templates, statements = Templates(4), []

    def noted(text: str) -> str:
        statements.append(text)
        return _rewrite(text)

    for number in ("10", "20", "30", "40"):
        templates.rewritten(statement.format(number, number), noted)
    assert len(statements) == 3  # two of them, and the one with stand-ins
    for _ in range(2):
        templates.rewritten("select count(*) from t_car", noted)
    assert len(statements) == 4


def test_only_so_many_shapes_are_kept() -> None:
    """Those that were not asked for longest are forgotten; long ones are never kept."""
    templates = Templates(2)
    short = [f"select count(*) + {n} from t_car" for n in range(3)]
    long = f"select count(*) from t_car where {'1 = 1 and ' * 10_000} 1 = 1"
    for text in short:
        templates.rewritten(text, _rewrite)
    templates.rewritten(long, str.upper)
    assert [(text,) in templates._kept for text in (*short, long)] == [False, True, True, False]


def test_what_depends_on_a_number_is_no_template() -> None:
    """A rewriting that looks at the value is noticed, and done each time."""

    def looks(text: str) -> str:
        return text.upper() if text.endswith("7") else text

    templates = Templates(4)
    for number in ("17", "27", "18", "37", "19"):
        assert templates.rewritten(f"a >= {number}", looks) == looks(f"a >= {number}")
