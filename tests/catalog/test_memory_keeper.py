"""The newest snapshot held in memory answers as the catalog itself."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from catalog.errors import NotFound, SqlError
from catalog.frames.catalog_info import info
from catalog.frames.frames import known_files, register
from catalog.lake import newest as newest_snapshot
from catalog.lake.newest import NewestSnapshot
from catalog.memory import keeper, wide_tables
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from query.statistics.class_statistics import class_report
from query.statistics.population import Frames
from tests.catalog.some_rows import file, frame, source_names
from tests.templates import Templates
from tests.zygote import run_python

STATEMENTS = (
    "SELECT * EXCLUDE (inserttime, updatedtime, requesttime) FROM metaocean ORDER BY fkey",
    "SELECT * FROM metaocean_view ORDER BY fkey",
    "SELECT value FROM t_car ORDER BY fkey",
    "SELECT count(*) FROM lake.main.files",
)


def make_one_frame(folder: Path) -> None:
    """A catalog of one frame."""
    store = CatalogStore(CatalogLocation.in_folder(folder), threads=1)
    add_class_tags(store, ["car"])
    put(store, 1)
    store.close()


@pytest.fixture
def stores(templates: Templates, tmp_path: Path) -> tuple[CatalogStore, CatalogStore]:
    """The same catalog opened twice: with its newest snapshot in memory, and without."""
    templates.copy(make_one_frame, tmp_path)
    location = CatalogLocation.in_folder(tmp_path)
    names = {"car": "Car"}
    plain = CatalogStore(location, threads=1, class_names=names.copy)
    hot = CatalogStore(location, threads=1, snapshot_memory_mb=100, class_names=names.copy)
    hot.snapshot()
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)
    return hot, plain


def put(store: CatalogStore, number: int) -> None:
    """One frame more."""
    with store.writing(f"frame {number}") as connection:
        key = f"{number}.png"
        register(connection, source_names(), [file(key)], [frame(key, car=number)], 1)


def rows(store: CatalogStore, statement: str) -> list[tuple[object, ...]]:
    with store.reading() as cursor:
        return cursor.execute(statement).fetchall()


def test_loading_begins_as_a_store_is_opened(tmp_path: Path, templates: Templates) -> None:
    """Who starts a server asks it later, and then waits the less."""
    templates.copy(make_one_frame, tmp_path)
    hot = CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1, snapshot_memory_mb=100)
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.state is not keeper.State.EMPTY
    hot.close()


def held(store: CatalogStore) -> int | None:
    """Number of the snapshot in memory."""
    assert isinstance(store.memory, keeper.MemoryKeeper)
    memory = store.memory.at(None)
    return None if memory is None else memory.number


@pytest.mark.wide
def test_the_same_rows(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """Tables, views and what is built on them; and it is memory that answers."""
    hot, plain = stores
    for statement in STATEMENTS:
        assert rows(hot, statement) == rows(plain, statement) != []
    assert info(hot) == info(plain)
    assert class_report(hot).classes == class_report(plain).classes
    databases = "SELECT path IS NULL FROM duckdb_databases() WHERE database_name = 'lake'"
    assert rows(hot, databases) == [(True,)]
    assert held(hot) == plain.snapshot() == hot.snapshot()


@pytest.mark.wide
def test_questions_have_the_usual_priority(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """DuckDB's threads do not keep the lower one of the load."""
    before = set(Path("/proc/self/task").iterdir())
    hot = CatalogStore(stores[1].location, threads=4, snapshot_memory_mb=1_000)
    hot.snapshot()
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)
    assert rows(hot, "SELECT count(*) FROM t_car") == [(1,)]
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    begun = set(Path("/proc/self/task").iterdir()) - before
    priorities = []
    for task in begun:
        with suppress(ProcessLookupError):  # it has ended
            priorities.append(os.getpriority(os.PRIO_PROCESS, int(task.name)))
    assert len(priorities) >= 3
    assert set(priorities) == {usual}
    hot.close()


