"""Statements rewritten to one scan give the rows that they give over the plain views."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from catalog.lake.layouts import WIDE
from catalog.lake.snapshot import Snapshot
from catalog.lake.views import tag_columns
from catalog.store import CatalogStore
from catalog.tags import families
from query.db2 import read_only
from query.db2.names import Views
from query.db2.semantics import to_duckdb
from query.question.conditions import question_where, relation_for
from query.question.question import Question
from query.run.join_elimination import Tables
from tests.query.catalogs import drawn

NUMBERS = ("car", "sky", "front", "bicycle")
TEXTS = ("scene", "weather")
OTHERS = ("speed", "wet", "passes")
TAGS = NUMBERS + TEXTS + OTHERS
FILE_COLUMNS = ("filename", "size", "filetype")
SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def catalog(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> CatalogStore:
    """The sample frames with tags of every type, many of them null or missing."""
    store = drawn(catalogued, tmp_path_factory.mktemp("catalog"))
    with store.reading() as reader:
        fkeys = [row[0] for row in reader.execute("SELECT fkey FROM t_car ORDER BY 1").fetchall()]
    _tag(store, fkeys)
    return store


@pytest.fixture(scope="module")
def cursor(catalog: CatalogStore) -> Iterator[Snapshot]:
    """A cursor on the catalog itself."""
    with catalog.reading() as reader:
        yield reader


@pytest.fixture(scope="module")
def memory(catalog: CatalogStore) -> Iterator[Snapshot]:
    """A cursor on the same snapshot held in memory."""
    hot = CatalogStore(catalog.location, snapshot_memory_mb=500)
    hot.snapshot()
    assert hot.memory is not None
    assert hot.memory.wait(300)
    with hot.reading() as reader:
        assert reader.layout is WIDE
        yield reader


def _tag(store: CatalogStore, fkeys: list[str]) -> None:
    random = Random(5)
    chosen = random.sample(fkeys, len(fkeys) * 2 // 3)
    rows = pa.table(
        {
            "fkey": chosen,
            "weather": pa.array([random.choice(["rain", "rain ", "0", None]) for _ in chosen]),
            "wet": pa.array([random.choice([True, False, None]) for _ in chosen]),
            "passes": pa.array([random.choice([0, 7, 2**40, None]) for _ in chosen], pa.int64()),
        }
    )
    kinds = {"weather": "VARCHAR", "wet": "BOOLEAN", "passes": "BIGINT"}
    families.write(store, "road", kinds, rows)
    speeds = pa.table(
        {
            "fkey": fkeys[::2],
            "speed": pa.array([random.choice([0.5, 12.25, None]) for _ in fkeys[::2]]),
        }
    )
    families.write(store, "bus", {"speed": "DOUBLE"}, speeds)


def tables_of(cursor: Snapshot) -> Tables:
    tags = {column.tag: column for column in tag_columns(cursor)}
    return Tables(tags, cursor.layout, "", cursor.layout.few_values(cursor))


def rows_of(cursor: Snapshot, statement: str, tables: Tables | None) -> list[str] | str:
    """The rows in an order of their own, or what is wrong with them."""
    query = read_only.parse(statement)
    schema = Views(cursor.schema)
    read_only.check(query, schema)
    try:
        answer = cursor.execute(to_duckdb(query, schema, tables)).fetchall()
    except duckdb.Error as error:
        return str(error)[:60]
    return sorted(repr(row) for row in answer)


_CARS = "metaocean m, t_car c, t_front f where c.fkey = m.fkey and f.fkey = m.fkey"


@pytest.mark.parametrize(
    "statement",
    [
        f"select m.filename, rand(7), rand(8) from {_CARS}",
        f"select m.filename from {_CARS} and rand(7) < 0.5",
        (
            "select m.filename, c.value from metaocean m tablesample bernoulli (50) "
            "repeatable (3), t_car c where c.fkey = m.fkey"
        ),
        (
            "select m.filename, c.value from metaocean m left join t_car c "
            "tablesample bernoulli (50) repeatable (3) on c.fkey = m.fkey"
        ),
        (
            "select m.filename, f.value from metaocean m tablesample system (60) repeatable (4) "
            "left join t_front f on f.fkey = m.fkey"
        ),
        f"select median(c.value), dec(corr(c.value, m.size), 9, 6), any_value(m.path) from {_CARS}",
        (
            f"select f.value, percentile_disc(0.4) within group (order by int(c.value)) "
            f"from {_CARS} group by f.value"
        ),
        (
            f"select m.fkey, lag(c.value) over (order by m.fkey), ratio_to_report(c.value) over () "
            f"from {_CARS}"
        ),
        f"select f.value, grouping(f.value), count(*) from {_CARS} group by rollup(f.value)",
        (
            f"select f.value, m.filetype, count(*) from {_CARS} group by grouping sets "
            "((f.value), (m.filetype), ())"
        ),
        f"select regexp_substr(m.filename, '\\d+'), regexp_instr(c.value, '0') from {_CARS}",
        f"select m.filename from {_CARS} and m.fkey like '%' || m.filename",
        f"select decode(f.value, 1, 'front', c.value), greatest(c.value, f.value) from {_CARS}",
        f"select substr(m.filename, 1, 200), char(int(c.value)), lpad(c.value, 9) from {_CARS}",
        (
            "select m.filename, l.value from metaocean m, lateral (select c.value from t_car c, "
            "t_front f where c.fkey = m.fkey and f.fkey = c.fkey and f.value = 1) as l"
        ),
        (
            "select m.fkey, l.n from metaocean m, t_car c, lateral (select c.value + 1 as n from "
            "sysibm.sysdummy1) as l where c.fkey = m.fkey"
        ),
        (
            "select v.n, m.fkey from (values 1, 2) as v(n), metaocean m, t_front f "
            "where f.fkey = m.fkey and f.value = v.n"
        ),
        "select tabname, colcount from syscat.tables",
        "select c.* from syscat.columns c, syscat.tables t where t.tabname = c.tabname",
        "select distinct f.value from t_front f, metaocean m where m.fkey = f.fkey order by 1",
    ],
)
def test_both_ways_agree(cursor: Snapshot, memory: Snapshot, statement: str) -> None:
    """What is random by a seed, over several rows, or in FROM is the same however it is read."""
    plain = rows_of(cursor, statement, None)
    assert isinstance(plain, list)
    assert plain
    assert rows_of(cursor, statement, tables_of(cursor)) == plain
    assert rows_of(memory, statement, tables_of(memory)) == plain


@st.composite
def conditions(draw: st.DrawFn, alias: str, view: str) -> str:
    """Something about one view."""
    if view == "metaocean":
        return draw(
            st.sampled_from(
                [f"{alias}.filename like '%_camera_%'", f"{alias}.size > 1000",
                 f"{alias}.filetype = 'png '", f"{alias}.fkey is not null"]
            )
        )  # fmt: skip
    column = f"{alias}.value"
    if view == "metaocean_view":
        column = f"{alias}.{draw(st.sampled_from(NUMBERS))}"
        view = "t_car"
    tag = view[2:]
    if draw(st.integers(0, 5)) == 0:
        return f"{column} is {draw(st.sampled_from(['', 'not ']))}null"
    if tag in TEXTS:
        return draw(
            st.sampled_from(
                [f"{column} like 'r%'", f"{column} = 'rain'", f"{column} in ('rain', '0')",
                 f"length({column}) > 4"]
            )
        )  # fmt: skip
    if tag == "wet":
        return f"{column} = 'true'"
    sign, bound = draw(st.sampled_from(SIGNS)), draw(st.sampled_from([0, 1, 7, 900, 20_000]))
    form = draw(st.sampled_from(["{c}", "int({c})", "bigint({c})", "decimal({c}, 12, 2)"]))
    if tag == "passes":
        form = "bigint({c})"
    value = form.format(c=column)
    return draw(
        st.sampled_from(
            [f"{value} {sign} {bound}", f"{value} between 0 and {bound}",
             f"{value} + 1 {sign} {bound}.5", f"{column} in ('{bound}', '1')"]
        )
    )  # fmt: skip


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A SELECT over one to four views, joined on fkey in any way there is."""
    views = draw(
        st.lists(
            st.sampled_from(["metaocean", "metaocean_view", *(f"t_{tag}" for tag in TAGS)]),
            min_size=1, max_size=4,
        )
    )  # fmt: skip
    aliases = [f"a{n}" for n in range(len(views))]
    text, where = f" from {views[0]} {aliases[0]}", []
    for n in range(1, len(views)):
        other = aliases[draw(st.integers(0, n - 1))]
        equal = draw(st.permutations([f"{aliases[n]}.fkey", f"{other}.fkey"]))
        on = " = ".join(equal)
        style = draw(st.sampled_from(["comma", "comma", "inner", "left", "left and"]))
        if style == "comma":
            text += f" cross join {views[n]} {aliases[n]}"
            where.append(on)
        elif style == "inner":
            more = f" and {draw(conditions(aliases[n], views[n]))}" * draw(st.booleans())
            text += f" join {views[n]} {aliases[n]} on {on}{more}"
        else:
            more = f" and {draw(conditions(aliases[n], views[n]))}" * (style == "left and")
            text += f" left join {views[n]} {aliases[n]} on {on}{more}"
    positions = st.integers(0, len(views) - 1)
    for _ in range(draw(st.integers(0, 3))):
        position = draw(positions)
        condition = draw(conditions(aliases[position], views[position]))
        where.append(f"not ({condition})" if draw(st.integers(0, 4)) == 0 else condition)
    if draw(st.integers(0, 3)) == 0:
        tag, alias = draw(st.sampled_from(TAGS)), aliases[draw(positions)]
        # A query inside may call its tables as the one around it does.
        b, m = draw(st.permutations(["b", "m", *aliases]))[:2]
        inner = draw(conditions(b, f"t_{tag}"))
        where.append(
            draw(
                st.sampled_from(
                    [(f"exists (select 1 from t_{tag} {b} where {b}.fkey = {alias}.fkey"
                     f" and {inner})"),
                     f"{alias}.fkey in (select {b}.fkey from t_{tag} {b} where {inner})",
                     (f"{alias}.fkey not in (select {b}.fkey from metaocean {m}, t_{tag} {b}"
                     f" where {m}.fkey = {b}.fkey and {inner})"),
                     f"{alias}.fkey in (select {m}.fkey from metaocean {m} where {m}.size > 1000)",
                     (f"{alias}.fkey in (select {m}.fkey from metaocean {m} right join t_{tag} {b}"
                     f" on {m}.fkey = {b}.fkey where {inner})")]
                )
            )
        )  # fmt: skip
    if where:
        text += " where " + " and ".join(where)
    columns = [
        f"{aliases[n]}.{_column(draw, views[n])}"
        for n in draw(st.lists(positions, min_size=1, max_size=3))
    ]
    grouped = draw(st.integers(0, 3))
    if grouped == 0:
        return f"select count(*), count({columns[0]}), min({columns[-1]}){text}"
    if grouped == 1:
        return f"select {columns[0]}, count(*), max({columns[-1]}){text} group by {columns[0]}"
    return f"select {', '.join(columns)}{text}"


