"""What can be the rule of a collection."""

import duckdb
import pytest

from catalog.errors import CollectionFails, InvalidInput
from catalog.lake.schema import FILES_COLUMNS
from query.question.collection_rule import check_rule, rows_of


@pytest.mark.parametrize(
    "rule",
    ["datasource = 'a2d2'", "DATASOURCE IN ('a', 'b') and size > 1000", "filename like 'camera%'",
     "tier is null or tier = 'open'", "upper(owner) = 'ANNA'", '"group" = \'x\'',
     "not (site = 'MUC')", "1 = 1", "size between 1 and 5 -- comment"],
)  # fmt: skip
def test_conditions_on_metaocean(rule: str) -> None:
    """Any condition on its columns."""
    check_rule(rule)


@pytest.mark.parametrize(
    "rule",
    ["", "car > 1", "fkey in (select fkey from t_car)", "exists (select 1 from metaocean)",
     "size > 1; delete from files", "1=1) or (1=1", "1=1 union select 1", "size >", "t.size > 1",
     "lake.main.files.size > 1", "read_text('/etc/passwd') = 'x'", "size > ?", "size > $1",
     "current_setting('x') = 'y'", "\ud800", "1=1 order by size", "* = 1", "label_file = 'x'",
     "nosuchfunction(size) = 1", "count(*) > 1", "sum(size) > 3", "max(size) = 1",
     "rank() over (order by size) = 1", "max(size) over () = size", "row_number() over () = 1",
     "listagg(filename, ',') = 'x'", "row_number() = 1", "list_sum(size) = 1", "upper(size) = 'X'"],
)  # fmt: skip
def test_what_is_none(rule: str) -> None:
    """Tags, other rows, other tables, functions, parameters, more than a condition."""
    with pytest.raises(InvalidInput, match="rule"):
        check_rule(rule)


def test_a_stored_rule_that_is_none() -> None:
    """Its users are not told which it is."""
    with pytest.raises(CollectionFails) as stored:
        rows_of(["size > 1", "car > 1"])
    assert "car" not in str(stored.value)


@pytest.mark.parametrize(
    ("rule", "kind"),
    [("1", "INTEGER"), ("size", "BIGINT"), ("'a'", "VARCHAR"), ("filename", "VARCHAR"),
     ("mtime", "TIMESTAMP"), ("size + 1", "BIGINT"), ("upper(site)", "VARCHAR")],
)  # fmt: skip
def test_values_are_no_conditions(rule: str, kind: str) -> None:
    """The message says what was given and what is expected."""
    with pytest.raises(InvalidInput, match=f"of type {kind}; expected a condition"):
        check_rule(rule)


@pytest.mark.parametrize(
    "rule",
    ["1/0 = 1", "size / 0 = 1", "mod(size, 0) = 1", "mtime > '2026-13-45'", "int('x') = 1",
     "mtime in ('2026-01-01', '2026-13-45')", "size in ('a', 'b')", "date('2026-13-45') < mtime"],
)  # fmt: skip
def test_what_fails_for_every_file(rule: str) -> None:
    """By its constants, without any row."""
    with pytest.raises(InvalidInput, match="fails whatever the file"):
        check_rule(rule)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    """5,000 files: every third one's name is a number, every fifth one's owner is '2026-01-05'."""
    connection = duckdb.connect(":memory:")
    columns = ", ".join(f'"{name}" {kind}' for name, kind in FILES_COLUMNS.items())
    connection.execute(f"CREATE TABLE files ({columns})")
    connection.execute(
        "INSERT INTO files (fkey, filename, site, owner, size, uid, mtime) "
        "SELECT 'k' || i, CASE WHEN i % 3 = 0 THEN i::VARCHAR ELSE 'x' || i END, 'true', "
        "CASE WHEN i % 5 = 0 THEN '2026-01-05' ELSE 'o' || i END, i, i % 7, "
        "TIMESTAMP '2026-01-01' + to_seconds(i) FROM range(5000) AS t(i)"
    )
    return connection


