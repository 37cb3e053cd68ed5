"""What Db2 writes differently: VALUES, CONCAT, LISTAGG, hyphens in names, long chains."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import SqlError
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families
from query.db2.dialect import Db2
from query.db2.read_only import balance, parse
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.catalogs import DrawnFrame, drawn, one, rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("values 1", [(1,)]),
        ("values (1, 'a')", [(1, "a")]),
        ("values 1, 2, 1 + 2", [(1,), (2,), (3,)]),
        ("VALUES (1, 'a'), (2, 'b') WITH UR;", [(1, "a"), (2, "b")]),
        ("values (7 / 2)", [(3,)]),
        ("values upper('a') concat 'b' concat char(1)", [("Ab1          ",)]),
        ("select 1 from sysibm.sysdummy1", [(1,)]),
        ("select ibmreqd, d.* from SYSIBM.SYSDUMMY1 d", [("Y", "Y")]),
        (("select count_big(*), count_big(distinct filetype) from t_car, metaocean m "
         "where m.fkey = t_car.fkey"), [(24, 1)]),
        ("values decfloat('1.5') + 1", [(2.5,)]),
    ],
)  # fmt: skip
def test_statements_of_their_own(
    store: CatalogStore, text: str, expected: list[tuple[object, ...]]
) -> None:
    """VALUES as a statement, CONCAT as an operator, COUNT_BIG, the one-row table."""
    assert rows(store, text) == expected


@pytest.mark.parametrize(
    "clause",
    [
        "for read only", "for fetch only", "optimize for 10 rows", "optimize for 1 row",
        "with ur", "with cs", "with rs", "with rr", "optimize for 5 rows with ur",
        "for read only with ur", "fetch first 30 rows only optimize for 30 rows for read only",
    ],
)  # fmt: skip
def test_clauses_that_say_nothing_about_the_result(store: CatalogStore, clause: str) -> None:
    """The rows are those without the clause, after a table, a condition, an order."""
    for text in ("select fkey from t_car", "select fkey from t_car t where 1 = 1 order by fkey"):
        assert sorted(rows(store, f"{text} {clause}")) == sorted(rows(store, text))


@pytest.mark.parametrize("text", ["values", "values ()", "values 1,", "values (1, 2), 3"])
def test_values_that_are_none(store: CatalogStore, text: str) -> None:
    """Refused as Db2 refuses them."""
    with pytest.raises(SqlError) as error:
        run_sql(store, text)
    assert error.value.sqlcode in (-104, -421, -206, -142)


def test_listagg(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """A text of all values: with a separator, in an order, each once, for every group."""
    cars = sorted(frame.tags["car"] for frame in frames)
    ((answer,),) = rows(
        store, "select listagg(value, ', ') within group (order by int(value)) from t_car"
    )
    assert answer == ", ".join(map(str, cars))
    ((answer,),) = rows(
        store, "select listagg(distinct value, '') within group (order by value desc) from t_front"
    )
    assert answer == "10"
    text = (
        "select f.value, listagg(c.value, ';') within group (order by c.fkey desc)"
        " from t_front f, t_car c where f.fkey = c.fkey group by f.value order by 1"
    )
    ordered = sorted(frames, key=lambda frame: frame.fkey, reverse=True)
    assert rows(store, text) == [
        (flag, ";".join(str(f.tags["car"]) for f in ordered if f.tags["front"] == int(flag)))
        for flag in ("0", "1")
    ]
    ((joined,),) = rows(store, "select listagg(int(value)) from t_front")
    assert sorted(str(joined)) == sorted(str(frame.tags["front"]) for frame in frames)
    assert rows(store, "select listagg(value, ',') from t_car where 1 = 0") == [(None,)]


@pytest.mark.parametrize(
    ("text", "sqlcode"),
    [
        ("select listagg(a.fkey, ',') from metaocean a, metaocean b", -137),
        ("select listagg(fkey, fkey) from t_car", -171),
        ("select listagg(fkey, ',') over () from t_car", -142),
        ("select max(fkey) within group (order by fkey) from t_car", -142),
        ("select listagg() from t_car", -440),
        ("select listagg(fkey, ',', 3) from t_car", -440),
    ],
)
def test_listagg_that_is_wrong(store: CatalogStore, text: str, sqlcode: int) -> None:
    """Too long, no constant separator, a window."""
    with pytest.raises(SqlError) as error:
        run_sql(store, text)
    assert error.value.sqlcode == sqlcode, error.value


TWICE = "select x || x as x from ({inner}) a"


def doubled(times: int) -> str:
    """A text of ten letters, doubled so often."""
    text = "select left('0123456789', 10) as x from t_car fetch first 1 row only"
    for _ in range(times):
        text = TWICE.format(inner=text)
    return text


def test_texts_end_at_32672_bytes(store: CatalogStore) -> None:
    """Db2's VARCHAR: SQL0137N where a text would be longer, before it is made."""
    ((answer,),) = rows(store, doubled(11))
    assert answer == "0123456789" * 2**11
    for text in (
        doubled(12),
        doubled(25),
        f"select replace(x, '0', x) from ({doubled(9)}) a",
        f"select concat(x, concat('ä', x)) from ({doubled(11)}) a where 1 = 1".replace("'ä'", "x"),
    ):
        with pytest.raises(SqlError) as error:
            run_sql(store, text)
        assert (error.value.sqlcode, error.value.sqlstate) == (-137, "54006")
    ((answer,),) = rows(store, f"select replace(x, '0', '') from ({doubled(9)}) a")
    assert answer == "123456789" * 2**9
    assert one(store, "replace('banana', 'an', 'AN')") == "bANANa"
    assert one(store, "replace('banana', 'an')") == "ba"
    with pytest.raises(SqlError, match="SQL0102N"):
        one(store, f"'{'x' * 32_673}'")