def _column(draw: st.DrawFn, view: str) -> str:
    if view == "metaocean":
        return draw(st.sampled_from(("fkey", *FILE_COLUMNS)))
    if view == "metaocean_view":
        return draw(st.sampled_from(("fkey", "nodename", *FILE_COLUMNS, *TAGS)))
    return draw(st.sampled_from(("fkey", "value")))


ANY = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.wide
@settings(ANY, max_examples=20)
@given(statement=statements())
def test_the_same_rows_as_over_the_plain_views(
    cursor: Snapshot, memory: Snapshot, statement: str
) -> None:
    """Whatever is joined, filtered, grouped and nested: the same rows, or the same error."""
    assert_same_rows(cursor, memory, statement)


@pytest.mark.slow
@settings(ANY, max_examples=300)
@given(statement=statements())
def test_the_same_rows_many_times(cursor: Snapshot, memory: Snapshot, statement: str) -> None:
    """The same, for hundreds of statements."""
    assert_same_rows(cursor, memory, statement)


def assert_same_rows(cursor: Snapshot, memory: Snapshot, statement: str) -> None:
    """Over the catalog and in memory, rewritten, and over the views in memory."""
    expected = rows_of(cursor, statement, None)
    for answer in (
        rows_of(cursor, statement, tables_of(cursor)),
        rows_of(memory, statement, tables_of(memory)),
        rows_of(memory, statement, None),
    ):
        if isinstance(expected, str):
            assert isinstance(answer, str), (expected, answer)
        else:
            assert answer == expected


