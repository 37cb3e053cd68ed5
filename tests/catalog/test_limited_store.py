"""A store of some rows only, attacked beneath the query layer's checks, in DuckDB's own SQL."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from catalog.errors import CollectionFails, NotFound, SqlError
from catalog.frames.frames import register, remove
from catalog.lake.catalog import Catalog
from catalog.lake.limited_databases import SelectLimited, _can_fail, _converts
from catalog.lake.metadata.own_tables import expire
from catalog.limited_store import LimitedStore
from catalog.memory import snapshot as in_memory
from catalog.store import CatalogStore
from catalog.tags.model_scores import write_scores
from query.run.prepared import prepare
from tests.catalog.backends import BACKENDS, new_location, open_at
from tests.catalog.some_rows import file, source_names, two_frames
from tests.ingest.s3_server import moto

MINE = "metaocean.fkey LIKE '%:mine/%'"


def put(store: CatalogStore, *prefixes: str) -> int:
    """Files and frames below each prefix, and a commit's number."""
    with store.writing("rows") as connection:
        for prefix in prefixes:
            files, frames = two_frames(prefix, f"{prefix}/shared")
            register(connection, source_names(), files, frames, 1)
    return store.snapshot()


PLACES = [
    (BACKENDS[0], 0),
    (BACKENDS[0], 200),
    pytest.param((BACKENDS[-1], 0), marks=pytest.mark.wide),
]
"""Where a catalog lies, and the memory that it may hold its newest snapshot in [MB]."""