def test_concatenation(store: CatalogStore) -> None:
    """Null where a part is; numbers as text; blanks at the end stay."""
    assert one(store, "'a ' || 'b' || 'c'") == "a bc"
    assert one(store, "'a' concat ('b' || ('c' concat 'd'))") == "abcd"
    assert one(store, "concat('a', concat('b', 'c')) || upper('d' || 'e')") == "abcDE"
    assert one(store, "'a' || cast(null as varchar(3)) || 'b'") is None
    assert one(store, "1 || 'x'") == "1x"
    assert one(store, "'1' || '2' + 1") == "13" or one(store, "('1' || '2') + 1") == 13


@pytest.fixture(scope="module")
def hyphenated(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """A catalog with the tag u2-source, and with tags whose names look like differences."""
    store = drawn(catalogued, tmp_path_factory.mktemp("hyphens"))
    fkeys = [row[0] for row in rows(store, "select fkey from t_car order by fkey")]
    columns = {"u2-source": "VARCHAR", "car-bicycle": "INTEGER", "a-b-c": "INTEGER"}
    data = pa.table(
        {
            "fkey": fkeys,
            "u2-source": ["annotated"] * 9 + ["raw"] * 15,
            "car-bicycle": pa.array([-1] * 24, pa.int32()),
            "a-b-c": pa.array(range(24), pa.int32()),
        }
    )
    families.write(store, "road", columns, data)
    return store


@pytest.mark.parametrize(
    "text",
    [
        "select fkey from t_u2-source where value like '%annotated%'",
        "select t_u2-source.fkey from t_u2-source where t_u2-source.value = 'annotated'",
        (
            "SELECT M.FKEY FROM METAOCEAN M, T_U2-SOURCE WHERE T_U2-SOURCE.FKEY=M.FKEY "
            "AND T_U2-SOURCE.VALUE LIKE ('%annotated%')"
        ),
        'select "t_u2-source".fkey from "t_u2-source" where "t_u2-source".value <> \'raw\'',
        (
            "select s.fkey from metaocean m left join bluadmin.t_u2-source s on m.fkey=s.fkey "
            "where s.value='annotated'"
        ),
        "select fkey from metaocean_view where u2-source='annotated'",
        "select fkey from metaocean_view v where v.u2-source='annotated' and filename like '%'",
        "select fkey from metaocean_view where \"u2-source\"='annotated'",
        "select fkey from metaocean_view where a-b-c < 9",
        "select fkey from metaocean_view where a-b-c-1 < 8",
    ],
)
def test_names_with_a_hyphen(hyphenated: CatalogStore, text: str) -> None:
    """A known tag's name without blanks, quoted or not, as a column and as a view."""
    expected = rows(hyphenated, 'select fkey from "t_a-b-c" where int(value) < 9 order by 1')
    assert len(expected) == 9
    assert sorted(rows(hyphenated, text)) == expected


def test_the_real_where_body_with_a_hyphen(hyphenated: CatalogStore) -> None:
    """The policy filter found in public sources, as a WHERE body of a selection."""
    body = "filename LIKE ('%camera%') AND u2-source LIKE ('%annotated%')"
    assert len(select_frames(hyphenated, Question(where=body)).frames) == 9


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("int(car) - int(bicycle)", "difference"),
        ("car-bicycle", "difference"),  # both are columns: still a difference
        ("car - bicycle", "difference"),
        ("v.car-v.bicycle", "difference"),
        ('"car-bicycle"', "tag"),
        ('v."car-bicycle"', "tag"),
        ("10-1", "nine"),
        ("size-size+9", "nine"),
    ],
)
def test_differences_stay_differences(
    hyphenated: CatalogStore, expression: str, expected: str
) -> None:
    """``a-b`` of two columns is calculated, whatever tags there are; in quotes it is the tag."""
    answer = rows(hyphenated, f"select {expression} from metaocean_view v where car is not null")
    calculated = (
        "int(car) - int(bicycle)" if "int" in expression else "double(car) - double(bicycle)"
    )
    reference = {"difference": calculated, "tag": '"car-bicycle"', "nine": "9"}[expected]
    assert answer == rows(
        hyphenated, f"select {reference} from metaocean_view where car is not null"
    )