@pytest.mark.parametrize(
    "statement",
    [
        (
            "select count(*) from metaocean m left join t_speed t on m.fkey = t.fkey"
            " where m.fkey = t.fkey"
        ),
        (
            "select count(*), count(t.fkey) from t_car c left join t_speed t on t.fkey = c.fkey"
            " join metaocean m on m.fkey = t.fkey"
        ),
        "select a.value, b.value from t_weather a left join t_weather b on b.fkey = a.fkey",
        "select count(*) from t_car a, t_car b where a.fkey = b.fkey and a.fkey = a.fkey",
        # Two rows of one family: what holds for the one says nothing of the other.
        "select count(*) from t_weather a, t_weather b where a.value = 'rain'",
        "select count(*) from t_weather a, t_weather b where b.value = 'rain'",
        "select count(*) from t_speed a, t_speed b, t_car c where a.fkey = c.fkey and b.value > 1",
        "select count(*) from t_weather where coalesce(value, 'x') = 'x'",
        # Blanks at the end do not count, of the value and of what it is compared with.
        "select value, count(*) from t_weather where value = 'rain  ' group by value",
        "select fkey, weather from metaocean_view where weather in ('rain', 'it''s', 'snow')",
        "select fkey, size from metaocean_view where weather in ('0')",
        "select count(*), count(weather) from metaocean_view where weather = 'snow'",
        "select count(*) from metaocean_view where not (weather = 'rain')",
        "select count(*) from metaocean_view where weather = 'rain' or weather is null",
        (
            "select m.fkey, t.value from metaocean m left join t_weather t on t.fkey = m.fkey "
            "where t.value in ('rain', '0')"
        ),
        (
            "select m.fkey, t.value from metaocean m left join t_weather t on t.fkey = m.fkey "
            "and t.value = 'rain' where m.fkey <> ''"
        ),
        "select count(*) from t_car a join t_weather b using (fkey) where a.value > 1",
        "select count(*), count(b.value) from t_car a left join t_weather b using (fkey)",
        "select count(*) from t_car a right join t_speed b on a.fkey = b.fkey",
        "select count(*) from metaocean a full join t_speed b on a.fkey = b.fkey",
        "select count(*) from t_car a, (select fkey from t_speed) b where a.fkey = b.fkey",
        "select value, count(*) from t_car group by value order by int(value) desc",
        "select distinct nodename, front from metaocean_view order by front",
        (
            "select count(*) from t_car a, metaocean c where c.fkey = a.fkey and c.fkey in"
            " (select a.fkey from metaocean a right join t_sky s on a.fkey = s.fkey)"
        ),
        (
            "select count(*) from t_car a where a.fkey in"
            " (select a.fkey from metaocean a where a.size > 1000)"
        ),
        (
            "select a.fkey from t_car a union select a.fkey from metaocean a, t_speed b"
            " where a.fkey = b.fkey"
        ),
    ],
)
def test_joins_of_every_kind(cursor: Snapshot, memory: Snapshot, statement: str) -> None:
    """What hardly any generated statement has."""
    assert isinstance(rows_of(cursor, statement, None), list)
    assert_same_rows(cursor, memory, statement)