def filled(place: tuple[str, int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogStore:
    """A catalog with rows that may be seen and rows that may not, held in memory or not."""
    backend, memory_mb = place
    if backend.endswith("s3"):
        moto().sign_in(monkeypatch, folder)
    store = open_at(new_location(backend, folder), snapshot_memory_mb=memory_mb)
    put(store, "mine", "theirs")
    return store


@pytest.fixture(scope="module", params=PLACES, ids=str)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogStore]:
    """One for all tests that write nothing."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        store = filled(request.param, tmp_path_factory.mktemp("whole"), monkeypatch)
        yield store
        store.close()


@pytest.fixture(params=PLACES[:2], ids=str)
def own(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CatalogStore:
    """One of the test's own."""
    return filled(request.param, tmp_path, monkeypatch)


@pytest.fixture
def limited(whole: CatalogStore) -> LimitedStore:
    """The rows that may be seen."""
    return LimitedStore(whole, MINE)


def fkeys(store: Catalog, statement: str, at: int | None = None) -> list[str]:
    """The first column of a statement's rows, sorted; from memory where that is kept."""
    _in_memory(store)
    with store.reading(at) as cursor:
        rows = sorted(str(row[0]) for row in cursor.execute(statement).fetchall())
        cursor.has_few_rows(statement)
        return rows


def _in_memory(store: Catalog) -> bool:
    """Wait until memory holds the newest snapshot; whether it does."""
    whole = store._store if isinstance(store, LimitedStore) else store
    assert isinstance(whole, CatalogStore)
    return whole.memory.wait(300)


SEEN = ["c1:d1:mine/0", "c1:d1:mine/1", "c1:d1:mine/shared"]


@pytest.mark.wide
@pytest.mark.parametrize("own", PLACES, indirect=True, ids=str)
def test_every_table_and_view_holds_those_rows(own: CatalogStore) -> None:
    """All that has a column fkey, whatever it is called, of every family; nothing else is left.

    Each of them has rows of both, and of a folder whose name begins like the one that is seen.
    """
    limited = LimitedStore(own, MINE)
    prefixes = ("mine", "theirs", "mine2")
    with own.writing("a row in each table") as connection:
        for prefix in prefixes:
            files, frames = two_frames(prefix, f"{prefix}/shared")
            full = [
                replace(
                    one,
                    lidar=one.image,
                    camera_json=one.image,
                    label_digest="d",
                    label_segments="1:7",
                )
                for one in frames
            ]
            files += [file(str(one.label)) for one in frames]
            register(connection, source_names(), files, full, 2)
        connection.execute(
            "INSERT INTO lake.main.frame_trees BY NAME SELECT f.*, c.* EXCLUDE (fkey) "
            "FROM lake.main.tags_frame AS f JOIN lake.main.class_pixels AS c USING (fkey)"
        )
    scored = [f"c1:d1:{prefix}/0" for prefix in prefixes]
    of_cells = {"fkey": scored, "truth": ["car"] * 3, "predicted": ["sky"] * 3, "pixels": [5] * 3}
    scores = pa.table({"fkey": scored, "uncertainty": [0.5] * 3})
    write_scores(own, "late", "aa", scores, pa.table(of_cells))
    listed = (
        "SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() "
        "WHERE database_name = 'lake' AND column_name = 'fkey'"
    )
    tables = fkeys(own, listed)
    assert fkeys(limited, listed) == tables
    assert {"main.tags_scores_late", "bluadmin.t_late_uncertainty"} < {*tables}
    of_memory = {"main.tagged_files", "main.untagged_files", "main.every_file"}
    assert (
        of_memory <= {*tables}
        if _in_memory(own)
        else {"main.confusion_cells", "main.label_segments"} <= {*tables}
    )
    for table in tables:
        keys = fkeys(limited, f"SELECT fkey FROM {table}")
        everything = fkeys(own, f"SELECT fkey FROM {table}")
        assert keys == [key for key in everything if ":mine/" in key], table
        for prefix in prefixes:
            assert any(f":{prefix}/" in key for key in everything), table


FORMS = [
    "SELECT fkey FROM main.files",
    'SELECT fkey FROM "MAIN"."FILES"',
    "SELECT fkey FROM metaocean WHERE true OR fkey LIKE '%'",
    "SELECT fkey FROM (SELECT * FROM main.files) AS files",
    "SELECT (SELECT min(fkey) FROM main.files WHERE fkey = f.fkey) FROM metaocean AS f",
    "WITH files AS (SELECT * FROM main.files) SELECT fkey FROM files",
    "WITH stored AS (SELECT * FROM metaocean) SELECT fkey FROM stored",
    "WITH metaocean AS (FROM bluadmin.metaocean) SELECT fkey FROM metaocean",
    "SELECT f.fkey FROM main.files AS f, LATERAL (SELECT 1)",
    "SELECT fkey FROM main.files UNION SELECT fkey FROM main.class_pixels",
    "SELECT fkey FROM main.files QUALIFY row_number() OVER (ORDER BY fkey) < 100",
    "SELECT unnest(list(fkey)) FROM main.files",
    "SELECT fkey FROM main.files TABLESAMPLE 100%",
    "SELECT DISTINCT fkey FROM main.files RIGHT JOIN (SELECT 1 AS one) ON true",
]


@pytest.mark.wide
def test_no_form_of_a_statement_sees_more(limited: LimitedStore) -> None:
    """Qualified, shadowed by names in WITH, nested, set operations."""
    for statement in FORMS:
        assert fkeys(limited, statement) == SEEN, statement


REFUSED = [
    "SELECT * FROM lake.main.files",
    "SELECT * FROM lake.files",
    'SELECT * FROM "Lake"."main"."files"',
    "SELECT * FROM lake.bluadmin.metaocean",
    "WITH files AS (SELECT * FROM lake.main.files) SELECT * FROM files",
    "SELECT (SELECT count(*) FROM lake.main.files)",
    "SELECT * FROM metaocean WHERE EXISTS (FROM lake.main.files)",
    "SELECT * FROM __ducklake_metadata_lake.main.ducklake_data_file",
    "SELECT * FROM __ducklake_metadata_lake.ducklake_file_column_stats",
    "SELECT * FROM lake.snapshots()",
    "SELECT * FROM lake.main.table_changes('files', 1, 3)",
    "SELECT * FROM lake.main.current_snapshot()",
    "SELECT * FROM lake.current_snapshot()",
    "SELECT lake.main.anything(1)",
    "SELECT fkey FROM lake.main.files AT (VERSION => 1)",
    "SELECT * FROM ducklake_list_files('lake', 'files')",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM pg_class",
    "SELECT * FROM sqlite_master",
    "SELECT table_name FROM tables",
    "SELECT getvariable('tagged_files')",
    "SELECT * FROM seen_1.main.files",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM system.information_schema.columns",
    "SELECT * FROM query('SELECT * FROM lake.main.files')",
    "SELECT * FROM query_table('lake.main.files')",
    "SELECT * FROM read_parquet('**/*.parquet')",
    "SELECT * FROM 'data/main/files/x.parquet'",
    "SELECT * FROM glob('*')",
    "SELECT * FROM pragma_table_info('lake.main.files')",
    "PRAGMA show_databases",
    "SHOW ALL TABLES",
    "DESCRIBE lake.main.files",
    "SUMMARIZE lake.main.files",
    "SUMMARIZE main.files",
    "FROM (SUMMARIZE lake.main.files)",
    "FROM (DESCRIBE lake.main.files)",
    "WITH a AS (SUMMARIZE lake.main.files) FROM a",
    "EXPLAIN ANALYZE SELECT * FROM lake.main.files",
    "USE lake",
    "ATTACH ':memory:' AS x",
    "DETACH lake",
    "CREATE OR REPLACE VIEW lake.main.files AS SELECT * FROM lake.main.files",
    "CREATE TEMP VIEW v AS SELECT * FROM lake.main.files",
    "COPY (SELECT * FROM lake.main.files) TO 'x'",
    "SELECT 1; SELECT * FROM lake.main.files",
    "SET search_path = 'lake'",
    "EXECUTE p",
    "FROM lake.main.files SELECT fkey",
    "TABLE lake.main.files",
    "PIVOT lake.main.files ON owner",
    "VALUES ((SELECT count(*) FROM lake.main.files))",
]


def test_the_whole_catalog_is_named_by_no_statement(
    whole: CatalogStore, limited: LimitedStore
) -> None:
    """Refused, or unknown: never a row. Also when the same text was accepted of the whole."""
    for statement in REFUSED:
        with limited.reading() as cursor:
            try:
                rows = cursor.execute(statement).fetchall()
            except (SqlError, duckdb.Error):
                continue
            pytest.fail(f"{statement}: {rows[:5]}")
    shared = "SELECT table_name FROM duckdb_tables()"
    assert fkeys(whole, shared)
    with limited.reading() as cursor, pytest.raises(SqlError, match="duckdb_tables"):
        cursor.execute(shared)


def test_a_condition_is_never_tried_on_other_rows(limited: LimitedStore) -> None:
    """One that fails on them would tell of them by failing; it does fail on rows that are seen."""
    for table in ("main.files", "metaocean", "main.class_pixels", "t_front"):
        for value in ("theirs", "mine"):
            text = (
                f"SELECT count(*) FROM {table} WHERE "
                f"CASE WHEN fkey LIKE '%{value}%' THEN CAST(fkey AS INT) ELSE 1 END = 1"
            )
            if value == "theirs":
                fkeys(limited, text)
                continue
            with pytest.raises(duckdb.ConversionException):
                fkeys(limited, text)


def test_a_statement_s_condition_stays_above_the_rule(
    limited: LimitedStore,
) -> None:
    """In DuckDB's plan, whatever its optimizer thinks of conditions that can fail."""
    for table in ("main.files", "main.class_pixels", "bluadmin.t_front"):
        statement = f"SELECT count(*) FROM {table} WHERE fkey LIKE '%x_y%'"
        plan = _plan(limited, statement)
        limit = plan.index("STREAMING_LIMIT")
        assert plan.index("x_y") < limit
        assert "x_y" not in plan[limit:]


def _plan(limited: LimitedStore, statement: str) -> str:
    """DuckDB's plan of a statement that can fail for a row."""
    _in_memory(limited)
    with limited.reading() as snapshot:
        select = snapshot._cursor
        assert isinstance(select, SelectLimited)
        if select._databases is not None:
            select._cursor.execute(f"USE {select._databases[0]}.bluadmin")
        rows = select._cursor.execute(f"EXPLAIN {statement}").fetchall()
    return str(rows[0][1])


FAILING = [
    "CASE WHEN {hidden} THEN fkey ELSE '1' END = 1",
    "CAST(CASE WHEN {hidden} THEN 'x' ELSE '1' END AS INT) = 1",
    "CASE WHEN {hidden} THEN fkey ELSE '2020-01-01' END = DATE '2020-01-01'",
    "CASE WHEN {hidden} THEN error('x') ELSE 1 END = 1",
    "CAST(size AS TINYINT) + (CASE WHEN {hidden} THEN 127 ELSE 0 END)::TINYINT > 0",
    "regexp_matches('a', CASE WHEN {hidden} THEN '(' ELSE 'a' END)",
    "ln(CASE WHEN {hidden} THEN -1 ELSE 1 END) = 0",
    "strptime(CASE WHEN {hidden} THEN 'x' ELSE '2020' END, '%Y') IS NOT NULL",
    "get_bit('101'::BIT, CASE WHEN {hidden} THEN 9 ELSE 0 END) = 1",
    "(SELECT 1 FROM range(CASE WHEN {hidden} THEN 2 ELSE 1 END) AS r(n)) = 1",
    "fkey IN (SELECT fkey FROM main.files WHERE CASE WHEN {hidden} THEN fkey ELSE '1' END = 1)",
]
"""Conditions that hold for every row that is seen, and fail for every one that is not."""


@pytest.mark.parametrize("condition", FAILING)
def test_no_condition_fails_for_rows_that_are_not_seen(
    whole: CatalogStore, limited: LimitedStore, condition: str
) -> None:
    """Cast, division, overflow, patterns and the like; asked of them all, each does fail."""
    text = "SELECT fkey FROM main.files WHERE "
    assert fkeys(limited, text + condition.format(hidden="fkey LIKE '%theirs%'")) == SEEN
    with pytest.raises(duckdb.Error):
        fkeys(whole, text + condition.format(hidden="fkey LIKE '%theirs%'"))
    with pytest.raises(duckdb.Error):
        fkeys(limited, text + condition.format(hidden="fkey LIKE '%mine%'"))


def test_what_may_fail_for_a_row() -> None:
    """Casts, numbers that are computed, unknown functions, values of subqueries, samples."""
    column = "SELECT a FROM t WHERE "
    never = (
        "SELECT * FROM t", column + "a BETWEEN 1 AND 2 AND NOT (b IS NULL OR c IN (1, 2))",
        column + "d LIKE 'x%' AND rtrim(d) = 'x' AND CAST(a AS VARCHAR) > '1'",
        column + "EXISTS (SELECT 1 FROM s WHERE s.a = t.a) AND a IN (SELECT b FROM s)",
        "SELECT a, CAST(count(*) AS DECIMAL(31, 0)), 1 / sum(b) FROM t GROUP BY a LIMIT 3",
        column + "CASE WHEN suffix(d, ' ') THEN rtrim(d, ' ') END = 'x'",
        column + "d = md5_number_lower('x') OR d IN (SELECT b FROM s WHERE b IN (hash('x'), 2))",
        column + "TRY_CAST(d AS INT) = 1", "SELECT CASE WHEN a > 1 THEN b END FROM t ORDER BY 1",
        "SELECT list_transform([sum(a)], LAMBDA x: CASE WHEN x = 0 THEN error('e') END)[1] FROM t",
    )  # fmt: skip
    may = (
        column + "CAST(d AS INT) = 1", column + "d::DATE = '2020-01-01'", column + "a + 1 = 2",
        column + "1 / a = 1", column + "error('x') = 1", column + "a = (SELECT b FROM s)",
        "SELECT a FROM (SELECT CAST(d AS INT) AS a FROM t) AS x WHERE a = 1",
        "SELECT sum(CAST(d AS INT)) FROM t", "SELECT sum(a) + a FROM t GROUP BY a",
        "SELECT a FROM t TABLESAMPLE 10%", "SELECT sum(a) OVER () FROM t", column + "-a > 1",
        "SELECT a FROM t, range(3)", column + "d SIMILAR TO 'x'", column + "[a][1] = 1",
        "SELECT sum(a) FILTER (WHERE 1 / b = 1) / 2 FROM t", column + "nothing_known(a) = 1",
        "SELECT list_transform([sum(a)], LAMBDA x: x / b)[1] FROM t GROUP BY b",
        "SELECT list_transform([sum(a)], LAMBDA b: b)[1] / b FROM t GROUP BY b",
        column + "d LIKE 'x' ESCAPE '!'", "SELECT a FROM t JOIN s ON 1 / t.a = s.b",
    )  # fmt: skip
    with duckdb.connect(":memory:") as connection:
        for statements, expected in ((never, False), (may, True)):
            for statement in statements:
                rows = connection.execute("SELECT json_serialize_sql(?)", [statement]).fetchall()
                tree = json.loads(rows[0][0])
                assert not tree["error"], statement
                assert _can_fail(tree) is expected, statement


def test_what_converts_values_may_fail_for_a_row() -> None:
    """Text compared with numbers, times or truth is converted, though no statement says CAST."""
    never = (
        "SELECT * FROM t WHERE i = 1 AND u > 0 AND b < 3 AND d > 1 AND bo",
        "SELECT v FROM t WHERE v = ? AND v <> '?' AND ts > '2020-01-01' AND v = e",
        "SELECT v FROM t WHERE h = md5_number_lower('x') OR h = md5_number_lower(?) OR h = hash(v)",
        "SELECT v FROM t UNION ALL SELECT i FROM t", "SELECT sum(i) / count(*), avg(u) FROM t",
        "SELECT CAST(count(*) AS DECIMAL(31, 0)) FROM t", "SELECT CAST(b AS DECIMAL(19, 0)) FROM t",
        "SELECT CAST(i AS DECIMAL(12, 2)) FROM t", "SELECT 1 FROM t WHERE b = 1.5",
        "SELECT CAST(sum(b) AS DECIMAL(31, 0)) FROM t", "SELECT CAST(max(v) AS INTEGER) + 1 FROM t",
        "SELECT CAST(x AS INTEGER) FROM (SELECT max(v) AS x FROM t)",
    )  # fmt: skip
    may = (
        "SELECT 1 FROM t WHERE v = 1", "SELECT 1 FROM t WHERE v IN (i)", "SELECT not v FROM t",
        "SELECT 1 FROM t WHERE v BETWEEN ts AND ts", "SELECT CASE v WHEN i THEN 1 END FROM t",
        "SELECT v FROM t WHERE i IN (SELECT v FROM t)", "SELECT 1 FROM t WHERE v AND bo",
        "SELECT 1 FROM t JOIN t AS s ON t.v = s.i", "SELECT CAST(b AS DECIMAL(18, 0)) FROM t",
        "SELECT CAST(i AS DECIMAL(12, 3)) FROM t", "SELECT CAST(d AS DECIMAL(31, 0)) FROM t",
        "SELECT CAST(v AS DECIMAL(31, 0)) FROM t", "SELECT sum(CAST(v AS INTEGER)) FROM t",
        "SELECT CAST(v AS INTEGER), count(*) FROM t GROUP BY v",
        "SELECT CAST(x AS INTEGER) FROM (SELECT max(v) AS x FROM t GROUP BY i)",
        "SELECT CAST(x AS INTEGER) FROM (SELECT max(v) AS x FROM t), t",
        "SELECT CAST(max(v) AS INTEGER) FROM t WHERE v = 1",
        "SELECT CAST(max(v) AS INTEGER) FROM t HAVING CAST(max(v) AS INTEGER) = 1",
        "SELECT CAST(max(v) AS INTEGER) FROM t UNION ALL SELECT CAST(v AS INTEGER) FROM t",
        "SELECT count(*) FILTER (CAST(v AS INTEGER) = 1) FROM t",
        "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS s WHERE CAST(s.v AS INTEGER) = 1)",
        "SELECT no_such_column FROM t", "SELECT 1 FROM t WHERE h = md5_number_lower(v)",
        "SELECT 1 FROM t WHERE v = md5_number_lower('x')", "SELECT 1 FROM t WHERE ts > md5('x')",
    )  # fmt: skip
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TYPE e AS ENUM ('a')")
        connection.execute(
            "CREATE TABLE t (v VARCHAR, i INTEGER, b BIGINT, d DOUBLE, ts TIMESTAMP, bo BOOLEAN, "
            "u UTINYINT, e e, h UBIGINT)"
        )
        for statements, expected in ((never, False), (may, True)):
            for statement in statements:
                assert _converts(connection, statement) is expected, statement


@pytest.mark.parametrize(
    "statement",
    [
        "select count(*) from metaocean",
        "select sum(size) / ((count(size)*1920*1208)/100) from metaocean",
        "select max(size), min(filename) from metaocean where size > 10",
    ],
)
def test_counts_and_shares_in_memory_have_no_barrier(limited: LimitedStore, statement: str) -> None:
    """What they compute, they compute of one row; and a count of files reads their marks alone."""
    is_in_memory = _in_memory(limited)
    with limited.reading() as snapshot:
        query = prepare(snapshot, statement)
        select = snapshot._cursor
        assert isinstance(select, SelectLimited)
        select.execute(query)
        if not is_in_memory:
            return
        assert select._databases is not None
        assert select._used == select._databases[1]
        (_, plan), *_ = select._cursor.execute(f"EXPLAIN {query}").fetchall()
        assert "LIMIT" not in plan
        assert "cluster" not in plan
        assert "datasource" not in plan


def test_there_is_nothing_to_write_with(limited: LimitedStore) -> None:
    """It offers what readers need: no writing, no locks, none of DuckLake's own tables."""
    names = {name for name in [*dir(limited), *vars(limited)] if not name.startswith("_")}
    assert names == {
        "close", "condition", "quiesced", "reading", "reading_files", "reading_portions",
        "snapshot",
    }  # fmt: skip


def test_no_plan_is_shown(whole: CatalogStore, limited: LimitedStore) -> None:
    """It tells of rows that may not be seen: of how many there are, and of their values."""
    _in_memory(limited)
    statement = "SELECT count(*) FROM main.files"
    for reading in (limited.reading, limited.reading_files):
        with reading() as snapshot:
            assert snapshot.plan(statement) is None
    with whole.reading_files() as snapshot:
        assert snapshot.plan(statement) is not None


@pytest.mark.wide
def test_commits_are_seen_and_old_snapshots_are_limited(own: CatalogStore) -> None:
    """New rows, new tags and removed rows at once; each snapshot as it was, within the rule."""
    limited = LimitedStore(own, MINE)
    old = own.snapshot()
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
    newer = put(own, "mine/new", "theirs/new")
    more = fkeys(limited, "SELECT fkey FROM metaocean")
    assert len(more) == 6
    assert all("mine" in key for key in more)
    assert limited.snapshot() == newer
    with own.writing("remove") as connection:
        remove(connection, source_names(), ["mine/0", "theirs/0"])
    assert "c1:d1:mine/0" not in fkeys(limited, "SELECT fkey FROM metaocean")
    assert fkeys(limited, "SELECT fkey FROM metaocean", old) == SEEN
    assert fkeys(limited, "SELECT fkey FROM metaocean", newer) == more
    with own.writing("expire") as connection:
        expire(connection, [old])
    for number in (0, -1, 999, 2**63, old):
        for rule in (MINE, MINE.replace("mine", "theirs")):  # of one that is open, and of none
            with pytest.raises(NotFound, match="snapshot"):
                fkeys(LimitedStore(own, rule), "SELECT 1", number)


@pytest.mark.wide
def test_a_label_that_is_not_seen_is_none(own: CatalogStore) -> None:
    """Its size neither, in memory; also of frames and labels that came after the first question."""
    of_labels = "metaocean.fkey LIKE '%:mine/%' AND metaocean.fkey NOT LIKE '%1-label'"
    limited = LimitedStore(own, of_labels)
    listed = "SELECT f.fkey FROM ({}) AS f WHERE {}"

    def with_labels() -> list[str]:
        _in_memory(limited)
        with limited.reading() as snapshot:
            relation = snapshot.relation
        return fkeys(limited, listed.format(relation.sql, relation.has_label))

    assert with_labels() == []
    labels = [f"{prefix}/{number}-label" for prefix in ("mine", "theirs") for number in (0, 1)]
    with own.writing("labels") as connection:
        register(connection, source_names(), [file(key) for key in labels], [], 2)
    assert with_labels() == ["c1:d1:mine/0"]
    with own.writing("one label less") as connection:
        remove(connection, source_names(), ["mine/0-label"])
    assert with_labels() == []


@pytest.mark.wide
@pytest.mark.parametrize("own", [PLACES[1]], indirect=True, ids=str)
def test_memory_keeps_marks_of_some_rules(
    own: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those asked last; one that was dropped is marked again, and a question under way goes on."""
    assert _in_memory(own)
    monkeypatch.setattr(in_memory, "_MOST_LIMITED", 2)
    first = LimitedStore(own, MINE)
    assert fkeys(first, "SELECT fkey FROM metaocean") == SEEN
    with first.reading() as snapshot:
        for number in range(8):
            other = LimitedStore(own, f"metaocean.size > {number} AND metaocean.size < 10")
            assert fkeys(other, "SELECT fkey FROM metaocean") == []
        rows = snapshot.execute("SELECT fkey FROM main.files ORDER BY 1").fetchall()
        assert [fkey for (fkey,) in rows] == SEEN
    held = own.memory.at(None)
    assert held is not None
    with held._connection.cursor() as cursor:  # those of questions look at what there was
        marks = cursor.execute(
            "SELECT DISTINCT column_name FROM duckdb_columns() "
            "WHERE table_name = 'tagged_files' AND starts_with(column_name, 'seen_')"
        ).fetchall()
    assert len(marks) == 2, marks
    assert fkeys(first, "SELECT fkey FROM metaocean") == SEEN


@pytest.mark.wide
@pytest.mark.parametrize("own", [PLACES[1]], indirect=True, ids=str)
def test_marks_take_little_memory(own: CatalogStore) -> None:
    """Idle cursors keep nothing from before them, those of users without a rule included.

    A question under way delays that, and reads on.
    """
    assert _in_memory(own)
    held, block = own.memory.at(None), 1 << 18
    assert held is not None
    rules = iter(f"metaocean.size <> {number} AND {MINE}" for number in range(-30, 0))

    def growth(count: int) -> int:
        """Ask by so many rules, and of all rows between them; the tables' growth in bytes."""
        before = held._held_bytes()
        for rule in itertools.islice(rules, count):
            assert len(fkeys(own, "SELECT fkey FROM metaocean")) == 2 * len(SEEN)
            assert fkeys(LimitedStore(own, rule), "SELECT fkey FROM metaocean") == SEEN
        return held._held_bytes() - before

    growth(3)
    assert growth(8) < 8 * block
    before = held._held_bytes()
    with own.reading() as snapshot:
        snapshot.execute("SELECT count(*) FROM metaocean").fetchall()
        assert growth(4) > 4 * block
        assert snapshot.execute("SELECT count(*) FROM metaocean").fetchall() == [(6,)]
    assert held._held_bytes() - before < 4 * block


@pytest.mark.wide
@pytest.mark.parametrize("own", [PLACES[1]], indirect=True, ids=str)
def test_rules_that_come_between_commits(own: CatalogStore) -> None:
    """Each sees its rows of the newest snapshot, marked before it or after it, and no others."""
    rules = {
        prefix: f"metaocean.fkey LIKE '%:{prefix}/%' OR metaocean.fkey LIKE '%:{prefix}-%'"
        for prefix in ("mine", "theirs", "mine2")
    }
    stores = {prefix: LimitedStore(own, rule) for prefix, rule in rules.items()}
    expected = {"mine": {*SEEN}, "theirs": {key.replace("mine", "theirs") for key in SEEN}}
    expected["mine2"] = set()

    def look(*prefixes: str) -> None:
        for prefix in prefixes:
            for statement in ("SELECT fkey FROM metaocean", "SELECT fkey FROM main.every_file"):
                assert {*fkeys(stores[prefix], statement)} == expected[prefix]
            # A condition that may fail goes another way, and from the third time on by a plan.
            fails = "SELECT fkey FROM metaocean WHERE CAST(size AS INT) > -1"
            for _ in range(3):
                assert {*fkeys(stores[prefix], fails)} == expected[prefix]

    look("mine")
    with stores["mine"].reading() as early:
        for number, later in enumerate(("theirs", "mine2")):
            put(own, f"mine-{number}", f"theirs-{number}", f"mine2-{number}", f"other-{number}")
            with own.writing("remove") as connection:
                remove(connection, source_names(), [f"mine/{number}", f"theirs/{number}"])
            for prefix, seen in expected.items():
                seen -= {f"c1:d1:{prefix}/{number}"}
                seen |= {f"c1:d1:{prefix}-{number}/{each}" for each in (0, 1, "shared")}
            look(later, *stores, later)
        rows = early.execute("SELECT fkey FROM main.files ORDER BY 1").fetchall()
        assert [fkey for (fkey,) in rows] == SEEN
    look(*stores)


@pytest.mark.parametrize("own", [PLACES[1]], indirect=True, ids=str)
def test_statements_that_come_again(own: CatalogStore) -> None:
    """Each rule has plans of its own, more statements than it keeps plans of; with commits too."""
    theirs = LimitedStore(own, MINE.replace("mine", "theirs"))
    seen = {"mine": {*SEEN}, "theirs": {key.replace("mine", "theirs") for key in SEEN}}
    statements = [
        f"SELECT fkey FROM {table} WHERE {condition} > -{number}"
        for table in ("metaocean", "main.every_file", "main.files")
        for condition in ("size", "CAST(size AS INT)")
        for number in range(1, 5)
    ]
    assert len(statements) > SelectLimited.most_plans
    stores = {"mine": LimitedStore(own, MINE), "theirs": theirs}
    for commit in range(2):
        for _ in range(3):
            for statement, (name, store) in itertools.product(statements, stores.items()):
                for _ in range(3):
                    assert {*fkeys(store, statement)} == seen[name]
        with stores["mine"].reading() as snapshot:
            assert isinstance(snapshot._cursor, SelectLimited)
            assert any(snapshot._cursor._plans.values())
        put(own, f"mine/{commit}", f"theirs/{commit}")
        for name, fkeys_seen in seen.items():
            fkeys_seen |= {f"c1:d1:{name}/{commit}/{each}" for each in (0, 1, "shared")}


def test_no_rule_is_no_rows(whole: CatalogStore) -> None:
    """And a rule that fails shows none either."""
    assert fkeys(LimitedStore(whole, "false"), "SELECT fkey FROM metaocean") == []
    broken = LimitedStore(whole, "CAST(metaocean.filename AS INT) = 1")
    with pytest.raises((CollectionFails, duckdb.ConversionException)):
        fkeys(broken, "SELECT fkey FROM metaocean")


@pytest.mark.parametrize(
    "condition",
    ["sum(metaocean.size) > 3", "rank() OVER () = 1", "metaocean.filename + 1 = 2",
     "metaocean.nothing = 1", "TRY(rank() OVER () = 1)", "metaocean.size >"],
)  # fmt: skip
def test_a_condition_that_makes_no_plan_is_no_damage(whole: CatalogStore, condition: str) -> None:
    """It is said of the rule, without the rule or a path."""
    with pytest.raises(CollectionFails) as said:
        fkeys(LimitedStore(whole, condition), "SELECT fkey FROM metaocean")
    assert condition not in str(said.value)
    assert str(whole.location.metadata) not in str(said.value)


@pytest.mark.wide
def test_closing_and_asking_again(own: CatalogStore) -> None:
    """Closed, it opens again."""
    limited = LimitedStore(own, MINE)
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
    limited.close()
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
