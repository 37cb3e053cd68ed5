"""metaocean's column `collection`: the first collection whose rule holds, wherever it is named."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from catalog.errors import InvalidInput
from catalog.limited_store import LimitedStore
from catalog.maintenance.export import export_parquet
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.frames.one_frame import find_frame
from query.frames.select_frames import select_frames
from query.question.collection_rule import check_rule, collection_column, rows_of
from query.question.question import Question
from query.run.run_sql import run_sql
from tests.api.servers import wait_until
from tests.query.catalogs import drawn

NAMED = (
    ("front", "filename like '%frontcenter%'"),
    ("numbers", "int(filename) = 7 or int(filename) = 8"),  # fails for every file
    ("broken", "no such rule"),
    ("png", "filetype = 'png' and filename like '%label%'"),
    ("pngs", "filetype = 'png' and filename like '%label%'"),
    ("it's", "filetype = 'json'"),
)
IS = (
    "case when filename like '%frontcenter%' then 'front' "
    "when filetype = 'png' and filename like '%label%' then 'png' "
    "when filetype = 'json' then 'it''s' end"
)
"""The same in SQL."""


@pytest.fixture(scope="module", params=["stored", "in memory"])
def store(
    request: pytest.FixtureRequest, catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> CatalogStore:
    """A catalog with these collections."""
    folder = tmp_path_factory.mktemp("collections")
    drawn(catalogued, folder)
    opened = CatalogStore(
        CatalogLocation.in_folder(folder), memory_limit="1GB",
        snapshot_memory_mb=500 if request.param == "in memory" else 0,
        collection_column=lambda: collection_column(NAMED),
    )  # fmt: skip
    if request.param == "in memory":
        wait_until(lambda: opened.snapshot() > 0 and opened.memory.tried)
    return opened


@pytest.mark.parametrize(
    "statement",
    [
        "select fkey, {} as c from metaocean",
        "select fkey, {} as c from metaocean_view",
        "select m.fkey, {} as c from metaocean m join t_front f on f.fkey = m.fkey",
        "select m.fkey, {} as c from metaocean m left join t_car c on c.fkey = m.fkey",
        "select m.fkey, {} as c from metaocean m full join (select 1 as one from t_car) c on 1 = 2",
        "select m.fkey, {} as c from (metaocean m left join t_car c on c.fkey = m.fkey)",
        "select fkey, {} as c from bluadmin.metaocean where {} = 'png'",
        "select fkey, {} as c from metaocean where {} in ('front', 'it''s') order by {}, fkey",
        "select fkey, {} as c from metaocean_view where {} is null",
        (
            "select fkey, '' as c from metaocean where fkey in "
            "(select fkey from metaocean where {} = 'png') and filetype = 'png'"
        ),
        "with m as (select fkey, {} as c from metaocean) select fkey, c from m where c <> 'png'",
        "with metaocean as (select fkey, {} as c from metaocean) select fkey, c from metaocean",
        "select max(fkey) as fkey, {} as c from metaocean group by {}",
    ],
)
def test_it_is_the_rule_written_out(store: CatalogStore, statement: str) -> None:
    """In every kind of statement its rows are those of the rules themselves; none is empty."""
    column, upper, expected = (
        sorted(
            run_sql(store, statement.replace("{}", text)).rows.select(["fkey", "c"]).to_pylist(),
            key=lambda row: str(row["fkey"]),
        )
        for text in ("collection", "COLLECTION", IS)
    )
    assert column == upper == expected
    assert column


def test_two_views_of_one_file(store: CatalogStore) -> None:
    """Named by its table, where several have it."""
    joined = (
        "select v.fkey, m.collection as c, v.collection as d from metaocean_view v, metaocean m, "
        "t_car t where m.fkey = v.fkey and t.fkey = m.fkey and v.collection <> 'png'"
    )
    rows = run_sql(store, joined).rows.to_pylist()
    assert rows
    assert {(row["c"], row["d"]) for row in rows} == {("front", "front")}


def test_a_star_has_it(store: CatalogStore) -> None:
    """Among metaocean's other columns, in their order; a table's own column of that name stays."""
    for view in ("metaocean", "metaocean_view"):
        table = run_sql(store, f"select * from {view}").rows
        values = set(table["collection"].to_pylist())
        assert values == {"front", "png", "it's", None}
    own = "with metaocean as (select 'mine' as collection from t_car) select * from metaocean"
    assert set(run_sql(store, own).rows["collection"].to_pylist()) == {"mine"}


@pytest.mark.parametrize(
    "where",
    [
        "collection = 'front'",
        "fkey in (select fkey from metaocean where collection = 'front')",
        "collection in ('front', 'none')",
    ],
)
def test_conditions_on_frames(store: CatalogStore, where: str) -> None:
    """A question's own condition, and one that asks the views, choose the frames of the rule."""
    expected = select_frames(store, Question(where="filename like '%frontcenter%'"))
    frames = select_frames(store, Question(where=where))
    assert 0 < len(frames) < len(select_frames(store, Question()))
    assert frames.frames["fkey"].to_pylist() == expected.frames["fkey"].to_pylist()
    shown = find_frame(store, frames.frames["fkey"][0].as_py())
    assert shown.file["collection"] == "front"


def test_who_sees_some_collections_learns_of_no_other(store: CatalogStore) -> None:
    """The first of their own; names of others appear nowhere, nor do rows."""
    own = (("pngs", "filetype = 'png'"), ("front", "filename like '%frontcenter%json'"))
    condition = rows_of([rule for _, rule in own])
    limited = LimitedStore(store, condition, collection_column(own))
    for statement in (
        "select collection, count(*) as n from metaocean group by collection order by 1",
        "select collection, count(*) as n from metaocean_view group by collection order by 1",
    ):
        names = run_sql(limited, statement).rows["collection"].to_pylist()
        assert names == ["front", "pngs"]
    others = "select count(*) as n from metaocean where collection in ('png', 'it''s', 'numbers')"
    assert run_sql(limited, others).rows["n"].to_pylist() == [0]
    with limited.reading() as snapshot:
        rows = snapshot.table(f"SELECT DISTINCT collection FROM ({snapshot.relation.sql})")
    assert rows["collection"].to_pylist() == ["pngs"]
    limited.close()


def test_an_export_has_it(store: CatalogStore, tmp_path: Path) -> None:
    """As SQL shows it."""
    export_parquet(store, tmp_path / "out")
    exported = pq.read_table(tmp_path / "out").select(["fkey", "collection"]).sort_by("fkey")
    shown = run_sql(store, "select fkey, collection from metaocean order by fkey").rows
    assert exported.to_pylist() == shown.to_pylist()


def test_a_rule_cannot_name_it() -> None:
    """Rules decide it."""
    with pytest.raises(InvalidInput, match="it names collection, which rules decide"):
        check_rule("collection = 'a'")
