"""Db2's meaning where DuckDB's differs: facts 7.2 and 7.3 of Spectrum Discover's dialect."""

from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal, localcontext

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.run.run_sql import run_sql
from tests.query.catalogs import DrawnFrame, listed_files, one, rows

SAME_FRAME = "b.fkey = t_car.fkey"
BETWEEN = "value between 10000 and 20000"
QUICK = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("int('12.7')", 12),
        ("int('-12.7')", -12),
        ("int('.5')", 0),
        ("int('-.9')", 0),
        ("int('5.')", 5),
        ("int('+7')", 7),
        ("int('1e3')", 1000),
        ("int('1.5E1')", 15),
        ("int('  42  ')", 42),
        ("int('007')", 7),
        ("int('12.99999999999999999999')", 12),
        ("int('2147483647.9')", 2147483647),
        ("int('-2147483648.9')", -2147483648),
        ("int(12.7)", 12),
        ("int(-12.7)", -12),
        ("int(-12.7e0)", -12),
        ("int(null)", None),
        ("integer('3')", 3),
        ("smallint('7.9')", 7),
        ("bigint('9223372036854775807')", 9223372036854775807),
        ("bigint('9.99999999999')", 9),
        ("cast('12.7' as integer)", 12),
        ("cast(12.789 as decimal(5, 1))", Decimal("12.7")),
        ("decimal('-12.789', 5, 2)", Decimal("-12.78")),
        ("dec(3.7)", Decimal(3)),
        ("double(' 1.5 ')", 1.5),
        ("float('2')", 2.0),
        ("varchar(12)", "12"),
        ("char('abcdef', 3)", "abc"),
    ],
)
def test_conversions(store: CatalogStore, expression: str, expected: object) -> None:
    """INT and its family truncate, trim blanks and take any numeric constant."""
    assert one(store, expression) == expected


@pytest.mark.parametrize("text", ["abc", "", " ", "1_000", "0x1A", "nan", "inf", "1 2", "12\t"])
def test_text_that_is_no_number(store: CatalogStore, text: str) -> None:
    """INT of anything but a numeric constant is SQL0420N, and says the text."""
    for expression in (f"int('{text}')", f"'{text}' + 1"):
        with pytest.raises(SqlError, match="SQL0420N") as error:
            one(store, expression)
        assert (error.value.sqlcode, error.value.sqlstate) == (-420, "22018")
        assert f'"{text}"' in error.value.text


@pytest.mark.parametrize(
    ("expression", "sqlcode", "sqlstate"),
    [
        ("7 / 0", -801, "22012"),
        ("7 / 0.0", -801, "22012"),
        ("7.5 / 0", -801, "22012"),
        ("7 / 0e0", -801, "22012"),
        ("'7' / 0", -801, "22012"),
        ("mod(7, 0)", -801, "22012"),
        ("7 % 0", -801, "22012"),
        ("2147483647 + 1", -802, "22003"),
        ("2147483647 * 2", -802, "22003"),
        ("-2147483647 - 2", -802, "22003"),
        ("9223372036854775807 + 1", -802, "22003"),
        ("1234567890123456789012345678901 * 10", -413, "22003"),
        ("int('3000000000')", -413, "22003"),
        ("int(2147483648)", -413, "22003"),
        ("smallint('99999')", -413, "22003"),
        ("bigint('9223372036854775808')", -413, "22003"),
        ("decimal('12345', 3, 0)", -413, "22003"),
        ("decimal('a', 3, 0)", -420, "22018"),
        ("decimal(1, 40, 1)", -171, "42815"),
        ("decimal(1, 5, 9)", -171, "42815"),
        ("decimal(1, 5.5, 1)", -171, "42815"),
        ("varchar('abc', 0)", -171, "42815"),
        ("12345678901234567890123456789012", -405, "42820"),
        ("1e400", -405, "42820"),
        ("int()", -440, "42884"),
        ("int(1, 2, 3, 4)", -440, "42884"),
        ("value()", -440, "42884"),
        ("posstr('a')", -440, "42884"),
    ],
)
def test_errors_of_values(
    store: CatalogStore, expression: str, sqlcode: int, sqlstate: str
) -> None:
    """Division by zero, overflow and wrong arguments carry Db2's SQLCODE and SQLSTATE."""
    with pytest.raises(SqlError) as error:
        one(store, expression)
    assert (error.value.sqlcode, error.value.sqlstate) == (sqlcode, sqlstate), error.value


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", "3"),
        ("-7 / 2", "-3"),
        ("7 / -2", "-3"),
        ("7 / 2.0", "3.5000000000000000000"),
        ("7 / 2.0 / 3", "1.1666666666666666666"),
        ("-1 / 3.0", "-0.3333333333333333333"),
        ("1.0 / 3", "0." + 30 * "3"),
        ("0.5 * 0.25", "0.125"),
        ("1.5 + 2.25", "3.75"),
        ("mod(7, 3)", "1"),
        ("mod(-7, 3)", "-1"),
        ("round(12.567, 1)", "12.6"),
        ("abs(-5)", "5"),
        ("sign(-3)", "-1"),
        # More digits than DuckDB's 64 bits hold.
        ("decimal('-1000.000000', 10, 6) * decimal('-1000.000000', 10, 6)", "1000000"),
        ("decimal('999999999999999', 15, 0) + decimal('1.000001', 15, 6)",
         "1000000000000000.000001"),
        ("decimal('-999999999999999999', 18, 0) - decimal('999999999999999999', 18, 0)",
         "-1999999999999999998"),
        ("1000000000 * decimal('1000000000.5', 11, 1)", "1000000000500000000"),
    ],
)  # fmt: skip
def test_arithmetic(store: CatalogStore, expression: str, expected: str) -> None:
    """Integers truncate towards zero; a decimal quotient has Db2's scale, cut and not rounded."""
    value = one(store, expression)
    assert isinstance(value, int | Decimal)
    assert Decimal(value) == Decimal(expected)