@pytest.mark.wide
def test_a_file_is_found_by_name(cursor: Snapshot, memory: Snapshot) -> None:
    """The one of that fkey or name, with a tag or without, and no other whose name begins so."""
    files = cursor.execute("SELECT fkey, filename FROM metaocean ORDER BY fkey").fetchall()
    for fkey, filename in (files[0], files[-1]):
        for view in ("metaocean", "metaocean_view"):
            for name, value, rows in (
                ("fkey", fkey, 1),
                ("fkey", f"{fkey} ", 0),
                ("fkey", fkey[:-1], 0),
                ("filename", filename, 1),
                ("filename", f"{filename}  ", 1),
                ("filename", filename[:-1], 0),
            ):
                statement = f"select fkey, size, filename from {view} where '{value}' = {name}"
                assert len(rows_of(memory, statement, tables_of(memory))) == rows, statement
                assert_same_rows(cursor, memory, statement)
    (a, of_a), (b, of_b), *_, (z, of_z) = files
    for view in ("metaocean", "metaocean_view"):
        for condition, rows in (
            (f"fkey = '{a}' or fkey = '{z}'", 2),
            (f"fkey in ('{a}', '{a}', '{z} ', '{b}')", 2),
            (f"(fkey = '{a}' or ('{z}' = fkey)) and fkey in ('{z}', '{b}')", 1),
            (f"filename in ('{of_a} ', '{of_z}', '{of_b[:-1]}')", 2),
            (f"filename = '{of_a}' or filename in ('{of_z}  ', '{of_a}')", 2),
            (f"fkey = '{a}' or filename = '{of_z}'", 2),
            (f"fkey = '{a}' or fkey > '{a}'", len(files)),
            (f"not (fkey = '{a}' or fkey = '{z}')", len(files) - 2),
            ("fkey in (" + ", ".join(f"'{fkey}'" for fkey, _ in files[:11]) + ")", 11),
        ):
            statement = f"select fkey, size, filename from {view} where {condition}"
            assert len(rows_of(memory, statement, tables_of(memory))) == rows, statement
            assert_same_rows(cursor, memory, statement)
    both = f"m.fkey = '{files[0][0]}' or m.filename = '{files[-1][1]}'"
    joined = "metaocean m left join t_weather w on w.fkey = m.fkey"
    for statement in (
        f"select m.fkey, w.value from {joined} where {both}",
        f"select m.fkey, w.value from {joined} where m.fkey = '{files[0][0]}'",
        f"select w.fkey from t_weather w where w.fkey = '{files[0][0]}'",
        f"select count(*) from metaocean where not fkey = '{files[0][0]}'",
    ):
        assert_same_rows(cursor, memory, statement)


