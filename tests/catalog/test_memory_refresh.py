"""A snapshot in memory that is brought up to a later one is what loading that one gives."""

import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest

from catalog.frames.frames import register, remove
from catalog.maintenance.compaction import compact
from catalog.memory import refresh as wide_refresh
from catalog.memory import snapshot as memory_snapshot
from catalog.memory.interruptible import Interruptible
from catalog.memory.keeper import MemoryKeeper
from catalog.memory.refresh import ReloadNeeded
from catalog.memory.snapshot import SnapshotInMemory, SnapshotReplaced
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore, snapshot_of
from catalog.tags import families, tag_kinds
from catalog.tags.tag_rules import TagKind
from catalog.tags.tags import add_class_tags
from tests.catalog.backends import EACH, new_location, open_at
from tests.catalog.histories import SEEDS
from tests.catalog.some_rows import file, frame, source_names
from tests.ingest.s3_server import moto
from tests.templates import Templates

LIMITS = {"memory_limit": "1GB", "threads": "1"}
KEYS = [f"it's {number}.png" for number in range(12)]
LABELS = [f"label {number}.png" for number in range(6)]
SCENES = ["b", "d", "a", "c", "é", "it's"]


def make_two_frames(folder: Path) -> None:
    """A catalog with two classes, a frame of each, and a tag family."""
    opened = CatalogStore(CatalogLocation.in_folder(folder), threads=1)
    add_class_tags(opened, ["car", "sky"])
    families.write(opened, "weather", {"weather": "VARCHAR", "wet": "DOUBLE"})
    put(opened, [KEYS[0], KEYS[1], LABELS[0]], scene="b", car=1)
    opened.close()


@pytest.fixture
def store(templates: Templates, tmp_path: Path) -> CatalogStore:
    """A copy of that catalog."""
    templates.copy(make_two_frames, tmp_path)
    return CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1)


def put(
    store: CatalogStore, keys: list[str], scene: str = "b", size: int = 10, car: int = 1
) -> None:
    """Files of those keys; those that are no labels are frames."""
    with store.writing("put") as connection:
        files = [replace(file(key), size=size) for key in keys]
        frames = [
            replace(frame(key, car=car, sky=7), scene=scene, label=LABELS[len(key + scene) % 6])
            for key in keys
            if key not in LABELS
        ]
        register(connection, source_names(), files, frames, 1)


def loaded(store: CatalogStore) -> SnapshotInMemory:
    with store.inspecting() as cursor:
        return SnapshotInMemory(cursor, 200, LIMITS, Interruptible())


def refreshed(memory: SnapshotInMemory, store: CatalogStore) -> SnapshotInMemory:
    with store.inspecting() as cursor:
        return memory.refreshed(cursor, Interruptible())


def content(memory: SnapshotInMemory) -> dict[str, Any]:
    """Everything that can be asked of it, but for rows' numbers, which say when they came."""
    with memory.reading() as cursor:
        names = cursor.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake' UNION ALL "
            "SELECT schema_name || '.' || view_name FROM duckdb_views() "
            "WHERE database_name = 'lake' AND NOT internal ORDER BY 1"
        ).fetchall()
        content_of: dict[str, Any] = {
            name: cursor.execute(
                f"SELECT COLUMNS(c -> c <> '_row_number') "
                f"FROM lake.{name if '.' in name else 'main.' + name} ORDER BY ALL"
            ).fetchall()
            for (name,) in names
        }
        content_of["snapshot"] = cursor.execute(
            "SELECT * FROM lake.main.current_snapshot()"
        ).fetchall()
    return content_of


def step(store: CatalogStore, rng: random.Random) -> None:
    """One commit, or a compaction."""
    some = rng.sample(KEYS + LABELS, rng.randint(1, 4))
    kind = rng.choice(["put", "put", "put", "remove", "tag", "tag", "kinds", "compact", "family"])
    if kind == "put":
        put(store, some, rng.choice(SCENES), rng.randint(1, 99), rng.randint(0, 5))
    elif kind == "remove":
        with store.writing("remove") as connection:
            remove(connection, source_names(), some)
    elif kind == "tag":
        rows = {
            "fkey": [f"c1:d1:{key}" for key in some],
            "weather": pa.array([rng.choice(["rain", "sun", None]) for _ in some], pa.string()),
            "wet": [rng.random() for _ in some],
        }
        families.write(store, "weather", {"weather": "VARCHAR", "wet": "DOUBLE"}, pa.table(rows))
    elif kind == "kinds":
        with store.writing("kinds") as connection:
            kind_of_tag = rng.choice(["Open", "Characteristics"])
            tag_kinds.put(connection, "weather", TagKind(kind_of_tag))
    elif kind == "compact":
        compact(store, lambda: range(10_000), keep=timedelta(0), in_use=timedelta(0))
    elif rng.random() < 0.3:
        add_class_tags(store, [f"class_{rng.randint(0, 3)}"])


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_random_histories(store: CatalogStore, seed: int) -> None:
    """After each few commits the refreshed snapshot has what a loaded one has."""
    rng = random.Random(seed)
    memory, refreshes = loaded(store), 0
    for _ in range(7):
        for _ in range(rng.randint(1, 3)):
            step(store, rng)
        try:
            memory = refreshed(memory, store)
            refreshes += 1
        except ReloadNeeded:
            memory = loaded(store)
        assert content(memory) == content(loaded(store))
    assert refreshes >= 3