def _constant(draw: st.DrawFn, whole: int, fraction: int) -> Decimal:
    digits = draw(st.integers(0, 10 ** (whole + fraction) - 1))
    return Decimal(digits if draw(st.booleans()) else -digits).scaleb(-fraction)


@st.composite
def decimals(draw: st.DrawFn) -> tuple[Decimal, int, int]:
    """A value with the precision and scale of its column."""
    scale = draw(st.integers(0, 6))
    precision = draw(st.integers(max(scale, 1), 15))
    return _constant(draw, precision - scale, scale), precision, scale


@QUICK
@given(one_value=decimals(), other_value=decimals(), operator=st.sampled_from("+-*/"))
def test_decimal_arithmetic_is_pythons(
    store: CatalogStore,
    one_value: tuple[Decimal, int, int],
    other_value: tuple[Decimal, int, int],
    operator: str,
) -> None:
    """Value, precision and scale of + - * / follow Db2's rules for any two decimals."""
    (a, p, s), (b, q, t) = one_value, other_value
    text = f"decimal('{a:f}', {p}, {s}) {operator} decimal('{b:f}', {q}, {t})"
    if operator == "/" and b == 0:
        with pytest.raises(SqlError, match="SQL0801N"):
            one(store, text)
        return
    with localcontext() as context:
        context.prec = 80
        if operator == "/":
            scale = 31 - p + s - t
            expected = (a / b).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_DOWN)
            precision = 31
        elif operator == "*":
            scale, expected, precision = s + t, a * b, min(31, p + q)
        else:
            scale = max(s, t)
            expected = a + b if operator == "+" else a - b
            precision = min(31, max(p - s, q - t) + scale + 1)
        too_large = abs(expected) >= Decimal(10) ** (31 - scale)
    if too_large:
        with pytest.raises(SqlError, match="22003"):
            one(store, text)
        return
    table = run_sql(store, f"select {text} as v from t_car fetch first 1 row only").rows
    kind = table.schema.field("v").type
    assert (kind.precision, kind.scale) == (precision, scale)
    assert table["v"][0].as_py() == expected


@QUICK
@given(value=st.integers(-(2**31), 2**31 - 1), fraction=st.text("0123456789", max_size=25))
def test_int_truncates_any_number(store: CatalogStore, value: int, fraction: str) -> None:
    """INT of a 32-bit number with any fraction after it gives the number."""
    assert one(store, f"int('{value}.{fraction}')") == value


@QUICK
@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_integer_division_truncates(store: CatalogStore, a: int, b: int) -> None:
    """Division a / b and mod(a, b) of integers are C's, not Python's."""
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    row = rows(
        store,
        f"select bigint('{a}') / bigint('{b}'), mod(bigint('{a}'), bigint('{b}')) from t_car",
    )[0]
    assert row == (quotient, a - quotient * b)


