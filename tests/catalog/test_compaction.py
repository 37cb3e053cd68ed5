"""Compaction: fewer files, the same rows; beside readers and writers; killed in the middle."""

import random
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, NotFound
from catalog.frames.frames import register
from catalog.lake.metadata.own_tables import Commit, rewrite_deleted
from catalog.maintenance.check import check
from catalog.maintenance.compaction import Compaction, compact, outdated
from catalog.store import CatalogStore
from tests.catalog.histories import AT_ONCE, SEEDS, History, held
from tests.catalog.some_rows import FILES_OF_A_COMMIT, file, local_places, open_store, source_names
from tests.zygote import Forked

REPOSITORY = Path(__file__).parent.parent.parent
WRITERS, COMMITS = 2, 6
KILLS = 10


def parquet_files(store: CatalogStore) -> set[Path]:
    return set(local_places(store)[1].rglob("*.parquet"))


def add(store: CatalogStore, *keys: str) -> int:
    """Commit files; the snapshot's number."""
    with store.writing("add") as connection:
        register(connection, source_names(), [file(key) for key in keys], [], 1)
    return store.snapshot()


@pytest.mark.wide
def test_what_columns_hold_is_known_afterwards(store: CatalogStore, folder: Path) -> None:
    """Files of which one has nulls only: questions leave out none, nor cut numbers short."""
    large = 2**40
    one_with_nulls(store)
    sized(store, a=large, b=5)
    sized(store, a=large, d=large)
    for change in (
        lambda: compact(store, tuple, keep=AT_ONCE, in_use=AT_ONCE),
        lambda: sized(store, b=10),
        lambda: sized(open_store(folder), b=7),
    ):
        change()
        for catalog in (store, open_store(folder)):
            with catalog.reading() as cursor:
                rows = cursor.execute("SELECT fkey, size FROM metaocean ORDER BY fkey").fetchall()
                assert dict(rows)["c1:d1:a"] == dict(rows)["c1:d1:d"] == large
                rows = cursor.execute("SELECT count(*) FROM metaocean WHERE size > 9999").fetchall()
                assert rows == [(2,)]
    assert "wrong_statistics" not in {finding.kind for finding in check(store, {})}


def test_a_compaction_that_was_killed_before_they_were_known(
    store: CatalogStore, folder: Path
) -> None:
    """The next commit, by whomever, computes them first."""
    one_with_nulls(store)
    sized(store, a=2**40, b=5)
    sized(store, a=2**40, d=2**40)
    with store.writing("the last thing it did") as connection:
        assert rewrite_deleted(connection, "files", 0.2) > 0
    sized(open_store(folder), b=10)
    with store.reading() as cursor:
        rows = cursor.execute("SELECT size FROM metaocean WHERE size > 9999").fetchall()
    assert rows == [(2**40,)] * 2


def one_with_nulls(store: CatalogStore) -> None:
    """A data file without any size."""
    with store.writing("nulls") as connection:
        connection.execute(
            "INSERT INTO files BY NAME SELECT 'c1:d1:n' || i AS fkey, 'c1' AS cluster, "
            "'d1' AS datasource, 'n' || i AS filename FROM range(3) t(i)"
        )


def sized(store: CatalogStore, **sizes: int) -> None:
    """Files of these sizes."""
    with store.writing("sized") as connection:
        files = [replace(file(key), size=size) for key, size in sizes.items()]
        register(connection, source_names(), files, [], 1)


@pytest.mark.wide
@pytest.mark.parametrize("seed", SEEDS[:1])
def test_snapshots_hold_the_same_afterwards(store: CatalogStore, folder: Path, seed: int) -> None:
    """Whatever was written and kept: each kept snapshot holds what it held, with fewer files."""
    rng = random.Random(seed)
    history = History(store, rng)
    merged = 0
    for _ in range(2):
        history.write(6)
        named_snapshots = set(rng.sample(sorted(history.states), 3))
        before = len(parquet_files(store))
        done = compact(store, named_snapshots.copy, keep=AT_ONCE, in_use=AT_ONCE)
        newest = max(history.states)
        merged += done.merged
        assert len(parquet_files(store)) <= before
        assert held(store) == history.states[newest]
        for number in named_snapshots:
            assert held(open_store(folder), number) == history.states[number]
        for number in done.expired:
            with pytest.raises(NotFound):
                held(store, number)
        history.states = {number: history.states[number] for number in named_snapshots}
    assert merged > 0


@pytest.mark.wide
def test_nothing_to_do_changes_nothing(store: CatalogStore) -> None:
    """A second compaction makes no snapshot and touches no file."""
    add(store, "a")
    add(store, "b")
    for _ in range(2):  # the second takes the snapshot that the first one's merging left behind
        compact(store, list, keep=AT_ONCE, in_use=AT_ONCE)
    before, files = store.snapshot(), parquet_files(store)
    assert compact(store, list, keep=AT_ONCE, in_use=AT_ONCE) == Compaction()
    assert (store.snapshot(), parquet_files(store)) == (before, files)


def commit(number: int, hour: int) -> Commit:
    return Commit(number, datetime(2026, 1, 1, hour), "", "", ())  # noqa: DTZ001


@pytest.mark.parametrize(
    ("keep_hours", "expected", "expired"),
    [(0, [], (1, 2, 3)), (1, [], (1, 2)), (3.25, [], (1,)), (9, [], ()), (0, [2, 4], (1, 3))],
)
def test_what_expires(keep_hours: float, expected: list[int], expired: tuple[int, ...]) -> None:
    """A snapshot stays while it was the newest within the time kept, and the newest always."""
    commits = [commit(4, 11), commit(3, 10), commit(2, 8), commit(1, 6)]
    at = datetime(2026, 1, 1, 11, 30)  # noqa: DTZ001
    assert outdated(commits, expected, timedelta(hours=keep_hours), at) == expired


