"""Nothing but one SELECT over the catalog's views gets through, and nothing brings it down."""

import time
from pathlib import Path

import pytest

from catalog.errors import SqlError
from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.query.catalogs import listed_files, rows

WRITES = [
    "COPY metaocean TO '{folder}/x.csv'",
    "COPY (SELECT * FROM metaocean) TO '{folder}/x.csv'",
    "ATTACH '{folder}/x.db' AS x",
    "DETACH lake",
    "PRAGMA database_list",
    "SET memory_limit = '1GB'",
    "RESET memory_limit",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE x (a int)",
    "CREATE TABLE x AS SELECT * FROM metaocean",
    "CREATE VIEW x AS SELECT 1",
    "CREATE MACRO x() AS 1",
    "DROP VIEW metaocean",
    "ALTER TABLE metaocean ADD COLUMN x int",
    "TRUNCATE TABLE metaocean",
    "INSERT INTO metaocean SELECT * FROM metaocean",
    "INSERT INTO metaocean VALUES (1)",
    "UPDATE metaocean SET owner = 'x'",
    "DELETE FROM metaocean",
    "MERGE INTO metaocean USING t_car ON t_car.fkey = metaocean.fkey WHEN MATCHED THEN DELETE",
    "CALL x()",
    "EXPORT DATABASE '{folder}/x'",
    "IMPORT DATABASE '{folder}/x'",
    "VACUUM",
    "CHECKPOINT",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "GRANT ALL ON metaocean TO x",
    "EXPLAIN SELECT * FROM metaocean",
    "EXPLAIN ANALYZE SELECT * FROM metaocean",
    "DESCRIBE metaocean",
    "SHOW TABLES",
    "SUMMARIZE metaocean",
    "SELECT 1; SELECT 2",
    "SELECT * FROM metaocean; DROP VIEW metaocean",
    "SELECT 1;; COPY metaocean TO '{folder}/x.csv'",
    "WITH x AS (DELETE FROM metaocean RETURNING *) SELECT * FROM x",
    "WITH x AS (INSERT INTO metaocean SELECT * FROM metaocean) SELECT * FROM x",
    "WITH x AS (UPDATE metaocean SET owner = 'x') SELECT * FROM x",
    "SELECT * INTO y FROM metaocean",
    "SELECT * FROM metaocean FOR UPDATE",
    "SELECT * FROM metaocean FOR SHARE",
    "SELECT * FROM FINAL TABLE (INSERT INTO metaocean VALUES (1))",
]

TABLES = [
    "read_csv('/etc/passwd')",
    "read_csv_auto('/etc/passwd')",
    "read_text('/etc/passwd')",
    "read_blob('/etc/passwd')",
    "read_json('/etc/passwd')",
    "read_parquet('{folder}/*.parquet')",
    "parquet_scan('{folder}/*.parquet')",
    "glob('/*')",
    "sniff_csv('/etc/passwd')",
    "duckdb_settings()",
    "duckdb_secrets()",
    "range(10)",
    "generate_series(1, 10)",
    "unnest([1, 2])",
    "table(range(10))",
    "query('select 1')",
    "query_table('metaocean')",
    "sqlite_scan('{folder}/catalog.sqlite', 'x')",
    "ducklake_snapshots('lake')",
    "'/etc/passwd'",
    '"/etc/passwd"',
    "'http://localhost/x.csv'",
    '"http://localhost/x.parquet"',
    '"data.parquet"',
    "files",
    "class_pixels",
    "tags_frame",
    "main.files",
    "lake.main.files",
    "lake.bluadmin.metaocean",
    "bluadmin.metaocean.x",
    "information_schema.tables",
    "sqlite_master",
    "duckdb_tables",
    "pg_catalog.pg_tables",
    "ducklake_metadata",
    "metaocean TABLESAMPLE (10 PERCENT)",
    "metaocean PIVOT (count(*) FOR platform IN ('IBM COS'))",
]