def test_types_of_aggregates(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """COUNT is DECIMAL(31,0), SUM(INTEGER) BIGINT, AVG(INTEGER) INTEGER, as a warehouse has it."""
    table = run_sql(
        store,
        "select count(*) c, sum(int(value)) s, avg(int(value)) a, avg(value) d, max(value) m, "
        "sum(bigint(value)) b, sum(distinct int(value)) u, avg(decimal(value, 9, 2)) e from t_car",
    ).rows
    cars = [frame.tags["car"] for frame in frames]
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "c": "decimal128(31, 0)",
        "s": "int64",
        "a": "int32",
        "d": "double",
        "m": "string",
        "b": "decimal128(31, 0)",
        "u": "int64",
        "e": "decimal128(31, 24)",
    }
    (row,) = table.to_pylist()
    assert row["c"] == len(cars)
    assert row["s"] == row["b"] == sum(cars)
    assert row["a"] == sum(cars) // len(cars)
    assert row["d"] == sum(cars) / len(cars)
    assert row["m"] == max(map(str, cars))
    assert row["u"] == sum(set(cars))
    assert row["e"] == Decimal(sum(cars)) / len(cars)


def test_aggregates_over_nothing(store: CatalogStore) -> None:
    """No rows give a count of 0 and null for the rest; with GROUP BY they give no row."""
    body = "from t_car where int(value) < 0"
    statement = f"select count(*), sum(int(value)), avg(int(value)), avg(value), max(value) {body}"
    assert rows(store, statement) == [(Decimal(0), None, None, None, None)]
    assert rows(store, f"select fkey, count(*) {body} group by fkey") == []


def test_sums_over_a_window(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """Aggregates and row numbers work over a window too, typed as elsewhere."""
    sums = rows(
        store,
        "select sum(int(value)) over (), count(*) over (), "
        "row_number() over (order by int(value) desc, fkey) n from t_car order by n",
    )
    total = sum(frame.tags["car"] for frame in frames)
    assert sums == [(total, Decimal(len(frames)), n + 1) for n in range(len(frames))]


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        (("1", "2"), 1),
        (("-1", "-2"), -1),
        (("bigint('9223372036854775807')", "bigint('9223372036854775806')"), 2**63 - 2),
        (("2.0", "1.0", "2.0"), Decimal("1." + 30 * "6")),
        (("1.0", "1.0", "2.0"), Decimal("1." + 30 * "3")),
        (("decimal('2.0', 31, 1)", "decimal('1.0', 31, 1)", "2.0"), Decimal("1.6")),
        (("1e0", "2e0"), 1.5),
        (("int(null)", "7"), 7),
        (("int(null)",), None),
    ],
)
def test_means_over_a_window(
    store: CatalogStore, values: tuple[str, ...], mean: int | Decimal | float | None
) -> None:
    """AVG with OVER is the AVG without: integers and decimals truncate, no digit is lost."""
    sides = " union all ".join(
        f"(select {value} as v, fkey from t_car order by fkey fetch first 1 row only)"
        for value in values
    )
    assert rows(store, f"select avg(v) from ({sides}) x") == [(mean,)]
    over = ("", "partition by fkey", "order by fkey")
    columns = ", ".join(f"avg(v) over ({spec})" for spec in over)
    assert rows(store, f"select {columns} from ({sides}) x") == [(mean,) * 3] * len(values)


@pytest.mark.parametrize(
    "condition",
    [
        "value >= 10000 and value <= 20000",
        "10000 <= value and 20000 >= value",
        "value between 10000 and 20000",
        "int(value) between '10000' and '20000'",
        "value > 9999.5 and value < 2.00005e4",
        "not (value < 10000 or value > 20000)",
        "case when value >= 10000 then value else 0 end between 10000 and 20000",
        "value in (select int(b.value) from t_car b where b.value between 10000 and 20000)",
        "int(value) in (select b.value from t_car b where b.value between 10000 and 20000)",
        "value = any (select int(b.value) from t_car b where b.value between 10000 and 20000)",
        f"int(value) = (select b.value from t_car b where {SAME_FRAME}) and {BETWEEN}",
        "coalesce(value, 0) between 10000 and 20000",
        "value * 1 between 10000 and 20000",
        "value >= (select min(int(value)) from t_car where value >= 10000) and value <= 20000",
    ],
)
def test_text_meets_number(store: CatalogStore, frames: list[DrawnFrame], condition: str) -> None:
    """Text beside a number is compared as a number, wherever they meet."""
    expected = {frame.fkey for frame in frames if 10_000 <= frame.tags["car"] <= 20_000}
    assert expected
    assert {row[0] for row in rows(store, f"select fkey from t_car where {condition}")} == expected


