"""Writes: all or nothing, and what register and remove keep true."""

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.errors import InvalidInput
from catalog.frames.catalog_info import info
from catalog.frames.frames import register, remove, remove_source_files
from catalog.lake import views as discover_views
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from catalog.values import key_of, make_fkey
from query.statistics.class_statistics import class_report
from tests.catalog.some_rows import file, frame, open_store, source_names


def fkeys(store: CatalogStore, table: str = "metaocean") -> list[str]:
    with store.reading() as cursor:
        rows = cursor.execute(f"SELECT fkey FROM {table} ORDER BY fkey").fetchall()
    return [key_of(row[0], "c1", "d1") for row in rows]


def test_an_exception_leaves_nothing(store: CatalogStore) -> None:
    """A block that raises undoes tables, columns and views, keeps no snapshot, frees the lock."""
    before = store.snapshot()

    def write_and_fail() -> None:
        with store.writing("fails") as connection:
            register(connection, source_names(), [file("a")], [frame("a")], 1)
            connection.execute("ALTER TABLE class_pixels ADD COLUMN car INTEGER")
            discover_views.create(connection)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert store.snapshot() == before
    assert fkeys(store) == []
    assert info(store).tags == 16
    with store.writing("works") as connection:
        register(connection, source_names(), [file("a")], [], 1)
    assert fkeys(store) == ["a"]


def test_author_and_reason_are_kept(store: CatalogStore) -> None:
    """Each snapshot says who made it and what for, quotes included."""
    with store.writing('it\'s; the "reason"', author="Zoë") as connection:
        register(connection, source_names(), [file("a")], [], 1)
    with store.reading() as cursor:
        rows = cursor.execute(
            "SELECT author, commit_message FROM lake.snapshots() ORDER BY snapshot_id"
        ).fetchall()
    assert rows[1:] == [("framesift", "catalog created"), ("Zoë", 'it\'s; the "reason"')]


def test_register_replaces_rows_and_tags(store: CatalogStore) -> None:
    """A key that comes again has one row; a frame that lost its label loses its tags."""
    add_class_tags(store, ["car", "sky"])
    for scan, frames in ((1, [frame("a", car=2, sky=1)]), (2, [frame("a", car=5, sky=0)]), (3, [])):
        with store.writing("r") as connection:
            register(connection, source_names(), [file("a"), file("b")], frames, scan)
        assert fkeys(store) == ["a", "b"]
        with store.reading() as cursor:
            values = cursor.execute("SELECT value FROM t_car").fetchall()
        assert values == [(str(f.class_pixels["car"]),) for f in frames]


def test_register_refuses_a_key_given_twice(store: CatalogStore) -> None:
    """Fkey stays unique: a listing with a key twice is refused whole."""
    with pytest.raises(InvalidInput, match="listed twice"), store.writing("r") as connection:
        register(connection, source_names(), [file("a"), file("b"), file("a")], [], 1)
    with pytest.raises(InvalidInput, match="2,048"), store.writing("r") as connection:
        register(connection, source_names(), [file("k" * 2048)], [], 1)
    assert fkeys(store) == []


@pytest.mark.wide
def test_removing_files_takes_the_tags_of_every_family(store: CatalogStore) -> None:
    """Removed files go with their tags, late families included; other sources stay."""
    with store.writing("r") as connection:
        register(connection, source_names(), [file("a"), file("b")], [frame("a"), frame("b")], 1)
        register(connection, source_names("d2"), [file("a")], [frame("a")], 1)
        connection.execute("CREATE TABLE tags_scores (fkey VARCHAR, loss DOUBLE)")
        connection.execute("INSERT INTO tags_scores SELECT fkey, 0.5 FROM files")
        discover_views.create(connection)
        remove(connection, source_names(), ["a", "never there"])
    expected = ["b", "c1:d2:a"]
    for table in ("metaocean", "t_front", "t_scene", "t_loss", "metaocean_view"):
        assert fkeys(store, table) == expected
    with store.writing("r") as connection:
        assert remove_source_files(connection, source_names()) == 1
        assert remove_source_files(connection, source_names()) == 0
    assert fkeys(store) == fkeys(store, "t_loss") == ["c1:d2:a"]


def test_class_tags_are_added_once(store: CatalogStore) -> None:
    """New classes become columns and views; known ones change nothing, not even the snapshot."""
    assert add_class_tags(store, ["car", "sky"]) == ["car", "sky"]
    before = store.snapshot()
    assert add_class_tags(store, ["sky", "car"]) == []
    assert store.snapshot() == before
    assert add_class_tags(store, ["sky", "select"]) == ["select"]
    with store.reading() as cursor:
        assert cursor.execute('SELECT count(*) FROM t_select').fetchall() == [(0,)]  # fmt: skip
    assert info(store).tags == 16 + 3


@pytest.mark.wide
def test_a_store_sees_what_another_changed(store: CatalogStore, folder: Path) -> None:
    """A store that keeps its connections open writes columns that another store added."""
    other = open_store(folder)
    with store.writing("r") as connection:
        register(connection, source_names(), [file("a")], [frame("a")], 1)
    for number, store_or_other in enumerate((other, store, other, store)):
        tag = f"class_{number}"
        assert add_class_tags(other, [tag]) == [tag]
        with store_or_other.writing("r") as connection:
            register(connection, source_names(), [file("a")], [frame("a", **{tag: 5})], 1)
        assert fkeys(store, f"t_{tag}") == fkeys(other, f"t_{tag}") == ["a"]


def test_shares_of_classes(store: CatalogStore) -> None:
    """Share of all pixels, and of the frames that contain the class, over all frames."""
    names = {"car": "Car", "sky": "Sky", "truck": "Truck"}
    store.class_names = names.copy

    def shares() -> list[tuple[object, ...]]:
        keys = ("tag", "name", "frames", "pixels", "share", "share_where_present")
        return [tuple(getattr(one, key) for key in keys) for one in class_report(store).classes]

    assert shares() == []
    add_class_tags(store, list(names))
    assert shares() == [(tag, name, 0, 0, 0.0, 0.0) for tag, name in names.items()]
    frames = [frame("a", car=1, sky=3, truck=0), frame("b", car=0, sky=4, truck=0)]
    with store.writing("r") as connection:
        register(connection, source_names(), [file("a"), file("b")], frames, 1)
    assert shares() == [
        ("car", "Car", 1, 1, 1 / 8, 1 / 4),
        ("sky", "Sky", 2, 7, 7 / 8, 7 / 8),
        ("truck", "Truck", 0, 0, 0.0, 0.0),
    ]
    assert replace(info(store), snapshot=0, tags=0) == replace(info(store), files=2, frames=2, snapshot=0, tags=0)  # fmt: skip  # noqa: E501


def test_sums_do_not_overflow(store: CatalogStore) -> None:
    """Pixels of many large frames sum beyond 32 bits."""
    add_class_tags(store, ["car"])
    many = [file(str(number)) for number in range(3)]
    with store.writing("r") as connection:
        register(connection, source_names(), many, [frame(f.key, car=2**31 - 1) for f in many], 1)
    store.class_names = {"car": "Car"}.copy
    assert class_report(store).classes[0].pixels == 3 * (2**31 - 1)


def test_fkeys_keep_the_key() -> None:
    """key_of undoes make_fkey, also for keys with colons."""
    assert key_of(make_fkey("c", "d", "c:d:x:y"), "c", "d") == "c:d:x:y"