VALUES = [
    "getenv('HOME')",
    "current_setting('memory_limit')",
    "error('x')",
    "version()",
    "current_database()",
    "nextval('x')",
    "sleep(10)",
    "repeat('x', 1000000000)",
    "lpad('x', 1000000000, 'y')",
    "list(fkey)",
    "[1, 2]",
    "{'a': 1}",
    "struct_pack(a := 1)",
    "unnest([1, 2])",
    "columns('.*')",
    "fkey[1]",
    "try_cast(fkey as int)",
    "cast(fkey as json)",
    "cast(fkey as blob)",
    "cast(fkey as int[])",
    'cast(fkey as "nothing")',
    "interval 1 year",
    "size & 1",
    "fkey similar to 'x'",
    "fkey ilike 'x'",
    "fkey glob 'x'",
    "fkey ~ 'x'",
    "?",
    ":x",
    "$1",
    "@x",
    "rowid",
    "metaocean",
    "size collate nocase",
]

LIMITS = [
    "limit 99999999999999999999",
    "limit 9223372036854775808",
    "fetch first 99999999999999999999 rows only",
    "limit (select 1)",
    "limit 1.5",
    "limit -1",
    "limit 10%",
    "fetch first 10 percent rows only",
]


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


@pytest.fixture(autouse=True)
def _unharmed(store: CatalogStore, tmp_path: Path) -> object:
    """After each test the catalog is as before, answers, and no file was made."""
    before = store.snapshot()
    yield
    assert store.snapshot() == before
    assert rows(store, "select count(*) from metaocean") == [(len(listed_files()),)]
    assert list(tmp_path.iterdir()) == []


def refused(store: CatalogStore, text: str) -> SqlError:
    """The error that a statement must give, on one line, soon."""
    started = time.monotonic()
    with pytest.raises(SqlError) as error:
        run_sql(store, text, timeout_s=60)
    assert time.monotonic() - started < 120
    assert "\n" not in str(error.value)
    assert error.value.sqlcode < 0
    assert len(error.value.sqlstate) == 5
    return error.value


@pytest.mark.parametrize("text", WRITES)
def test_only_select(store: CatalogStore, tmp_path: Path, text: str) -> None:
    """Every other statement, alone, after or inside a SELECT, is refused and does nothing."""
    refused(store, text.format(folder=tmp_path))


@pytest.mark.parametrize("table", TABLES)
def test_only_the_views(store: CatalogStore, tmp_path: Path, table: str) -> None:
    """Table functions, files, addresses and the engine's own tables are refused."""
    table = table.replace("{folder}", str(tmp_path))
    refused(store, f"SELECT * FROM {table}")
    refused(store, f"SELECT * FROM metaocean WHERE fkey IN (SELECT * FROM {table})")
    refused(store, f"WITH x AS (SELECT * FROM {table}) SELECT * FROM x")


@pytest.mark.parametrize("value", VALUES)
def test_only_known_expressions(store: CatalogStore, value: str) -> None:
    """Functions and expressions that are not Db2's, or reach further, are refused."""
    refused(store, f"SELECT {value} FROM metaocean")
    refused(store, f"SELECT 1 FROM metaocean WHERE {value} = 'x'")
    refused(store, f"SELECT 1 FROM metaocean ORDER BY {value}")


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_are_plain_numbers(store: CatalogStore, limit: str) -> None:
    """A row limit is a whole number that fits 64 bits."""
    refused(store, f"SELECT fkey FROM metaocean {limit}")