@pytest.mark.wide
def test_a_selection_finds_frames_by_name(cursor: Snapshot, memory: Snapshot) -> None:
    """In memory by the hash where fkey or name alone decide; the same frames as from files."""
    (a, of_a), (b, of_b), *_ = cursor.execute(
        "SELECT fkey, filename FROM metaocean WHERE fkey IN (SELECT fkey FROM t_car) ORDER BY 1"
    ).fetchall()
    for where, is_hashed, fkeys in (
        (f"fkey = '{a}'", True, [a]),
        (f"'{b}' = frames.FKEY and car >= 0", True, [b]),
        (f"fkey = '{a} '", True, []),
        (f"fkey = '{a[:-1]}'", True, []),
        (f"fkey = '{a}' and fkey = '{b}'", True, []),
        (f"fkey = '{a}' and exists (select 1 from t_car c where c.fkey = '{b}')", True, [a]),
        (f"fkey = '{a}' or fkey = '{b}'", True, [a, b]),
        (f"(FKEY in ('{a}', '{b}', '{b}x'))", True, [a, b]),
        (f"fkey = '{a}' or frames.scene = 'x'", False, [a]),
        (f"not (fkey = '{a}' or not fkey = '{b}')", False, [b]),
        (f"Filename = '{of_b}  '", True, [b]),
        (f"'{of_a}' = filename or filename in ('{of_b} ', '{of_b[:-1]}')", True, [a, b]),
        (f"not (fkey <> '{b}')", False, [b]),
        (f"fkey in (select c.fkey from t_car c where c.fkey = '{b}')", False, [b]),
    ):
        question = Question(where=where)
        for snapshot in (cursor, memory):
            relation = relation_for(snapshot, question)
            condition, values = question_where(question, relation, snapshot)
            assert ("_hash = " in condition or "_hashed" in condition) == (
                is_hashed and snapshot is memory
            ), condition
            frames = f"WITH frames AS ({relation.sql}) SELECT fkey FROM frames WHERE {condition}"
            rows = snapshot.execute(f"{frames} ORDER BY 1", values).fetchall()
            assert [fkey for (fkey,) in rows] == fkeys, where