def test_text_meets_number_in_lists_joins_and_unions(
    store: CatalogStore, frames: list[DrawnFrame]
) -> None:
    """IN lists with numbers and text, joins of text with numbers, CASE x WHEN, UNION."""
    counts = sorted({frame.tags["car"] for frame in frames})
    listed = f"({counts[3]}, '{counts[5]}', {counts[7]}.0)"
    values = rows(store, f"select distinct int(value) from t_car where value in {listed}")
    assert sorted(str(row[0]) for row in values) == sorted(str(counts[i]) for i in (3, 5, 7))
    pairs = rows(
        store,
        "select count(*) from t_car a, (select fkey, int(value) n from t_car) b where a.value=b.n",
    )
    assert pairs == [(sum(1 for a in frames for b in frames if a.tags["car"] == b.tags["car"]),)]
    cases = rows(store, "select case value when 1 then 'yes' else 'no' end from t_front")
    assert sorted(str(row[0]) for row in cases) == sorted(
        "yes" if frame.tags["front"] else "no" for frame in frames
    )
    union = rows(store, "select value v from t_car union select int(value) from t_car order by v")
    assert [row[0] for row in union] == [float(n) for n in counts]


def test_blanks_at_the_end_do_not_count(store: CatalogStore) -> None:
    """'a ' = 'a', in =, <> and IN."""
    files = len(listed_files())
    for condition in (
        "platform = 'IBM COS   '",
        "platform || '  ' = 'IBM COS'",
        "platform in ('x', 'IBM COS ')",
        "not platform <> 'IBM COS '",
    ):
        assert rows(store, f"select count(*) from metaocean where {condition}") == [(files,)]


def test_nulls_sort_high(store: CatalogStore) -> None:
    """Nulls come last rising and first falling."""
    body = "from metaocean m left join t_car t on m.fkey = t.fkey order by v"
    rising = [row[0] for row in rows(store, f"select int(t.value) v {body}")]
    falling = [row[0] for row in rows(store, f"select int(t.value) v {body} desc")]
    without = rising.count(None)
    assert without == len(listed_files()) - 24
    assert rising[-without:] == falling[:without] == [None] * without
    assert rising[:-without] == sorted(rising[:-without], key=lambda v: int(str(v)))


@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("from metaocean m left join t_car t on m.fkey = t.fkey", None),
        ("from metaocean m left join t_car t on m.fkey = t.fkey where m.size > 0", None),
        (("from metaocean m left join (select fkey, value from t_car where value > 0) t "
          "on m.fkey = t.fkey"), None),
        ("from (select nullif(value, '0') value from t_car) t", None),
        ("from (select value from t_car group by rollup(value)) t", None),
        ("from metaocean m left join t_car t on m.fkey = t.fkey where t.value >= 0", "most"),
        ("from metaocean m left join t_car t on m.fkey = t.fkey where not t.value is null",
         "most"),
        ("from t_car t", "most"),
    ],
)  # fmt: skip
def test_the_first_of_a_falling_order(
    store: CatalogStore, frames: list[DrawnFrame], body: str, first: str | None
) -> None:
    """Null where there is one, in a window and at the end, whatever is known of the columns."""
    most = None if first is None else max(frame.tags["car"] for frame in frames)
    window = f"select v, row_number() over (order by v desc) n from (select int(t.value) v {body})"
    assert rows(store, f"select v from ({window}) where n = 1") == [(most,)]
    ordered = f"select int(t.value) v {body} order by v desc fetch first 1 row only"
    assert rows(store, ordered) == [(most,)]