@pytest.mark.parametrize("committed", [False, True])
def test_a_clock_that_jumps(committed: bool) -> None:
    """To 2030 and back, with a commit at the wrong time or without: it expires nothing young."""
    commits = [commit(4, 11), commit(3, 10), commit(2, 8), commit(1, 6)]
    of_2030 = datetime(2030, 1, 1, 12)  # noqa: DTZ001
    week = timedelta(days=7)
    if committed:
        commits.insert(0, replace(commit(5, 0), time=of_2030))
    assert outdated(commits, [], week, of_2030) == ()
    assert outdated(commits, [], week, datetime(2026, 1, 1, 12)) == ()  # noqa: DTZ001
    daily = [Commit(n, datetime(2029, 12, n), "", "", ()) for n in range(31, 0, -1)]  # noqa: DTZ001
    end = datetime(2029, 12, 31, 23)  # noqa: DTZ001
    assert outdated([*daily, *commits[-4:]], [], week, end)[-1] == 23


@pytest.mark.wide
def test_a_reader_goes_on(store: CatalogStore, folder: Path) -> None:
    """What was in use within the hour stays: no snapshot expires and no file goes."""
    old = add(store, "a")
    for number in range(4):
        add(store, f"k{number}")
    with store.reading() as newest, store.reading(old) as fixed:
        before = parquet_files(store)
        done = compact(open_store(folder), list, keep=AT_ONCE)
        assert done.merged > 0
        assert (done.expired, done.deleted) == ((), 0)
        assert before < parquet_files(store)
        assert newest.execute("SELECT count(*) FROM metaocean").fetchone() == (5,)
        assert fixed.execute("SELECT count(*) FROM metaocean").fetchone() == (1,)


@pytest.mark.wide
def test_a_reader_whose_files_are_deleted_is_told(store: CatalogStore, folder: Path) -> None:
    """Deleting at once: a query in the middle is told to ask again, and the next one answers."""
    for number in range(4):
        add(store, f"k{number}")

    def ask_in_the_middle() -> None:
        with store.reading() as cursor:
            assert cursor.execute("SELECT count(*) FROM metaocean").fetchone() == (4,)
            compact(open_store(folder), list, keep=AT_ONCE, in_use=AT_ONCE)
            cursor.execute("SELECT fkey FROM metaocean").fetchall()

    with pytest.raises(CatalogBusy, match=r"compacted.*ask again"):
        ask_in_the_middle()
    assert len(held(store)) == 4


def test_orphans_go_and_other_files_stay(store: CatalogStore) -> None:
    """A Parquet file of no commit is deleted; what else lies there is not."""
    add(store, "a")
    data = local_places(store)[1]
    (data / "main" / "files" / "orphan.parquet").write_bytes(b"PAR1")
    (data / "note.txt").write_text("mine")
    assert compact(store, list, keep=AT_ONCE).orphans == 1
    assert (data / "note.txt").read_text() == "mine"
    assert len(held(store)) == 1


@pytest.mark.wide
def test_beside_readers_and_writers(tmp_path: Path) -> None:
    """Two writers, a compaction that deletes at once, and this reader: nothing fails or is lost."""
    store = open_store(tmp_path)
    compactions = ["-m", "tests.catalog.compactions", str(tmp_path)]
    writers = ["-m", "tests.catalog.writers", str(tmp_path), str(WRITERS), str(COMMITS)]
    busy = reads = 0
    with (
        Forked(
            compactions, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as compacting,
        Forked(writers, cwd=REPOSITORY) as writing,
    ):
        try:
            while writing.poll() is None:
                counts = _counted(store)
                reads, busy = reads + bool(counts), busy + (not counts)
                assert len(counts) <= 1
            told, _ = compacting.communicate("", timeout=300)
        finally:
            compacting.kill()
            writing.kill()
    assert (writing.returncode, compacting.returncode) == (0, 0)
    merged, deleted = map(int, told.split())
    assert merged > 0
    assert deleted > 0
    assert reads > 0
    expected = {
        f"c1:d1:w{writer}/{number}/{index}"
        for writer in range(WRITERS)
        for number in range(COMMITS)
        for index in range(FILES_OF_A_COMMIT)
    }
    assert held(store).keys() == expected | {"c1:d1:shared"}


def _counted(store: CatalogStore) -> set[object]:
    """Files and different files by two views of one snapshot; empty where told to ask again."""
    try:
        with store.reading() as cursor:
            return {
                cursor.execute(f"SELECT count(fkey), count(DISTINCT fkey) FROM {view}").fetchone()
                for view in ("metaocean", "metaocean_view")
            }
    except CatalogBusy as error:
        if "ask again" not in str(error):
            raise
        return set()


@pytest.mark.slow
def test_killed_in_the_middle(tmp_path: Path) -> None:
    """SIGKILL at random moments: the acknowledged state and the kept snapshot, every time."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.catalog.killed_compactions", str(tmp_path), str(KILLS), "1"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    rounds = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    assert len(rounds) == KILLS
    assert [wrong for _, wrong in rounds] == [0] * KILLS, run.stderr
    killed = sum(ended == -9 for ended, _ in rounds)
    assert killed > KILLS // 4, rounds
