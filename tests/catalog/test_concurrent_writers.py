"""Four processes on one home that none of them finds made."""

import subprocess
from pathlib import Path

import pytest

from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.store import CatalogStore, snapshot_of
from tests.catalog.some_rows import FILES_OF_A_COMMIT, open_store
from tests.zygote import Forked

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
WRITERS, COMMITS = 4, 5


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that four processes made and wrote to at once, while this one read."""
    folder = tmp_path_factory.mktemp("home")
    program = ["-m", "tests.catalog.writers", str(folder), str(WRITERS), str(COMMITS)]
    with Forked(program, cwd=REPOSITORY, stderr=subprocess.PIPE) as writers:
        try:
            _read_until_done(open_store(folder), writers)
        finally:
            writers.kill()
        assert writers.returncode == 0, writers.stderr and writers.stderr.read()
    return folder


def _read_until_done(store: CatalogStore, writers: subprocess.Popen[str]) -> None:
    """One snapshot sees one state, whatever is committed meanwhile."""
    last = 0
    while True:
        with store.reading() as cursor:
            snapshot = snapshot_of(cursor)
            counts = {
                cursor.execute(f"SELECT count(*), count(DISTINCT fkey) FROM {table}").fetchone()
                for table in ("metaocean", "lake.main.files", "metaocean_view", "metaocean")
            }
            assert snapshot_of(cursor) == snapshot >= last
            assert len(counts) == 1
            last = snapshot
        try:
            writers.wait(0.3)
        except subprocess.TimeoutExpired:
            continue
        return


def test_no_file_is_lost_or_doubled(written: Path) -> None:
    """Every commit's files are there once; the file that all rewrote is there once."""
    with open_store(written).reading() as cursor:
        keys = [row[0] for row in cursor.execute("SELECT fkey FROM metaocean").fetchall()]
        tagged = cursor.execute("SELECT count(*), count(DISTINCT fkey) FROM t_front").fetchone()
    expected = {
        f"c1:d1:w{writer}/{commit}/{number}"
        for writer in range(WRITERS)
        for commit in range(COMMITS)
        for number in range(FILES_OF_A_COMMIT)
    }
    assert sorted(keys) == sorted(expected | {"c1:d1:shared"})
    assert tagged == (len(expected), len(expected))


def test_every_commit_is_a_snapshot_with_author_and_reason(written: Path) -> None:
    """Author and reason of each commit are kept with its snapshot; none is missing."""
    with open_store(written).reading() as cursor:
        rows = cursor.execute(
            "SELECT author, commit_message FROM lake.snapshots() WHERE author LIKE 'w%'"
        ).fetchall()
    assert sorted(rows) == [
        (f"w{writer}", f"commit {commit}") for writer in range(WRITERS) for commit in range(COMMITS)
    ]


def test_records_of_all_writers_are_there(written: Path) -> None:
    """Records made and written by four processes at once hold every source."""
    names = {
        source.name
        for source in recorded_sources(RecordStore(written / "records" / "records.sqlite"))
    }
    assert names == {f"w{w}-{commit}" for w in range(WRITERS) for commit in range(COMMITS)}