def test_names_without_a_schema() -> None:
    """Where no such name is known, a hyphen is a minus sign."""
    assert parse("select u2-source from t").sql() == "SELECT u2 - source FROM t"
    schema = {"t": {"u2-source": "VARCHAR", "fkey": "VARCHAR"}}
    assert parse("select u2-source from t", schema).sql() == 'SELECT "u2-source" FROM t'
    assert parse("select u2 -source, u2- source from t", schema).sql() == (
        "SELECT u2 - source, u2 - source FROM t"
    )
    assert (
        parse("select 'u2-source' from t --u2-source", schema)
        .sql()
        .startswith("SELECT 'u2-source' FROM t")
    )


@pytest.mark.parametrize("terms", [300, pytest.param(1_500, marks=pytest.mark.wide)])
@pytest.mark.parametrize("word", ["and", "or"])
def test_long_chains(store: CatalogStore, frames: list[DrawnFrame], terms: int, word: str) -> None:
    """Thousands of conditions, alone, beside each other and with a join that is taken out."""
    one_term = "int(t_car.value) <> {n}" if word == "and" else "int(t_car.value) = {n}"
    chain = f" {word} ".join(one_term.format(n=n) for n in range(terms))
    answer = rows(
        store,
        f"select count(*) from metaocean, t_car where metaocean.fkey = t_car.fkey and ({chain})",
    )
    below = sum(frame.tags["car"] < terms for frame in frames)
    assert answer == [(below if word == "or" else len(frames) - below,)]
    body = chain.replace("int(t_car.value)", "car")
    selected = select_frames(store, Question(where=body))
    assert len(selected.frames) == answer[0][0]


CONDITIONS = st.recursive(
    st.sampled_from(["a = 1", "b is null", "a in (1, 2)"]),
    lambda inner: st.tuples(st.sampled_from([" and ", " or "]), st.lists(inner, min_size=2)).map(
        lambda both: f"({both[0].join(both[1])})"
    ) | inner.map(lambda text: f"not {text}"),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(condition=CONDITIONS)
def test_a_balanced_tree_says_the_same(condition: str) -> None:
    """The same terms in the same order between the same signs."""
    text = f"select 1 from t where {condition}"
    (plain,) = Db2().parse(text)
    assert plain is not None
    balanced = plain.copy()
    balance(balanced)
    assert balanced.sql() == plain.sql()


@pytest.mark.wide
@pytest.mark.parametrize("times", [5, 12, 35])
@pytest.mark.parametrize(
    "form",
    ["int(char({}))", "(1 / {})", "decimal(char({}), 9, 2)", "replace({}, 'a', 'b')",
     "char(date({}))", "upper({} || 'x')", "mod(7, {})"],
)  # fmt: skip
def test_nests_that_double(store: CatalogStore, form: str, times: int) -> None:
    """Expressions that stand twice in what is made of them: answered, or too deep."""
    expression = "value"
    for _ in range(times):
        expression = form.format(expression)
    try:
        run_sql(store, f"select {expression} from t_front", timeout_s=60)
    except SqlError as error:
        # No date, divided by zero; too many levels.
        assert error.sqlcode in (-180, -801, *([-101] if times == 35 else [])), error  # noqa: PT017


def test_a_new_home(tmp_path: Path) -> None:
    """VALUES asks no table, so an empty catalog answers too."""
    assert rows(CatalogStore(CatalogLocation.in_folder(tmp_path)), "values 1") == [(1,)]