_MANY = ", ".join(f"'{number}'" for number in range(150))


@pytest.mark.parametrize(
    ("condition", "as_short"),
    [
        (f"value in ({_MANY}, 'rain  ')", "value in ('0', 'rain')"),
        (f"value not in ({_MANY})", "value not in ('0', 'x')"),
        (f"value in ({_MANY}) or value = 'rain'", "value in ('0', 'rain')"),
        (f"not (value in ({_MANY}))", "value <> '0'"),
        (f"case when value in ({_MANY}, 'rain') then 1 end = 1", "value in ('0', 'rain')"),
    ],
)
def test_long_lists(cursor: Snapshot, memory: Snapshot, condition: str, as_short: str) -> None:
    """Texts of a list of 150 are looked up as those of a short one; the others are in no row."""
    statement = "select fkey, value from t_weather where {}"
    short = rows_of(cursor, statement.format(as_short), None)
    assert isinstance(short, list)
    assert len(short) > 3
    for snapshot in (cursor, memory):
        assert rows_of(snapshot, statement.format(condition), tables_of(snapshot)) == short


def tables_read(statement: str, cursor: Snapshot) -> list[str]:
    """The tables of the rewritten statement, in order of their names."""
    query = read_only.parse(statement)
    rewritten = to_duckdb(query, Views(cursor.schema), tables_of(cursor))
    tree = parse_one(rewritten, dialect="duckdb")
    return sorted(table.name for table in tree.find_all(exp.Table))


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        (("select filename from metaocean,t_car,t_bicycle,t_front where t_car.fkey=metaocean.fkey "
         "and t_bicycle.fkey=metaocean.fkey and t_front.fkey=t_car.fkey and int(t_car.value)>1"),
         ["class_pixels", "files"]),
        ("select count(*) from metaocean,t_car where t_car.fkey=metaocean.fkey", ["class_pixels"]),
        ("select sum(int(t_car.value)) from t_car", ["class_pixels"]),
        ("select car from metaocean_view where weather like 'r%'",
         ["class_pixels", "files", "tags_road"]),
        ("select m.path, t.value from metaocean m left join t_speed t on m.fkey = t.fkey",
         ["files", "tags_bus"]),
        ("select a.value, b.value from t_car a, t_speed b where a.fkey = b.fkey",
         ["class_pixels", "tags_bus"]),
        ("select path from metaocean", ["metaocean"]),
        (("with t_car as (select fkey from metaocean) select count(*) from t_car, metaocean m "
         "where m.fkey = t_car.fkey"), ["metaocean", "metaocean", "t_car"]),
    ],
)  # fmt: skip
def test_tables_that_are_read(cursor: Snapshot, statement: str, tables: list[str]) -> None:
    """One scan of each family that is asked for, and of files only where they are needed."""
    assert tables_read(statement, cursor) == tables


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        (("select filename from metaocean,t_car,t_weather where t_car.fkey=metaocean.fkey "
         "and t_weather.fkey=metaocean.fkey and int(t_car.value)>1"), ["tagged_files"]),
        ("select sum(int(t_car.value)) from t_car", ["tagged_files"]),
        ("select car from metaocean_view where weather like 'r%'",
         ["tagged_files", "untagged_files"]),
        ("select m.path, t.value from metaocean m left join t_speed t on m.fkey = t.fkey",
         ["tagged_files", "untagged_files"]),
        ("select fkey from metaocean_view where weather in ('rain', '0')", ["tagged_files"]),
    ],
)  # fmt: skip
def test_in_memory_one_table_is_read(memory: Snapshot, statement: str, tables: list[str]) -> None:
    """No join is left: files without tags are read only where they may be asked for."""
    assert tables_read(statement, memory) == tables


def test_numbers_are_compared_as_numbers(cursor: Snapshot) -> None:
    """The text of an integer is not made where a number is made of it again."""
    text = "select count(value) from t_car where int(value) > 5 and value < 900 and value in (6, 7)"
    rewritten = to_duckdb(read_only.parse(text), Views(cursor.schema), tables_of(cursor))
    assert "TEXT" not in rewritten
    assert "VARCHAR" not in rewritten