def test_an_order_by_the_number_of_a_listed_text(
    store: CatalogStore, frames: list[DrawnFrame]
) -> None:
    """ORDER BY int(car), where car in the list is the view's text; and by the text itself."""
    cars = sorted(frame.tags["car"] for frame in frames)
    view = "from metaocean_view where car is not null order by"
    by_number = rows(store, f"select car, fkey {view} int(car), fkey")
    assert [row[0] for row in by_number] == [str(car) for car in cars]
    doubled = rows(store, f"select car {view} car * 2 desc")
    assert [row[0] for row in doubled] == [str(car) for car in reversed(cars)]
    by_text = rows(store, f"select car {view} car")
    assert [row[0] for row in by_text] == sorted(str(car) for car in cars)
    distinct = rows(store, "select distinct car from metaocean_view where car > 0 order by car")
    assert [row[0] for row in distinct] == sorted({str(car) for car in cars if car})


@pytest.mark.parametrize(
    "tail",
    [
        "with ur",
        "WITH CS",
        "with rs;",
        "with rr ;",
        "for read only",
        "FOR FETCH ONLY WITH UR",
        "for read only with ur;",
        "-- a comment; with a semicolon",
        "/* another */ with ur",
        "\n\t;",
    ],
)
def test_clauses_that_change_nothing(store: CatalogStore, tail: str) -> None:
    """Isolation, FOR READ ONLY, semicolons and comments leave the rows as they are."""
    files = len(listed_files())
    assert rows(store, f"/* first */ SELECT Count(*) FROM BluAdmin.MetaOcean {tail}") == [(files,)]


def test_fetch_first(store: CatalogStore) -> None:
    """FETCH FIRST takes the first rows of the order, with and without ROW(S) and a number."""
    everything = rows(store, "select fkey from metaocean order by fkey")
    for clause, count in (
        ("fetch first 3 rows only", 3),
        ("fetch first row only", 1),
        ("fetch first 1 row only with ur", 1),
        ("limit 5", 5),
        ("fetch first 1000000000000 rows only", len(everything)),
    ):
        fkeys = rows(store, f"select fkey from metaocean order by fkey {clause}")
        assert fkeys == everything[:count], clause


def test_row_limit_is_told(store: CatalogStore) -> None:
    """More rows than the limit are cut, and the result says so."""
    files = len(listed_files())
    cut = run_sql(store, "select fkey from metaocean", max_rows=files - 1)
    assert (cut.rows.num_rows, cut.truncated) == (files - 1, True)
    whole = run_sql(store, "select fkey from metaocean", max_rows=files)
    assert (whole.rows.num_rows, whole.truncated) == (files, False)
    assert whole.snapshot == store.snapshot()


def test_names_of_columns(store: CatalogStore) -> None:
    """Any case finds a column; names come back in lower case, unnamed ones by number."""
    table = run_sql(
        store, 'SELECT m.FKEY, Size AS Bytes, "group", \'x\', count(*) FROM metaocean M '
        'group by m.fkey, size, "group"'
    ).rows  # fmt: skip
    assert table.column_names == ["fkey", "bytes", "group", "4", "5"]
    both = run_sql(store, "select a.fkey, b.fkey, a.value, b.value from t_car a, t_front b").rows
    assert len(set(both.column_names)) == 4


def test_star_follows_the_tables(store: CatalogStore) -> None:
    """* and t.* stand for all columns in order, of several tables too."""
    one_table = run_sql(store, "select * from t_car").rows.column_names
    assert one_table == ["fkey", "value"]
    mixed = run_sql(
        store, "select t.*, m.size from metaocean m, t_car t where m.fkey = t.fkey"
    ).rows.column_names
    assert mixed == ["fkey", "value", "size"]
    both = run_sql(store, "select * from t_car a, t_front b where a.fkey = b.fkey").rows
    assert both.num_columns == 4


