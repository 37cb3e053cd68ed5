"""A tag removed: what stays of its family, and what every reader then sees."""

from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import InUse, NotFound
from catalog.maintenance.check import check
from catalog.maintenance.snapshot_diff import diff
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families, tags
from catalog.values import make_fkey
from tests.ingest.scene_folders import Home, frame_key, make_tree
from tests.templates import Templates

WIDE = "SELECT * FROM metaocean_view ORDER BY fkey"


def make_two_tags(folder: Path) -> None:
    """A home with frames 1 to 3, and two tags of one family on the first two."""
    home = Home.at(folder / "home")
    home.scan(home.add(make_tree(folder / "tree", frames=3)))
    keys = [make_fkey("host1", "a2d2", frame_key("camera", number)) for number in (1, 2)]
    rows = pa.table({"fkey": keys, "speed": [1.0, None], "gear": [3, 4]})
    families.write(home.store, "bus", {"speed": "DOUBLE", "gear": "BIGINT"}, rows)
    home.close()


@pytest.fixture
def home(templates: Templates, tmp_path: Path) -> Home:
    """A copy of that home."""
    templates.copy(make_two_tags, tmp_path)
    return Home.at(tmp_path / "home")


@pytest.mark.wide
def test_the_others_of_its_family_stay(home: Home) -> None:
    """With their values; the catalog is whole, and the snapshot before has the tag."""
    before = home.store.snapshot()
    gears = home.rows("SELECT * FROM t_gear ORDER BY fkey")
    tags.set_kind(home.store, "speed", "Open")
    assert tags.drop_tag(home.store, "speed") == 1
    assert home.rows("SELECT * FROM t_gear ORDER BY fkey") == gears
    (family,) = families.families(home.store)
    assert (family.columns, family.rows) == ({"gear": "BIGINT"}, 2)
    assert check(home.store, {}) == []
    with home.store.reading(before) as cursor:
        assert cursor.execute("SELECT value FROM t_speed").fetchall() == [("1.0",)]
    difference = diff(home.store, before, home.store.snapshot())
    assert (difference.tags_added, difference.tags_removed) == ((), ("speed",))
    assert tags.drop_tag(home.store, "gear") == 2
    assert families.families(home.store) == []
    assert check(home.store, {}) == []
    with pytest.raises(NotFound, match="no tag named 'gear'"):
        tags.drop_tag(home.store, "gear")


def test_the_columns_keep_their_order(home: Home) -> None:
    """The view that is written is the one that a later reader would write."""
    families.write(home.store, "light", {"light": "VARCHAR"})
    families.write(home.store, "bus", {"brake": "DOUBLE"})
    assert check(home.store, {}) == []
    with home.store.reading() as cursor:
        columns = [column[0] for column in cursor.execute(f"{WIDE} LIMIT 0").description or ()]
    assert columns[-4:] == ["speed", "gear", "brake", "light"]
    tags.drop_tag(home.store, "gear")
    assert check(home.store, {}) == []


def test_one_of_that_name_begins_anew(home: Home) -> None:
    """Of another type, without the values and the kind that the first had."""
    tags.set_kind(home.store, "gear", "Restricted", ["3", "4"])
    tags.drop_tag(home.store, "gear")
    assert tags.add_tag(home.store, "gear", "text", family="bus").kind == "Characteristics"
    assert home.rows("SELECT gear, speed FROM lake.main.tags_bus ORDER BY speed") == [
        (None, 1.0), (None, None)
    ]  # fmt: skip


def test_a_snapshot_in_memory_follows(home: Home, tmp_path: Path) -> None:
    """Who holds the newest one in memory sees what is on disk."""
    location = CatalogLocation.in_folder(tmp_path / "home" / "catalog")
    assert location == home.store.location
    hot = CatalogStore(location, threads=1, snapshot_memory_mb=100)
    hot.snapshot()
    assert hot.memory is not None
    assert hot.memory.wait(300)
    tags.drop_tag(home.store, "speed")
    newest = hot.snapshot()
    assert hot.memory.wait(300)
    with hot.reading() as cursor, home.store.reading() as plain:
        assert cursor.execute(WIDE).fetchall() == plain.execute(WIDE).fetchall()
        assert "speed" not in [column[0] for column in cursor.execute(WIDE).description or ()]
    assert newest == home.store.snapshot()


def test_what_scans_give_stays(home: Home) -> None:
    """Classes and what every frame has."""
    for tag in ("scene", "camera"):
        with pytest.raises(InUse, match=f"tag '{tag}' cannot be removed: scans give it"):
            tags.drop_tag(home.store, tag)
    tags.add_class_tags(home.store, ["bicycle"])
    with pytest.raises(InUse, match="a class's pixels"):
        tags.drop_tag(home.store, "bicycle")