def test_tables_of_scans_are_not_in_memory(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """No question asks them; a scan reads the files, of a catalog that is in memory too."""
    hot, plain = stores
    tables = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main'"
    beside = {"catalog_format", "tagged_files", "untagged_files"}
    assert {name for (name,) in rows(hot, tables)} == beside
    assert {name for (name,) in rows(plain, tables)} > {"frame_trees", "file_digests"}
    with hot.reading_files() as one, plain.reading() as other:
        known = list(known_files(one, source_names()))
        assert known == list(known_files(other, source_names())) != []


def test_tables_beside_it_are_read_as_they_are(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """A long statement, which is planned when it comes again, reads the rows of each time."""
    hot, _ = stores
    long = f"SELECT number FROM few WHERE number > -1 {'AND number > -1 ' * 300}"
    for number in range(4):
        few = pa.table({"number": [number]})
        with hot.reading() as snapshot, snapshot.with_table("few", few):
            assert snapshot.execute(long).fetchall() == [(number,)]


@pytest.mark.wide
def test_it_is_loaded_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fkeys in any order, with labels in other portions, and files without tags."""
    monkeypatch.setattr(wide_tables, "_FILES_AT_ONCE", 3)
    monkeypatch.setattr(wide_tables, "_DRAWN", 2)
    location = CatalogLocation.in_folder(tmp_path)
    plain = CatalogStore(location, threads=1)
    add_class_tags(plain, ["car"])
    with plain.writing("frames and labels") as connection:
        for number in (7, 2, 9, 4, 1):
            image, label = f"it's {number}.png", f"labels/{9 - number}.png"
            files = [file(image), replace(file(label), size=10 + number), file(f"{number}.txt")]
            changed = replace(frame(image, car=number), label=label)
            register(connection, source_names(), files, [changed], number)
    hot = CatalogStore(location, threads=1, snapshot_memory_mb=100)
    hot.snapshot()
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)
    for statement in (
        *STATEMENTS[:2],
        "SELECT count(*), count(DISTINCT fkey) FROM lake.main.files",
    ):
        assert rows(hot, statement) == rows(plain, statement) != []
    assert rows(hot, STATEMENTS[3]) == [(15,)]
    sizes = "SELECT car, label_size FROM lake.main.tagged_files ORDER BY car"
    assert rows(hot, sizes) == [(number, 10 + number) for number in (1, 2, 4, 7, 9)]


def test_what_was_committed_is_seen_at_once(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """A question after a commit sees it, from the catalog first and soon from memory."""
    hot, plain = stores
    for number in range(2, 5):
        put(plain, number)
        assert rows(hot, "SELECT count(*) FROM t_car") == [(number,)]
        assert isinstance(hot.memory, keeper.MemoryKeeper)
        assert hot.memory.wait(300)
        assert held(hot) == plain.snapshot()
        assert rows(hot, "SELECT count(*) FROM t_car") == [(number,)]
    with hot.reading(at=plain.snapshot() - 1) as cursor:
        assert cursor.execute("SELECT count(*) FROM t_car").fetchall() == [(3,)]
    with pytest.raises(NotFound), hot.reading(at=99):
        pass


def test_a_reader_keeps_its_snapshot(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """What is in use stays while the next snapshot takes its place."""
    hot, plain = stores
    with hot.reading() as cursor:
        cursor.execute("SELECT count(*) FROM t_car")
        put(plain, 2)
        assert rows(hot, "SELECT count(*) FROM t_car") == [(2,)]
        assert isinstance(hot.memory, keeper.MemoryKeeper)
        assert hot.memory.wait(300)
        hot.close()
        assert cursor.execute("SELECT count(*) FROM t_car").fetchall() == [(1,)]


@contextmanager
def repeated(work: Callable[[], None], threads: int) -> Iterator[None]:
    """That many threads do it again and again until the block ends; raises what failed in one."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            work()

    with ThreadPoolExecutor(threads) as pool:
        doing = [pool.submit(go_on) for _ in range(threads)]
        try:
            yield
        finally:
            ended.set()
        for each in doing:
            each.result()


@pytest.mark.wide
def test_readers_and_a_writer_at_once(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """Counts only grow for every reader while snapshots come and go under them."""
    hot, plain = stores
    last = threading.local()

    def read() -> None:
        ((count,),) = rows(hot, "SELECT count(*) FROM t_car")
        assert int(str(count)) >= getattr(last, "count", 0)
        last.count = int(str(count))

    with repeated(read, 2):
        for number in range(2, 7):
            put(plain, number)
    assert rows(hot, "SELECT count(*) FROM t_car") == [(6,)]


@pytest.mark.wide
def test_questions_wait_for_a_refresh_of_a_large_one(
    stores: tuple[CatalogStore, CatalogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is answered from memory, with what was committed before it; also many at once.

    And also soon after a long load: a refresh is none.
    """
    hot, plain = stores
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    hot.memory._not_before = 1e12
    monkeypatch.setattr(keeper, "_LARGE", 1)
    monkeypatch.setattr(keeper, "_PATIENCE_S", 300.0)

    def ask() -> None:
        committed = plain.snapshot()
        assert (held(hot) or 0) >= committed

    with repeated(ask, 3):
        for number in range(2, 6):
            put(plain, number)
            assert held(hot) == plain.snapshot()
            assert rows(hot, "SELECT count(*) FROM t_car") == [(number,)]


def test_a_catalog_that_was_put_back(stores: tuple[CatalogStore, CatalogStore]) -> None:
    """What is in memory is of later commits, and not given out for the newest."""
    hot, plain = stores
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    newest = plain.snapshot()
    hot.memory._newest = lambda: newest - 1
    assert held(hot) is None


def test_nobody_waits_for_a_load(
    stores: tuple[CatalogStore, CatalogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where everything is loaded again, who waited for a refresh is answered by the catalog."""
    hot, plain = stores
    monkeypatch.setattr(keeper, "_LARGE", 1)
    monkeypatch.setattr(keeper, "_PATIENCE_S", 1e6)
    goes_on = threading.Event()
    load = wide_tables.load

    def held_up(*connection: duckdb.DuckDBPyConnection) -> wide_tables.Layout:
        assert goes_on.wait(300)
        return load(*connection)

    monkeypatch.setattr(wide_tables, "load", held_up)
    add_class_tags(plain, ["sky"])
    assert held(hot) is None
    assert rows(hot, "SELECT count(*) FROM t_sky") == [(0,)]
    goes_on.set()
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)
    assert held(hot) == plain.snapshot()


def test_a_load_that_closing_cuts_short(
    stores: tuple[CatalogStore, CatalogStore],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It has ended when the store is closed, in the middle of a statement; nothing is said or held.

    Opened again, the store loads again.
    """
    hot, plain = stores
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    hot.memory._not_before = 0.0  # however long the first load took
    began = threading.Event()

    def endless(source: duckdb.DuckDBPyConnection, _: object) -> wide_tables.Layout:
        began.set()
        source.execute("SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b")
        raise AssertionError

    with monkeypatch.context() as slowly:
        slowly.setattr(wide_tables, "load", endless)
        slowly.setattr(keeper, "_END_S", 300.0)
        add_class_tags(plain, ["sky"])
        assert held(hot) is None
        assert began.wait(300)
        hot.close()
        assert hot.memory.state is keeper.State.EMPTY
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []
    assert hot.memory._held is None
    assert hot.memory.wait(300)
    assert held(hot) == plain.snapshot()


_ENDS_WHILE_LOADING = """
import sys, threading
from pathlib import Path
from catalog.memory import wide_tables
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore

began, load = threading.Event(), wide_tables.load

def told(source, target):
    began.set()
    return load(source, target)

wide_tables.load = told
location = CatalogLocation.in_folder(Path(sys.argv[1]))
store = CatalogStore(location, threads=1, snapshot_memory_mb=500)
store.snapshot()
assert began.wait(300)
if sys.argv[2] == "closes":
    store.close()
"""


@pytest.mark.parametrize("how", ["closes", "just ends"])
def test_a_process_that_ends_while_it_loads(
    stores: tuple[CatalogStore, CatalogStore], tmp_path: Path, how: str
) -> None:
    """It ends well and says nothing: Python ends threads inside DuckDB by std::terminate."""
    _, plain = stores
    with plain.writing("many") as connection:
        connection.execute(
            "INSERT INTO files (fkey, filename, size) "
            "SELECT 'x' || i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR), i FROM range(400000) t(i)"
        )
    for _ in range(4):
        ended = run_python("-c", _ENDS_WHILE_LOADING, tmp_path, how)
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_thread_that_cannot_start(
    stores: tuple[CatalogStore, CatalogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog answers; a later question tries again."""
    hot, plain = stores
    put(plain, 2)

    def cannot(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", cannot)
        assert rows(hot, "SELECT count(*) FROM t_car") == [(2,)]
        assert held(hot) is None
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)


def test_what_does_not_fit_stays_on_disk(
    stores: tuple[CatalogStore, CatalogStore], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Beyond the budget questions go to the catalog; it is said once, not tried again and again."""
    _, plain = stores
    with plain.writing("many") as connection:
        connection.execute(
            "INSERT INTO files (fkey, filename, size) "
            "SELECT 'x' || i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR), i FROM range(200000) t(i)"
        )
    small = CatalogStore(CatalogLocation.in_folder(tmp_path), threads=1, snapshot_memory_mb=5)
    for _ in range(3):
        assert rows(small, "SELECT count(*) FROM metaocean") == [(200_001,)]
        assert isinstance(small.memory, keeper.MemoryKeeper)
        assert not small.memory.wait(300)
    said = [record for record in caplog.records if "does not fit" in record.getMessage()]
    assert len(said) == 1


def test_after_a_long_load_the_next_one_waits(
    stores: tuple[CatalogStore, CatalogStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits that come faster than loads do not keep it loading all the time."""
    hot, plain = stores
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    monkeypatch.setattr(keeper, "_LONG_LOAD_S", 0.0)
    monkeypatch.setattr(keeper, "_REST", 1e9)
    put(plain, 2)
    add_class_tags(plain, ["sky"])  # another tag: everything is loaded
    assert hot.memory.wait(300)
    assert held(hot) == plain.snapshot()
    put(plain, 3)
    add_class_tags(plain, ["bus"])
    assert rows(hot, "SELECT count(*) FROM t_car") == [(3,)]
    assert not hot.memory.wait(0.5)
    assert held(hot) is None
    hot.memory._not_before = 0.0
    assert hot.memory.wait(300)
    assert held(hot) == plain.snapshot()


@pytest.mark.wide
def test_more_is_held_than_questions_may_take(
    stores: tuple[CatalogStore, CatalogStore], tmp_path: Path
) -> None:
    """The limit of questions is on top of the tables."""
    _, plain = stores
    with plain.writing("many") as connection:
        connection.execute(
            "INSERT INTO files (fkey, filename, size) "
            "SELECT 'x' || i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR), i FROM range(900000) t(i)"
        )
    large = CatalogStore(
        CatalogLocation.in_folder(tmp_path), threads=1, memory_limit="60MB", snapshot_memory_mb=600
    )
    large.snapshot()
    assert isinstance(large.memory, keeper.MemoryKeeper)
    assert large.memory.wait(300)
    assert held(large) == plain.snapshot()
    assert rows(large, "SELECT count(*), max(filename) > '' FROM metaocean") == [(900_001, True)]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT getenv('HOME')",
        "COPY (SELECT 1) TO '/tmp/framesift-hot-out.csv'",
        "ATTACH '/tmp/framesift-hot-other.db'",
        "INSERT INTO lake.main.files (fkey) VALUES ('x')",
        "SET memory_limit = '1TB'",
    ],
)
def test_it_is_locked_down(stores: tuple[CatalogStore, CatalogStore], statement: str) -> None:
    """As the catalog's own readers are."""
    hot, _ = stores
    with pytest.raises((SqlError, duckdb.Error)):
        rows(hot, statement)
    assert not Path("/tmp/framesift-hot-out.csv").exists()
    assert not Path("/tmp/framesift-hot-other.db").exists()


def test_classes_of_many_frames(tmp_path: Path) -> None:
    """The same of memory as of the catalog; a later commit is seen, an older snapshot stays."""
    location = CatalogLocation.in_folder(tmp_path)
    names = {"car": "Cars", "sky": "Sky", "bicycle": "Bicycle"}
    plain = CatalogStore(location, class_names=names.copy)
    add_class_tags(plain, list(names))
    with plain.writing("drawn") as connection:
        connection.execute(
            "INSERT INTO files BY NAME "
            "SELECT 'local:a:' || i || '.png' AS fkey FROM range(50000) t(i)"
        )
        connection.execute(
            "INSERT INTO tags_frame BY NAME SELECT 'local:a:' || i || '.png' AS fkey, "
            "1 AS labelled FROM range(50000) t(i)"
        )
        connection.execute(
            "INSERT INTO class_pixels BY NAME SELECT 'local:a:' || i || '.png' AS fkey, "
            "(hash(i) % 5 * 1000)::INTEGER AS car, 2000000 AS sky, 7 AS unknown_pixels, "
            "CASE WHEN i % 3 = 0 THEN i::INTEGER END AS bicycle FROM range(50000) t(i)"
        )
    hot = CatalogStore(location, snapshot_memory_mb=200, class_names=names.copy)
    hot.snapshot()
    assert isinstance(hot.memory, keeper.MemoryKeeper)
    assert hot.memory.wait(300)
    shares = class_report(hot).classes
    assert shares == class_report(plain).classes == class_report(hot).classes
    assert [share.frames for share in shares][1:] == [50_000, 16_666]
    before = plain.snapshot()
    with plain.writing("fewer") as connection:
        for table in ("tags_frame", "class_pixels"):
            connection.execute(f"DELETE FROM {table} WHERE fkey = 'local:a:3.png'")
    later = class_report(plain).classes
    assert [share.frames for share in later][1:] == [49_999, 16_665]
    assert class_report(hot).classes == later
    for store in (hot, plain):
        assert class_report(store, Frames(at=before)).classes == shares


def test_the_newest_is_asked_again_only_when_it_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that were written lately, or have changed, or an answer that is no longer trusted."""
    monkeypatch.setattr(newest_snapshot, "_TRUSTED_S", 1e9)
    monkeypatch.setattr(newest_snapshot, "_SETTLED_NS", 3_000 * 10**9)
    metadata = tmp_path / "catalog.sqlite"
    metadata.write_bytes(b"1")
    numbers = iter(range(100))
    newest = NewestSnapshot(lambda: next(numbers), metadata)
    assert [newest(), newest()] == [0, 1]  # just written: a commit may not be seen yet
    for path, size in ((metadata, 2), (Path(f"{metadata}-wal"), 1), (Path(f"{metadata}-wal"), 2)):
        path.write_bytes(b"1" * size)
        for written in tmp_path.iterdir():
            os.utime(written, (time.time() - 3_600, time.time() - 3_600))
        number = newest()
        assert [newest(), newest()] == [number, number]
    monkeypatch.setattr(newest_snapshot, "_TRUSTED_S", 0.0)
    assert newest() == number + 1
    always = NewestSnapshot(lambda: next(numbers), None)
    assert always() < always()
