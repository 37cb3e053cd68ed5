"""Rows that are read while they are computed: bounded memory, in time, and stopped when asked."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import CatalogBusy, CatalogDamaged, SqlError, StorageError
from catalog.lake.statement_watch import Cancellation
from catalog.store import CatalogStore
from query.run.run_sql import run_sql, stream_sql
from tests.query.catalogs import drawn, rows

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parents[2]
MILLIONS = "from metaocean a, metaocean b, metaocean c, metaocean d"
ENDLESS = "select count(*) from " + ",".join(f"metaocean m{n}" for n in range(9))

PEAK = """
import resource, sys
from pathlib import Path
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from query.run.result_format import encoded
from query.run.run_sql import stream_sql
folder, format_, rows = sys.argv[1:]
store = CatalogStore(CatalogLocation.in_folder(Path(folder)), threads=2, memory_limit="1GB")
text = "select v.* from metaocean a, metaocean b, metaocean c, metaocean_view v"
with stream_sql(store, text, max_rows=int(rows), timeout_s=3600) as stream:
    size = sum(map(len, encoded(format_, stream.schema, stream.batches)))
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.fixture(scope="module")
def store(stored: CatalogStore) -> CatalogStore:
    """Read from Parquet."""
    return stored


def peak_mb(store: CatalogStore, format_: str, count: int) -> tuple[float, float]:
    """Size of the answer and the most memory of a process that makes it [MB]."""
    folder = store.location.data
    run = subprocess.run(
        [sys.executable, "-c", PEAK, str(Path(str(folder)).parents[0]), format_, str(count)],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    size, kilobytes = map(int, run.stdout.split())
    return size / 1e6, kilobytes / 1e3


@pytest.mark.parametrize("format_", ["csv", "arrow-stream"])
def test_a_million_wide_rows_take_bounded_memory(store: CatalogStore, format_: str) -> None:
    """A hundred times the rows, 80 columns each, and less than 150 MB more."""
    small, before = peak_mb(store, format_, 10_000)
    large, after = peak_mb(store, format_, 1_000_000)
    assert large > 50 * small > 250
    assert after - before < 150


def test_the_rows_are_those_of_run_sql(store: CatalogStore) -> None:
    """In order, across batches, with the same columns and the same snapshot."""
    text = "select a.fkey, b.size, b.mtime from metaocean a, metaocean b, t_car c order by 1, 2, 3"
    whole = run_sql(store, text)
    with stream_sql(store, text) as stream:
        batches = list(stream.batches)
    assert len(batches) > 5
    assert pa.Table.from_batches(batches, stream.schema).equals(whole.rows)
    assert (stream.snapshot, stream.truncated) == (whole.snapshot, whole.truncated)


@pytest.mark.parametrize(
    ("max_rows", "count", "truncated"),
    [(0, 0, True), (1, 1, True), (23, 23, True), (24, 24, False), (25, 24, False)],
)
def test_the_row_limit(store: CatalogStore, max_rows: int, count: int, truncated: bool) -> None:
    """Rows beyond it are left out, which is known at the end."""
    with stream_sql(store, "select fkey from t_car", max_rows=max_rows) as stream:
        assert sum(batch.num_rows for batch in stream.batches) == count
        assert stream.truncated == truncated


def test_a_row_limit_at_the_end_of_a_batch(store: CatalogStore) -> None:
    """As many rows as one batch has, and more to come."""
    with stream_sql(store, f"select a.fkey {MILLIONS}", max_rows=20_000) as stream:
        sizes = [batch.num_rows for batch in stream.batches]
    assert sum(sizes) == 20_000
    assert stream.truncated


def test_names_are_there_once(store: CatalogStore) -> None:
    """Two columns of one name, and columns without one."""
    text = "select a.fkey, b.fkey, a.fkey, 1, 2 from t_car a, t_car b"
    assert run_sql(store, text).rows.column_names == ["fkey", "fkey_1", "fkey_2", "4", "5"]
    assert run_sql(store, 'select 1, value as "1" from t_car').rows.column_names == ["1", "1_1"]


def count(batches: Iterable[pa.RecordBatch], pause_s: float = 0.0) -> int:
    """Read them all; how many rows there were."""
    count = 0
    for batch in batches:
        count += batch.num_rows
        time.sleep(pause_s)
    return count


def test_an_error_on_the_way(store: CatalogStore) -> None:
    """Rows, and then Db2's error for what the data has in it."""
    counted = "select row_number() over () as n from metaocean, t_car a, t_car b, t_car c"
    text = f"select 1000 / (900000 - n) from ({counted}) x"
    batches_read: list[pa.RecordBatch] = []
    with stream_sql(store, text) as stream, pytest.raises(SqlError, match="SQL0801N") as error:
        batches_read.extend(stream.batches)
    assert error.value.sqlstate == "22012"
    assert batches_read


def test_the_time_limit_holds_while_rows_are_read(store: CatalogStore) -> None:
    """Rows are there all the time, and reading them ends nevertheless."""
    expected = pytest.raises(SqlError, match=r"SQL0952N .*after 0\.5 s")
    with expected, stream_sql(store, f"select a.fkey {MILLIONS}", timeout_s=0.5) as stream:
        count(stream.batches, 0.01)
    assert rows(store, "select count(*) from t_car") == [(24,)]


def test_the_time_limit_holds_for_a_slow_reader(store: CatalogStore) -> None:
    """What was computed in time is not given out after it."""
    for timeout_s in (0.2, 2.0, 20.0):
        with contextlib.suppress(SqlError):  # no row came in time: on a busy machine it may be
            with stream_sql(store, f"select a.fkey {MILLIONS}", timeout_s=timeout_s) as stream:
                next(stream.batches)
                time.sleep(timeout_s + 0.3)
                with pytest.raises(SqlError, match="SQL0952N"):
                    next(stream.batches)
            return
    pytest.fail("no row came")


def test_another_thread_cancels(store: CatalogStore) -> None:
    """A statement that computes its first row, and one whose rows are read."""
    for text in (ENDLESS, ENDLESS.replace("count(*)", "m0.fkey")):
        cancellation = Cancellation()
        timer = threading.Timer(0.3, cancellation.cancel)
        timer.start()
        expected = pytest.raises(SqlError, match=r"SQL0952N .*on request")
        stopped = stream_sql(store, text, max_rows=10**12, cancellation=cancellation)
        with expected as error, stopped as stream:
            count(stream.batches)
        assert error.value.sqlstate == "57014"


def test_cancelled_before_it_begins(store: CatalogStore) -> None:
    """It fails as soon as it runs."""
    cancellation = Cancellation()
    cancellation.cancel()
    stopped = stream_sql(store, ENDLESS, timeout_s=60, cancellation=cancellation)
    with pytest.raises(SqlError, match="SQL0952N"), stopped as stream:
        count(stream.batches)


def test_a_reader_that_stops_early(store: CatalogStore) -> None:
    """The rest is not computed, no thread is left for each, and the store answers."""
    for _ in range(3):
        with stream_sql(store, f"select a.fkey {MILLIONS}") as stream:
            next(stream.batches)
    assert [thread.name for thread in threading.enumerate()].count("sql-watch") == 1
    assert rows(store, "select count(*) from t_car") == [(24,)]


def test_an_interrupt_does_not_reach_the_next_statement(store: CatalogStore) -> None:
    """One that is stopped, and one after it."""
    for _ in range(5):
        with pytest.raises(SqlError, match="SQL0952N"):
            run_sql(store, ENDLESS, timeout_s=0.05)
        assert rows(store, "select count(*) from t_car") == [(24,)]


def test_a_file_that_is_gone_is_no_sql_error(catalogued: Path, tmp_path: Path) -> None:
    """The store's own error, also when the rows are read later."""
    store = drawn(catalogued, tmp_path)
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    with pytest.raises((StorageError, CatalogDamaged, CatalogBusy)):
        run_sql(store, "select * from metaocean")


def test_the_time_until_its_turn_counts(store: CatalogStore) -> None:
    """A statement that has waited for as long as it may take is not prepared any more."""
    text = "select count(*) from t_car"
    came = time.monotonic() - 100
    late = stream_sql(store, text, timeout_s=90, began=came)
    with pytest.raises(SqlError, match=r"SQL0952N.*after 90 s"), late as stream:
        count(stream.batches)
    with stream_sql(store, text, timeout_s=300, began=came) as stream:
        assert count(stream.batches) == 1