FAILING = [
    ("int(filename) >= 0", "i % 3 = 0"), ("int(filename) = 3", "i = 3"),
    ("not (int(filename) = 3)", "i % 3 = 0 and i <> 3"), ("int(filename) is null", "false"),
    ("int(filename) is not null", "i % 3 = 0"), ("filename > 100", "i % 3 = 0 and i > 100"),
    ("filename in (3, 6, 7)", "i in (3, 6)"), ("filename between 3 and 9", "i in (3, 6, 9)"),
    ("int(filename) + int(filename) < 10 and int(filename) > 0", "i = 3"),
    ("float(filename) < 10", "i % 3 = 0 and i < 10"), ("100 / uid > 20", "i % 7 between 1 and 4"),
    ("mod(size, uid) = 0", "i % 7 > 0 and i % greatest(i % 7, 1) = 0"),
    ("date(owner) = '2026-01-05'", "i % 5 = 0"), ("abs(smallint(size * 10)) >= 0", "i <= 3276"),
    ("case when uid = 3 then int(filename) else 1 end = 1", "i % 7 <> 3"),
    ("case when uid = 3 then int('x') else 1 end = 1", "i % 7 <> 3"),
    ("coalesce(int(filename), 0) >= 0", "i % 3 = 0"), ("sqrt(size - 10) >= 0", "i >= 10"),
    ("site || int(filename) = 'true3'", "i = 3"),
    ("size > 3 or int(filename) = 0", "i > 3 or i = 0"),
    ("int(filename) = 3 and uid = 3 or 10 / uid = 2", "i = 3 or i % 7 in (4, 5)"),
    ("not (filename like 'x%' or int(filename) = 3)", "i % 3 = 0 and i <> 3"),
    ("filename not like 'x%' and int(filename) < 9", "i in (0, 3, 6)"),
    ("size > 3 or filename", None),
    ("filename is true", None), ("filename = true", None), ("not filename", None),
    ("not upper(filename)", None), ("(size > 3) = filename", None), ("mtime = owner", None),
    ("substr(filename, int(owner), 1) = 'x'", "false"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "seen"), FAILING)
def test_rows_for_which_a_rule_fails_are_not_seen(
    rows: duckdb.DuckDBPyConnection, rule: str, seen: str | None
) -> None:
    """Each by itself, among others of the same vector, and without an error."""
    condition = rows_of([rule])
    sizes = rows.execute(f"SELECT size FROM files AS metaocean WHERE {condition} ORDER BY size")
    values = [row[0] for row in sizes.fetchall()]
    if seen is not None:
        expected = rows.execute(f"SELECT i FROM range(5000) AS t(i) WHERE {seen} ORDER BY i")
        assert values == [row[0] for row in expected.fetchall()]
    both = rows_of([rule, "size = 4999"])  # one that fails takes nothing from another
    count = f"SELECT count(*) FROM files AS metaocean WHERE {both}"
    assert rows.execute(count).fetchall() == [(len({*values, 4999}),)]


@pytest.mark.parametrize(
    "rule",
    ["datasource = 'a2d2'", "'5' = site", "filename like '%/a%' and not site = 'x'",
     "size between 1 and 5", "mtime >= '2026-01-01'", "mtime < '2026-01-01-10.00.00.000000'",
     "upper(owner) in ('A', 'B') or tier is null", "1 = 1"],
)  # fmt: skip
def test_what_cannot_fail_is_left_as_it_is(rule: str) -> None:
    """So that DuckDB skips row groups by it."""
    assert "TRY" not in rows_of([rule])


def test_rules_in_duckdb_s_terms() -> None:
    """Conditions on a row called metaocean, each in brackets of its own; none is no row."""
    assert rows_of([]) == "false"
    rule = rows_of(["size > 1 or site = 'x'", "owner = 'a' -- ) or (1 = 1"])
    owner, site = (
        f"""(("metaocean"."{name}") >= ('{text}') AND ("metaocean"."{name}") < ('{text}!') AND """
        f"""((CASE WHEN SUFFIX(("metaocean"."{name}"), ' ') THEN """
        f"""RTRIM(("metaocean"."{name}"), ' ') ELSE ("metaocean"."{name}") END) = '{text}'))"""
        for name, text in (("owner", "a"), ("site", "x"))
    )
    assert rule == f"""(({owner})) OR (("metaocean"."size" > 1 OR {site}))"""
    assert "1 = 1" not in rule
    assert "SELECT" not in rule
    assert rows_of(["size > 1", "size > 1"]) == rows_of(["size > 1"])
