"""Open and Restricted tags are columns of metaocean, as published clients ask for them."""

from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import SqlError
from catalog.lake.catalog import Catalog
from catalog.limited_store import LimitedStore
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families, tags
from catalog.tags.tag_rules import OWN_FAMILY
from query.run.run_sql import run_sql
from tests.query.catalogs import drawn

TAGGED = 5


@pytest.fixture(scope="module", params=["stored", "in memory"])
def tagged(
    request: pytest.FixtureRequest, catalogued: Path, tmp_path_factory: pytest.TempPathFactory
) -> CatalogStore:
    """A catalog in which the first files by name have an Open and a Restricted tag."""
    folder = tmp_path_factory.mktemp("open")
    store = drawn(catalogued, folder)
    tags.add_tag(store, "recallme", "text", "Open")
    tags.add_tag(store, "u2-source", "text", "Restricted", ["a", "b"])
    tags.add_tag(store, "note", "text", "Characteristics")
    result = run_sql(
        store, f"select fkey from metaocean order by filename fetch first {TAGGED} rows only"
    )
    rows = result.rows.append_column("recallme", pa.array(["true"] * TAGGED))
    rows = rows.append_column("u2-source", pa.array(["a", "b", "a", "b", "a"]))
    columns = {"recallme": "VARCHAR", "u2-source": "VARCHAR"}
    families.write(store, OWN_FAMILY, columns, rows)
    if request.param == "stored":
        return store
    return CatalogStore(
        CatalogLocation.in_folder(folder), memory_limit="1GB", snapshot_memory_mb=500
    )


def rows_of(store: Catalog, statement: str) -> list[tuple[object, ...]]:
    """What a statement gives."""
    table = run_sql(store, statement).rows
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# The tape scripts' own words: lstag.sh, recallTagged.sh, and a policy's filter.
LISTED = (
    "select path, filename, size, state, collection, recallMe from metaocean "
    "where path like 'a2d2/%' and filename like '%'"
)
RECALLED = (
    "select path, filename from metaocean where collection in (select collection from metaocean) "
    "or recallMe='true' and state='resdnt'"
)


def test_the_tape_scripts_statements(tagged: CatalogStore) -> None:
    """Every file with its tag, or none; files by their tag."""
    listed = rows_of(tagged, LISTED)
    assert len(listed) == rows_of(tagged, "select count(*) from metaocean")[0][0]
    assert sorted(str(row[5]) for row in listed if row[5] is not None) == ["true"] * TAGGED
    assert len(rows_of(tagged, RECALLED)) == TAGGED


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("select count(*) from metaocean where u2-source = 'a'", 3),
        ("select count(*) from metaocean m where m.recallMe = 'true' and m.u2-source = 'b'", 2),
        ("select count(*) from bluadmin.metaocean where RECALLME like 'tr%'", TAGGED),
        (("select count(*) from metaocean mo left join t_car c on c.fkey = mo.fkey "
         "where mo.recallme = 'true'"), TAGGED),
        (("select count(*) from metaocean a, metaocean b where a.fkey = b.fkey "
         "and a.recallme = 'true' and b.u2-source = 'a'"), 3),
        (("select count(*) from metaocean where fkey in "
         "(select fkey from metaocean where recallme = 'true')"), TAGGED),
        (("with tagged as (select fkey from metaocean where recallme = 'true') "
         "select count(*) from tagged"), TAGGED),
        ("select count(*) from (select recallme from metaocean group by recallme) x", 2),
        (("select count(*) from metaocean m, metaocean_view v where m.fkey = v.fkey "
         "and recallme = 'true'"), TAGGED),
        (("select count(*) from metaocean m where exists (select 1 from t_recallme t "
         "where t.fkey = m.fkey and m.recallme = t.value)"), TAGGED),
    ],
)  # fmt: skip
def test_wherever_metaocean_stands(tagged: CatalogStore, statement: str, number: int) -> None:
    """With and without an alias, in joins, subqueries and WITH; a view's own tag stays its own."""
    assert rows_of(tagged, statement) == [(number,)]


def test_what_stays_as_it_was(tagged: CatalogStore) -> None:
    """A Characteristics tag is no column of metaocean, nor one that is not there; nor of a star."""
    for statement in ("select note from metaocean", "select car from metaocean",
                      "select filename from metaocean where recallmenot = '1'",
                      "with metaocean as (select fkey from t_car) select recallme from metaocean",
                      "select recallme from t_car"):  # fmt: skip
        with pytest.raises(SqlError, match="SQL0206N"):
            run_sql(tagged, statement)
    names = run_sql(tagged, "select * from metaocean").rows.column_names
    assert "recallme" not in names


def test_in_a_limited_catalog(tagged: CatalogStore) -> None:
    """Those of the rows that may be seen."""
    limited = LimitedStore(tagged, "metaocean.filetype = 'png'")
    seen = rows_of(limited, "select count(*) from metaocean where recallme = 'true'")
    png = rows_of(tagged, "select count(*) from metaocean where recallme = 'true' "
                          "and filetype = 'png'")  # fmt: skip
    assert seen == png
    assert 0 < int(str(png[0][0])) < TAGGED
    limited.close()
