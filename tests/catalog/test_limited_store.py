"""A store of some rows only, attacked beneath the query layer's checks, in DuckDB's own SQL."""

from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from catalog.errors import CollectionFails, NotFound, SqlError
from catalog.frames.frames import register, remove
from catalog.lake.catalog import Catalog
from catalog.limited_store import LimitedStore
from catalog.store import CatalogStore
from catalog.tags.model_scores import write_scores
from tests.catalog.backends import EACH, new_location, open_at
from tests.catalog.some_rows import file, source_names, two_frames
from tests.ingest.s3_server import moto

MINE = "metaocean.fkey LIKE '%:mine/%'"
LIMITS = {"memory_limit": "500MB", "threads": "1"}


def put(store: CatalogStore, *prefixes: str) -> int:
    """Files and frames below each prefix, and a commit's number."""
    with store.writing("rows") as connection:
        for prefix in prefixes:
            files, frames = two_frames(prefix, f"{prefix}/shared")
            register(connection, source_names(), files, frames, 1)
    return store.snapshot()


@pytest.fixture(params=[EACH[0], EACH[-1]])
def whole(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> CatalogStore:
    """A catalog with rows that may be seen and rows that may not."""
    if request.param.endswith("s3"):
        moto().sign_in(monkeypatch, tmp_path)
    store = open_at(new_location(request.param, tmp_path))
    put(store, "mine", "theirs")
    return store


@pytest.fixture
def limited(whole: CatalogStore) -> LimitedStore:
    """The rows that may be seen."""
    return LimitedStore(whole, MINE, LIMITS)


def fkeys(store: Catalog, statement: str, at: int | None = None) -> list[str]:
    """The first column of a statement's rows, sorted."""
    with store.reading(at) as cursor:
        return sorted(str(row[0]) for row in cursor.execute(statement).fetchall())


SEEN = ["c1:d1:mine/0", "c1:d1:mine/1", "c1:d1:mine/shared"]


def test_every_table_and_view_holds_those_rows(whole: CatalogStore, limited: LimitedStore) -> None:
    """All that has a column fkey, whatever it is called, of every family; nothing else is left.

    Each of them has rows of both, and of a folder whose name begins like the one that is seen.
    """
    prefixes = ("mine", "theirs", "mine2")
    with whole.writing("a row in each table") as connection:
        for prefix in prefixes:
            files, frames = two_frames(prefix, f"{prefix}/shared")
            full = [
                replace(one, lidar=one.image, camera_json=one.image, label_digest="d")
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
    write_scores(whole, "late", "aa", scores, pa.table(of_cells))
    listed = (
        "SELECT DISTINCT schema_name || '.' || table_name FROM duckdb_columns() "
        "WHERE database_name = 'lake' AND column_name = 'fkey'"
    )
    tables = fkeys(whole, listed)
    assert fkeys(limited, listed) == tables
    assert {"main.tags_scores_late", "bluadmin.t_late_uncertainty"} < {*tables}
    assert any("confusion" in table for table in tables)
    for table in tables:
        keys = fkeys(limited, f"SELECT fkey FROM lake.{table}")
        everything = fkeys(whole, f"SELECT fkey FROM lake.{table}")
        assert keys == [key for key in everything if ":mine/" in key], table
        for prefix in prefixes:
            assert any(f":{prefix}/" in key for key in everything), table


FORMS = [
    "SELECT fkey FROM lake.main.files",
    "SELECT fkey FROM main.files",
    'SELECT fkey FROM "LAKE"."MAIN"."FILES"',
    "SELECT fkey FROM metaocean WHERE true OR fkey LIKE '%'",
    "SELECT fkey FROM (SELECT * FROM lake.main.files) AS files",
    "SELECT (SELECT min(fkey) FROM lake.main.files WHERE fkey = f.fkey) FROM metaocean AS f",
    "WITH files AS (SELECT * FROM lake.main.files) SELECT fkey FROM files",
    "WITH stored AS (SELECT * FROM metaocean) SELECT fkey FROM stored",
    "WITH metaocean AS (FROM lake.bluadmin.metaocean) SELECT fkey FROM metaocean",
    "SELECT f.fkey FROM lake.main.files AS f, LATERAL (SELECT 1)",
    "SELECT fkey FROM lake.main.files UNION SELECT fkey FROM lake.main.class_pixels",
    "SELECT fkey FROM lake.main.files QUALIFY row_number() OVER (ORDER BY fkey) < 100",
    "SELECT unnest(list(fkey)) FROM lake.main.files",
    "SELECT fkey FROM lake.main.files TABLESAMPLE 100%",
    "SELECT DISTINCT fkey FROM lake.main.files RIGHT JOIN (SELECT 1 AS one) ON true",
]


def test_no_form_of_a_statement_sees_more(limited: LimitedStore) -> None:
    """Qualified, shadowed by names in WITH, nested, set operations."""
    for statement in FORMS:
        assert fkeys(limited, statement) == SEEN, statement


REFUSED = [
    "SELECT * FROM stored.main.files",
    "SELECT * FROM stored.files",
    'SELECT * FROM "Stored"."main"."files"',
    "SELECT * FROM stored.bluadmin.metaocean",
    "WITH files AS (SELECT * FROM stored.main.files) SELECT * FROM files",
    "SELECT (SELECT count(*) FROM stored.main.files)",
    "SELECT * FROM metaocean WHERE EXISTS (FROM stored.main.files)",
    "SELECT * FROM __ducklake_metadata_stored.main.ducklake_data_file",
    "SELECT * FROM __ducklake_metadata_stored.ducklake_file_column_stats",
    "SELECT * FROM stored.snapshots()",
    "SELECT * FROM stored.main.table_changes('files', 1, 3)",
    "SELECT * FROM stored.main.current_snapshot()",
    "SELECT * FROM stored.current_snapshot()",
    "SELECT stored.main.anything(1)",
    "SELECT fkey FROM lake.main.files AT (VERSION => 1)",
    "SELECT * FROM ducklake_list_files('stored', 'files')",
    "SELECT * FROM duckdb_tables()",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM duckdb_memory()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM system.information_schema.columns",
    "SELECT * FROM query('SELECT * FROM stored.main.files')",
    "SELECT * FROM query_table('stored.main.files')",
    "SELECT * FROM read_parquet('**/*.parquet')",
    "SELECT * FROM 'data/main/files/x.parquet'",
    "SELECT * FROM glob('*')",
    "SELECT * FROM pragma_table_info('stored.main.files')",
    "PRAGMA show_databases",
    "SHOW ALL TABLES",
    "DESCRIBE stored.main.files",
    "SUMMARIZE stored.main.files",
    "SUMMARIZE lake.main.files",
    "FROM (SUMMARIZE stored.main.files)",
    "FROM (DESCRIBE stored.main.files)",
    "WITH a AS (SUMMARIZE stored.main.files) FROM a",
    "EXPLAIN ANALYZE SELECT * FROM lake.main.files",
    "USE stored",
    "ATTACH ':memory:' AS x",
    "DETACH lake",
    "CREATE OR REPLACE VIEW lake.main.files AS SELECT * FROM stored.main.files",
    "CREATE TEMP VIEW v AS SELECT * FROM stored.main.files",
    "COPY (SELECT * FROM stored.main.files) TO 'x'",
    "SELECT 1; SELECT * FROM stored.main.files",
    "SET search_path = 'stored'",
    "EXECUTE p",
    "FROM stored.main.files SELECT fkey",
    "TABLE stored.main.files",
    "PIVOT stored.main.files ON owner",
    "VALUES ((SELECT count(*) FROM stored.main.files))",
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
    for table in ("lake.main.files", "metaocean", "lake.main.class_pixels", "t_front"):
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
    whole: CatalogStore, limited: LimitedStore
) -> None:
    """In DuckDB's plan, whatever its optimizer thinks of conditions that can fail."""
    lake = limited._limited(whole.snapshot(), {})
    for table in ("lake.main.files", "lake.main.class_pixels", "lake.bluadmin.t_front"):
        rows = lake.connection.execute(
            f"EXPLAIN SELECT count(*) FROM {table} WHERE fkey LIKE '%x_y%'"
        ).fetchall()
        plan = str(rows[0][1])
        limit = plan.index("STREAMING_LIMIT")
        assert plan.index("x_y") < limit
        assert "x_y" not in plan[limit:]
    lake.close()


def test_there_is_nothing_to_write_with(limited: LimitedStore) -> None:
    """It offers what readers need: no writing, no locks, none of DuckLake's own tables."""
    names = {name for name in [*dir(limited), *vars(limited)] if not name.startswith("_")}
    assert names == {
        "close", "condition", "quiesced", "reading", "reading_files", "reading_frames",
        "snapshot",
    }  # fmt: skip


def test_no_plan_is_shown(whole: CatalogStore, limited: LimitedStore) -> None:
    """It tells of rows that may not be seen: of how many there are, and of their values."""
    statement = "SELECT count(*) FROM lake.main.files"
    for reading in (limited.reading, limited.reading_files):
        with reading() as snapshot:
            assert snapshot.plan(statement) is None
    with whole.reading_files() as snapshot:
        assert snapshot.plan(statement) is not None


def test_commits_are_seen_and_old_snapshots_are_limited(
    whole: CatalogStore, limited: LimitedStore
) -> None:
    """New rows, new tags and removed rows at once; each snapshot as it was, within the rule."""
    old = whole.snapshot()
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
    newer = put(whole, "mine/new", "theirs/new")
    more = fkeys(limited, "SELECT fkey FROM metaocean")
    assert len(more) == 6
    assert all("mine" in key for key in more)
    assert limited.snapshot() == newer
    with whole.writing("remove") as connection:
        remove(connection, source_names(), ["mine/0", "theirs/0"])
    assert "c1:d1:mine/0" not in fkeys(limited, "SELECT fkey FROM metaocean")
    assert fkeys(limited, "SELECT fkey FROM metaocean", old) == SEEN
    assert fkeys(limited, "SELECT fkey FROM metaocean", newer) == more
    for number in (0, -1, 999, 2**63):
        with pytest.raises(NotFound, match="snapshot"):
            fkeys(limited, "SELECT 1", number)


def test_no_rule_is_no_rows(whole: CatalogStore) -> None:
    """And a rule that fails shows none either."""
    assert fkeys(LimitedStore(whole, "false", LIMITS), "SELECT fkey FROM metaocean") == []
    broken = LimitedStore(whole, "CAST(metaocean.filename AS INT) = 1", LIMITS)
    with pytest.raises(duckdb.ConversionException):
        fkeys(broken, "SELECT fkey FROM metaocean")


@pytest.mark.parametrize(
    "condition",
    ["sum(metaocean.size) > 3", "rank() OVER () = 1", "metaocean.filename + 1 = 2",
     "metaocean.nothing = 1", "TRY(rank() OVER () = 1)", "metaocean.size >"],
)  # fmt: skip
def test_a_condition_that_makes_no_plan_is_no_damage(whole: CatalogStore, condition: str) -> None:
    """It is said of the rule, without the rule or a path."""
    with pytest.raises(CollectionFails) as said:
        fkeys(LimitedStore(whole, condition, LIMITS), "SELECT fkey FROM metaocean")
    assert condition not in str(said.value)
    assert str(whole.location.metadata) not in str(said.value)


def test_closing_and_asking_again(limited: LimitedStore) -> None:
    """Closed, it opens again."""
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
    limited.close()
    assert fkeys(limited, "SELECT fkey FROM metaocean") == SEEN