@pytest.mark.parametrize(
    "body",
    [
        "car > 1; COPY metaocean TO '{folder}/x.csv'",
        "1=1) TO '{folder}/x.csv'; --",
        "car > 1) OR (1=1",
        "car > 1 LIMIT 5",
        "car > 1 ORDER BY fkey",
        "car > 1) UNION (SELECT fkey FROM metaocean",
        "car > 1) UNION SELECT fkey FROM frames WHERE (1=1",
        "car > 1) --",
        "car > 1 /*",
        "DELETE FROM metaocean",
        "COPY metaocean TO '{folder}/x.csv'",
        "PRAGMA database_list",
        "fkey IN (SELECT * FROM read_text('/etc/passwd'))",
        "fkey IN (DELETE FROM metaocean RETURNING fkey)",
        "fkey IN (SELECT fkey FROM lake.main.files)",
        "EXISTS (SELECT 1 FROM '/etc/passwd')",
        "getenv('HOME') = 'x'",
        "car > ?",
        "car > :x",
        "car > 1\0",
        "",
        "   ",
        "-- nothing",
        "(" * 10_000 + "1=1" + ")" * 10_000,
        "car > 1 OR " * 90_000 + "1=1",
        "'\ud800' = 'x'",
    ],
)
def test_where_of_a_selection(store: CatalogStore, tmp_path: Path, body: str) -> None:
    """A WHERE body holds one condition and is checked as a statement is."""
    question = Question.model_construct(where=body.replace("{folder}", str(tmp_path)))
    with pytest.raises(SqlError) as error:
        select_frames(store, question)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "select " + "(" * 10_000 + "1" + ")" * 10_000,
        "select 1 from t_car where " + "not " * 10_000 + "1=1",
        "select " + "- " * 10_000 + "1",
        "select " + "1+" * 10_000 + "1",
        "select " + "int(" * 10_000 + "1" + ")" * 10_000,
        "select " + "case when 1=1 then " * 2_000 + "1" + " end" * 2_000,
        "select * from " + "(select * from " * 2_000 + "t_car" + ") a" * 2_000,
        " union all ".join(["select value from t_car"] * 2_000),
        "select 1 from t_car where " + " or ".join(["1=1"] * 30_000),
        "select 1 from t_car where value in (" + "1," * 600_000 + "1)",
        "select " + "value," * 20_000 + "value from t_car",
        "select '" + "x" * 1_000_000 + "'",
        "with a0 as (select value from t_car)"
        + "".join(f", a{i} as (select * from a{i - 1} x, a{i - 1} y)" for i in range(1, 50))
        + " select count(*) from a49",
    ],
    ids=lambda text: text[:25],
)
def test_monstrous_statements(store: CatalogStore, text: str) -> None:
    """Depth, length and width have limits, met soon and without harm."""
    assert refused(store, text).sqlcode in (-101, -840)


@pytest.mark.parametrize("text", ["select 1\0", "\0", "select 'a\0b'", "select '\ud800'", "\ud800"])
def test_characters_that_are_no_text(store: CatalogStore, text: str) -> None:
    """NUL and half a surrogate pair are syntax errors."""
    assert refused(store, text).sqlcode == -104


def _product(tables: int) -> str:
    return ", ".join(f"metaocean m{i}" for i in range(tables))


_ENDLESS = "select 1 as n from t_car union all select n + 1 from a"


@pytest.mark.parametrize(
    "text",
    [
        f"select count(*) from {_product(7)}",
        f"select m0.fkey from {_product(6)} order by m0.inode * m1.inode",
        f"select count(*) from {_product(5)} where m0.fkey || m1.fkey || m4.fkey = 'x'",
        f"with recursive a as ({_ENDLESS}) select count(*) from a",
    ],
    ids=["count", "sort", "text", "recursion"],
)  # fmt: skip
def test_time_limit(store: CatalogStore, text: str) -> None:
    """A statement without end is stopped, and the store answers the next one."""
    started = time.monotonic()
    with pytest.raises(SqlError) as error:
        run_sql(store, text, timeout_s=0.5)
    assert error.value.sqlcode in (-952, -955)
    assert time.monotonic() - started < 120


def test_row_limit_bounds_a_product(store: CatalogStore) -> None:
    """A product of millions of rows gives the rows asked for."""
    text = f"select m0.fkey from {_product(6)}"
    result = run_sql(store, text, max_rows=100, timeout_s=120)
    assert (result.rows.num_rows, result.truncated) == (100, True)


@pytest.mark.parametrize("pattern", ["%_" * 30 + "x", "%a_" * 30, "%_%%_" * 10 + "x"])
def test_like_takes_no_exponential_time(store: CatalogStore, pattern: str) -> None:
    """LIKE with many % and _, which DuckDB alone would take ages for and could not be stopped."""
    started = time.monotonic()
    for tail in ("", " escape '!'"):
        rows(store, f"select count(*) from metaocean where fkey like '{pattern}'{tail}")
    assert time.monotonic() - started < 120
