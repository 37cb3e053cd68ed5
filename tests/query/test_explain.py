"""What a statement becomes, and what it reads, without running it."""

import os
import pwd

import pytest

from catalog.errors import NotFound, SqlError
from catalog.store import CatalogStore
from query.run.explain import explain
from tests.query.catalogs import drawn_frames, listed_files
from tests.query.test_golden import FIVE_TAGS, SHARE, STATEMENTS

FRAMES = len(drawn_frames())


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


def test_the_redbooks_join_is_one_scan_of_each_table(store: CatalogStore) -> None:
    """Six views; one scan of the class pixels and one of the files, and their rows."""
    plan = explain(store, FIVE_TAGS)
    assert {(table.name, table.rows) for table in plan.tables} == {
        ("class_pixels", FRAMES),
        ("files", len(listed_files())),
    }
    columns = {table.name: set(table.columns) for table in plan.tables}
    assert columns["class_pixels"] >= {"fkey", "car", "bicycle", "pedestrian"}
    assert columns["files"] == {"fkey", "platform", "datasource", "filename"}
    assert plan.families == ("class_pixels",)
    assert plan.estimated_rows is not None
    assert 0 <= plan.estimated_rows <= FRAMES
    assert plan.snapshot == store.snapshot()
    assert plan.sql.startswith("SELECT\n")
    assert '"main"."class_pixels"' in plan.sql
    with store.reading() as cursor:  # it is the statement that is run
        assert len(cursor.execute(plan.sql).fetchall()) == 1


@pytest.mark.parametrize(
    ("text", "tables", "estimate"),
    [
        (SHARE, ["class_pixels"], 1),
        ("select fkey from metaocean", ["files"], len(listed_files())),
        ("select scene, car from metaocean_view", ["class_pixels", "files", "tags_frame"], None),
        ("select a.fkey from t_car a right join t_sky b on a.fkey = b.fkey",
         ["class_pixels", "class_pixels"], None),
        ("values 1", [], 1),
        ("select a.fkey from metaocean a, metaocean b", ["files", "files"],
         len(listed_files()) ** 2),
    ],
)  # fmt: skip
def test_tables_and_estimates(
    store: CatalogStore, text: str, tables: list[str], estimate: int | None
) -> None:
    """Each table as often as it is read, also behind a view; the answer's size as expected."""
    plan = explain(store, text)
    assert sorted(table.name for table in plan.tables) == tables
    assert estimate is None or plan.estimated_rows == estimate


@pytest.mark.parametrize("text", STATEMENTS)
def test_every_real_statement_is_explained(store: CatalogStore, text: str) -> None:
    """And reads at least one table. Files that nobody owns would make it a plan without any."""
    text = text.replace("'root'", f"'{pwd.getpwuid(os.getuid()).pw_name}'")
    assert explain(store, text).tables


@pytest.mark.parametrize(
    "text",
    ["explain select * from metaocean", "delete from metaocean", "select * from nowhere",
     "select 1; select 2", "select * from read_csv('/etc/passwd')", "", "select " + "(" * 9_000],
)  # fmt: skip
def test_what_is_refused_is_not_explained(store: CatalogStore, text: str) -> None:
    """The same checks as before running it."""
    with pytest.raises(SqlError):
        explain(store, text)


def test_of_an_old_snapshot(store: CatalogStore) -> None:
    """The catalog as it was; a snapshot that never was is named."""
    newest = store.snapshot()
    assert explain(store, SHARE, newest).snapshot == newest
    with pytest.raises(NotFound):
        explain(store, SHARE, newest + 1000)
