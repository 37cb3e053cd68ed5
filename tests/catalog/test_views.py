"""The views have Spectrum Discover's shape."""

from pathlib import Path

from catalog.frames.frames import register
from catalog.lake.schema import POSITION_TAGS
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from tests.catalog.some_rows import file, frame, open_store, source_names

METAOCEAN = """
    datasource operation ingesttype revision site platform cluster inode owner group permissions
    fileset uid gid path filename filetype recordversion state migloc mtime atime ctime inserttime
    updatedtime requesttime scangen tier size qpart fkey collection temperature duplicate
    sizeconsumed
"""
"""As Spectrum Discover's, without the site's tag1 to tag16."""

BEFORE_TAGS = """
    path filename filetype datasource owner group revision site platform cluster inode permissions
    fileset uid gid recordversion state migloc mtime atime ctime tier size fkey collection
    temperature duplicate sizeconsumed nodename filespace mgmtclass
"""


def columns(store: CatalogStore, view: str) -> list[tuple[str, str]]:
    with store.reading() as cursor:
        return [(name, kind) for name, kind, *_ in cursor.execute(f"DESCRIBE {view}").fetchall()]


def test_metaocean_has_the_product_s_columns(store: CatalogStore) -> None:
    """Names and order as a client of the product sees them, by both spellings of the name."""
    names = [name for name, _ in columns(store, "metaocean")]
    assert names == METAOCEAN.split()
    assert columns(store, "BLUADMIN.METAOCEAN") == columns(store, "metaocean")
    kinds = dict(columns(store, "metaocean"))
    assert (kinds["inode"], kinds["qpart"], kinds["mtime"]) == ("BIGINT", "SMALLINT", "TIMESTAMP")


def test_metaocean_view_has_every_tag_as_text(store: CatalogStore) -> None:
    """The documented columns in their order, then every tag as VARCHAR."""
    add_class_tags(store, ["car", "sky"])
    columns_of_view = columns(store, "metaocean_view")
    before, tags = (
        columns_of_view[: len(BEFORE_TAGS.split())],
        columns_of_view[len(BEFORE_TAGS.split()) :],
    )
    assert [name for name, _ in before] == BEFORE_TAGS.split()
    assert [name for name, _ in tags[:9]] == [*POSITION_TAGS, "unknown_pixels", "car", "sky"]
    assert {kind for _, kind in tags} == {"VARCHAR"}


def test_every_tag_has_its_own_table(store: CatalogStore) -> None:
    """t_<tag> has fkey and value (text) for every tag of metaocean_view, and no other."""
    add_class_tags(store, ["car"])
    tags = [name for name, _ in columns(store, "metaocean_view")[len(BEFORE_TAGS.split()) :]]
    with store.reading() as cursor:
        views = cursor.execute(
            "SELECT view_name FROM duckdb_views() WHERE schema_name = 'bluadmin' AND view_name LIKE 't\\_%' ESCAPE '\\'"  # noqa: E501
        ).fetchall()
    assert sorted(view for (view,) in views) == sorted(f"t_{tag}" for tag in tags)
    for tag in tags:
        assert columns(store, f"t_{tag}") == [("fkey", "VARCHAR"), ("value", "VARCHAR")]


def test_files_without_tags_have_no_row_in_a_tag_s_table(store: CatalogStore) -> None:
    """A label's row is in metaocean_view with NULL tags and in no t_ table."""
    add_class_tags(store, ["car"])
    with store.writing("r") as connection:
        register(
            connection, source_names(), [file("image"), file("label")], [frame("image", car=0)], 1
        )
    with store.reading() as cursor:
        wide = cursor.execute("SELECT filename, car, nodename FROM metaocean_view ORDER BY 1")
        assert wide.fetchall() == [("image", "0", None), ("label", None, None)]
        assert cursor.execute("SELECT value FROM t_car").fetchall() == [("0",)]


def test_views_of_another_release_are_renewed(store: CatalogStore, folder: Path) -> None:
    """The first write of this release makes them again, in one commit, once."""
    before = columns(store, "metaocean_view"), columns(store, "t_front")
    with store.writing("views as another release defines them") as connection:
        connection.execute("CREATE OR REPLACE VIEW lake.bluadmin.metaocean_view AS SELECT 1 AS a")
        connection.execute("COMMENT ON VIEW lake.bluadmin.metaocean_view IS 'another'")
        connection.execute("CREATE OR REPLACE VIEW lake.bluadmin.t_front AS SELECT 2 AS b")
    snapshot = store.snapshot()
    for written in (2, 3):
        opened = open_store(folder)
        with opened.writing("a row") as connection:
            register(connection, source_names(), [file(f"f{written}")], [], 1)
        assert (columns(opened, "metaocean_view"), columns(opened, "t_front")) == before
        assert opened.snapshot() == snapshot + written