def test_grouping(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """GROUP BY, HAVING and ORDER BY on columns, aliases, numbers and expressions."""
    by_front = [sum(frame.tags["front"] == flag for frame in frames) for flag in (0, 1)]
    for group, order in (("value", "n desc"), ("value", "count(*) desc"), ("v", "2 desc")):
        groups = rows(
            store,
            f"select value v, count(*) n from t_front group by {group} "
            f"having count(*) > 1 order by {order}",
        )
        expected = sorted(
            ((n, str(flag)) for flag, n in enumerate(by_front) if n > 1), reverse=True
        )
        assert groups == [(flag, n) for n, flag in expected]
    halves: dict[int, int] = {}
    for frame in frames:
        halves[frame.tags["car"] // 100_000] = halves.get(frame.tags["car"] // 100_000, 0) + 1
    groups = rows(
        store,
        "select int(value) / 100000 h, count(*) from t_car group by int(value) / 100000 order by h",
    )
    assert groups == sorted(halves.items())


def test_distinct_unions_and_ctes(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """DISTINCT, the set operators, WITH with and without column names, derived tables."""
    cars = {str(frame.tags["car"]) for frame in frames}
    assert {row[0] for row in rows(store, "select distinct value from t_car")} == cars
    assert len(rows(store, "select value from t_car union all select value from t_front")) == 48
    assert {
        row[0] for row in rows(store, "select value from t_car union select value from t_front")
    } == cars | {"0", "1"}
    assert {
        row[0] for row in rows(store, "select value from t_car except select value from t_front")
    } == cars - {"0", "1"}
    some = sum(frame.tags["car"] > 50_000 for frame in frames)
    for text in (
        "with a as (select int(value) n from t_car) select count(*) from a where n > 50000",
        "with a(n) as (select int(value) from t_car) select count(*) from a where n > 50000",
        "with a(n) as (select value from t_car) select count(*) from a where n > 50000",
        "select count(*) from (select int(value) from t_car) as a(n) where n > 50000",
        "select count(*) from (select value v from t_car with ur) a where a.v > 50000",
    ):
        assert rows(store, text) == [(some,)], text


def test_correlated_subqueries(store: CatalogStore, frames: list[DrawnFrame]) -> None:
    """A sub-query in SELECT or WHERE sees the row around it."""
    expected = {frame.fkey: frame.tags["bicycle"] for frame in frames if frame.tags["car"] > 50_000}
    answer = rows(
        store,
        "select m.fkey, (select int(b.value) from t_bicycle b where b.fkey = m.fkey) "
        "from metaocean m where exists "
        "(select 1 from t_car c where c.fkey = m.fkey and int(c.value) > 50000)",
    )
    assert dict(answer) == expected  # type: ignore[arg-type]
    one_group = "select (select max(int(value)) from t_front){} from t_car group by 1"
    assert rows(store, one_group.format("")) == rows(store, one_group.format(" as m")) == [(1,)]
    assert run_sql(store, one_group.format(" as m")).rows.column_names == ["m"]
    assert run_sql(store, one_group.format("")).rows.column_names == ["1"]


@pytest.mark.parametrize("text", ["it''s", "a;b", "ü -- no comment", "/* x */", "100%", '"q"'])
def test_literals_keep_their_text(store: CatalogStore, text: str) -> None:
    """Quotes, semicolons, comment signs and any letter inside a literal are text."""
    assert one(store, f"'{text}'") == text.replace("''", "'")


def test_concat_with_null(store: CatalogStore) -> None:
    """CONCAT and || of a null are null."""
    assert one(store, "concat('a', null)") is None
    assert one(store, "'a' || null") is None
    assert one(store, "concat('a', 'b')") == "ab"


def test_current_timestamp(store: CatalogStore) -> None:
    """CURRENT TIMESTAMP, one word or two, is naive UTC as the catalog's times are."""
    for text in ("current timestamp", "CURRENT_TIMESTAMP"):
        value = one(store, text)
        assert isinstance(value, datetime)
        assert abs((value - datetime.now(UTC).replace(tzinfo=None)).total_seconds()) < 60


@pytest.mark.parametrize(
    ("pattern", "tail", "test"),
    [
        ("'%.png'", "", lambda key: key.endswith(".png")),
        ("('%front%')", "", lambda key: "front" in key),
        ("'camera_lidar_semantic/%'", "", lambda key: key.startswith("camera_lidar_semantic/")),
        ("'%!_label!_%'", "escape '!'", lambda key: "_label_" in key),
        ("'%/cam_front%_00%.png'", "", lambda key: "/cam_front" in key and key.endswith(".png")),
        ("'%.%.%'", "", lambda key: key.count(".") > 1),
        ("'.*'", "", lambda key: False),
    ],
)
def test_like(store: CatalogStore, pattern: str, tail: str, test: object) -> None:
    """LIKE with %, _ and ESCAPE, in parentheses too."""
    assert callable(test)
    expected = {key for key in listed_files() if test(key)}
    body = f"from metaocean where filename like {pattern} {tail}"
    assert {row[0] for row in rows(store, f"select filename {body}")} == expected
    negated = body.replace(" like ", " not like ")
    assert rows(store, f"select count(*) {negated}") == [(len(listed_files()) - len(expected),)]