@pytest.mark.parametrize("backend", EACH)
def test_in_every_place(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a catalog lies: rows that came, went and changed."""
    if backend.endswith("s3"):
        moto().sign_in(monkeypatch, tmp_path)
    store = open_at(new_location(backend, tmp_path))
    add_class_tags(store, ["car", "sky"])
    put(store, KEYS[:4] + LABELS[:2])
    memory = loaded(store)
    put(store, KEYS[3:6], scene="a", car=4)
    with store.writing("remove") as connection:
        remove(connection, source_names(), [KEYS[0], LABELS[0]])
    assert content(refreshed(memory, store)) == content(loaded(store))


def test_a_label_of_another_size(store: CatalogStore) -> None:
    """A frame's row has its label's size, which changes and goes without the frame."""
    memory = loaded(store)
    sizes = "SELECT label_size FROM lake.main.tagged_files WHERE ends_with(fkey, '0.png')"
    for size in (25, None, 30):
        if size is not None:
            put(store, [LABELS[len(KEYS[0] + "b") % 6]], size=size)
        else:
            with store.writing("remove") as connection:
                remove(connection, source_names(), LABELS)
        memory = refreshed(memory, store)
        with memory.reading() as cursor:
            assert cursor.execute(sizes).fetchall() == [(size,)]


def test_values_that_were_not_there(store: CatalogStore) -> None:
    """A text tag of few values takes new ones, and they compare as texts do."""
    memory = loaded(store)
    put(store, [KEYS[2]], scene="a")
    put(store, [KEYS[3]], scene="c'")
    memory = refreshed(memory, store)
    with memory.reading() as cursor:
        kinds = "SELECT data_type FROM duckdb_columns() WHERE column_name = 'scene'"
        assert ("ENUM('a', 'b', 'c''')",) in cursor.execute(kinds).fetchall()
        ordered = "SELECT DISTINCT scene FROM lake.main.tagged_files WHERE scene > 'a' ORDER BY 1"
        assert cursor.execute(ordered).fetchall() == [("b",), ("c'",)]


def test_kinds_of_tags(store: CatalogStore) -> None:
    """What is of no file is as the catalog has it."""
    with store.writing("kinds") as connection:
        tag_kinds.put(connection, "weather", TagKind("Open"))
    memory = loaded(store)
    with store.writing("kinds") as connection:
        tag_kinds.put(connection, "wet", TagKind("Restricted", ("0.5", "1.0")))
    with refreshed(memory, store).reading() as cursor:
        kinds = tag_kinds.kinds(cast(duckdb.DuckDBPyConnection, cursor))
    assert kinds == {"weather": TagKind("Open"), "wet": TagKind("Restricted", ("0.5", "1.0"))}


def test_readers_keep_what_they_read(store: CatalogStore) -> None:
    """Also after its text tags got other types, and with what was prepared before."""
    memory = loaded(store)
    before = content(memory)
    long = f"SELECT scene, count(*) FROM metaocean_view GROUP BY 1 ORDER BY 1 -- {'x' * 2000}"
    with memory.reading() as cursor:
        counts = [cursor.execute(long).fetchall() for _ in range(3)]
        for number, scene in enumerate(SCENES):
            put(store, [KEYS[number], KEYS[number + 1]], scene=scene)
            later = refreshed(memory, store)
            memory.retire()
            memory = later
            counts.append(cursor.execute(long).fetchall())
        assert all(rows == counts[0] for rows in counts)
    assert content(memory) == content(loaded(store)) != before


def test_what_has_moved_on_is_not_read(store: CatalogStore) -> None:
    """Who begins to read after the tables were refreshed gets no later rows for earlier ones."""
    memory = loaded(store)
    put(store, [KEYS[5]])
    later = refreshed(memory, store)
    with pytest.raises(SnapshotReplaced), memory.reading():
        pass
    snapshots = MemoryKeeper(store, lambda: memory.number, 200, LIMITS)
    snapshots._held = memory  # as in the moment before the later one takes its place
    store.memory = snapshots
    for at in (memory.number, None):
        with store.reading(at) as cursor:
            assert snapshot_of(cursor) == (at or later.number)
            count = cursor.execute("SELECT count(*) FROM t_car").fetchall()
            assert count == [(2 if at else 3,)]


def test_a_reader_that_has_asked_nothing_yet(store: CatalogStore) -> None:
    """It reads the snapshot that it was given."""
    memory = loaded(store)
    with memory.reading() as cursor:
        put(store, [KEYS[5]])
        refreshed(memory, store)
        assert cursor.execute("SELECT count(*) FROM t_car").fetchall() == [(2,)]
        assert cursor.execute("SELECT id FROM lake.main.current_snapshot()").fetchall() == [
            (memory.number,)
        ]


def test_what_has_to_be_loaded(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tag, too many files, a history that is gone; nothing of it is in the tables."""
    monkeypatch.setattr(memory_snapshot, "_FEW", 2)
    memory = loaded(store)
    before = content(memory)
    put(store, KEYS[:3])
    with pytest.raises(ReloadNeeded, match="files changed"):
        refreshed(memory, store)
    assert content(memory) == before
    memory = loaded(store)
    put(store, KEYS[:1])
    put(store, KEYS[:1], car=3)
    compact(store, tuple, keep=timedelta(0), in_use=timedelta(0))
    with pytest.raises(ReloadNeeded, match="tables are others"):
        refreshed(memory, store)
    for change in (
        lambda: add_class_tags(store, ["bus"]),
        lambda: families.write(store, "light", {"light": "VARCHAR"}),
        lambda: families.drop(store, "weather"),
    ):
        memory = loaded(store)
        before = content(memory)
        change()
        with pytest.raises(ReloadNeeded, match="tables are others"):
            refreshed(memory, store)
        assert content(memory) == before


def test_changes_add_up(store: CatalogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file after the other, until so many have changed that all are loaded again."""
    monkeypatch.setattr(memory_snapshot, "_FEW", 3)
    memory = loaded(store)
    for car in range(3):
        put(store, KEYS[:1], car=car)
        memory = refreshed(memory, store)
    put(store, KEYS[:1], car=9)
    with pytest.raises(ReloadNeeded, match="1 files changed"):
        refreshed(memory, store)


@pytest.mark.parametrize("table", ["class_pixels", "tags_weather", "files"])
def test_a_row_too_many_is_noticed(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """In memory a row stayed that the catalog has no longer: of a family, or of a file."""
    rows = {"fkey": [f"c1:d1:{KEYS[0]}"], "weather": ["rain"], "wet": [0.5]}
    families.write(store, "weather", {"weather": "VARCHAR", "wet": "DOUBLE"}, pa.table(rows))
    memory = loaded(store)
    put(store, [KEYS[4]], scene="new")
    with store.writing("take out") as connection:
        connection.execute(f"DELETE FROM lake.main.{table} WHERE fkey = ?", [f"c1:d1:{KEYS[0]}"])
    # The file that lost its row is not seen among the changed ones.
    changed = f"SELECT 'c1:d1:{KEYS[4]}' AS fkey".replace("it's", "it''s")
    monkeypatch.setattr(wide_refresh, "changed_fkeys", lambda *_: changed)
    with pytest.raises(ReloadNeeded, match="where the catalog has"):
        refreshed(memory, store)


def test_a_refresh_that_fails_is_undone(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last thing that can: rows that are not as many as the catalog's."""
    memory = loaded(store)
    before = content(memory)
    put(store, [KEYS[4]], scene="new")
    monkeypatch.setattr(wide_refresh, "changed_fkeys", lambda *_: "SELECT 'none' AS fkey")
    with pytest.raises(ReloadNeeded, match="where the catalog has"):
        refreshed(memory, store)
    assert content(memory) == before
    monkeypatch.undo()
    assert content(refreshed(memory, store)) == content(loaded(store))


def test_a_compaction_between(store: CatalogStore) -> None:
    """It changes no row: what came before and after it is exchanged, and not all loaded again."""
    put(store, KEYS[:4], "a", 1, 1)
    memory = loaded(store)
    put(store, KEYS[2:6], "b", 2, 0)
    with store.writing("remove") as connection:
        remove(connection, source_names(), KEYS[:1])
    done = compact(store, lambda: range(10_000), keep=timedelta(0), in_use=timedelta(0))
    assert done.merged + done.rewritten
    memory = refreshed(memory, store)
    assert content(memory) == content(loaded(store))
    with store.writing("remove") as connection:
        remove(connection, source_names(), KEYS[2:3])
    assert content(refreshed(memory, store)) == content(loaded(store))
