"""Killed writers and servers: every acknowledged commit is there, whole, and work goes on."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.errors import CatalogBusy, FramesiftError, StorageError
from catalog.frames.catalog_info import info
from catalog.frames.frames import register
from catalog.records.sources import add_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.location import CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.store import CatalogStore
from tests.api.servers import wait_until
from tests.catalog.backends import new_location, new_prefix, open_at, variables
from tests.catalog.killed_writers import check
from tests.catalog.some_rows import file, frame, source_names
from tests.ingest.s3_server import moto
from tests.postgres_server import own_postgres, postgres

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parent.parent.parent
KILLS = 10


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite-folder", "postgres-s3"])
def test_writers_killed_at_random_moments(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL, ten times, from the making of the catalog on: nothing acknowledged is lost."""
    moto().sign_in(monkeypatch, tmp_path)
    location = new_location(backend, tmp_path)
    path = postgres().new() if backend.startswith("postgres") else tmp_path / "records.sqlite"
    for name, value in variables(location, path).items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-m", "tests.catalog.killed_writers", tmp_path, str(KILLS), "7"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    acknowledged = json.loads(done.stdout)
    assert len(acknowledged) > 3
    check(open_at(location), acknowledged)


def add(store: CatalogStore, *keys: str) -> None:
    with store.writing("test") as connection:
        register(connection, source_names(), [file(key) for key in keys],
                 [frame(key) for key in keys], 1)  # fmt: skip


def _repeat(step: Callable[[], None], stop: threading.Event, errors: list[BaseException]) -> None:
    """Do it until told to stop; errors of ours are kept, any other ends it."""
    while not stop.is_set():
        try:
            step()
        except FramesiftError as error:
            errors.append(error)
            time.sleep(0.05)
        except BaseException as error:
            errors.append(error)
            return


def test_a_server_that_dies_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL killed under readers and writers: clear errors; the same stores go on later."""
    moto().sign_in(monkeypatch, tmp_path)
    with own_postgres() as server:
        location = CatalogLocation(server.new(), new_prefix(moto()))
        records = RecordStore(server.new())
        store, other = open_at(location), open_at(location)
        acknowledged: list[str] = []
        errors: list[BaseException] = []
        stop = threading.Event()

        def write() -> None:
            number = len(acknowledged)
            add(store, f"k{number}")
            acknowledged.append(f"k{number}")

        def read() -> None:
            before = len(acknowledged)
            assert info(other).files >= before

        def record() -> None:
            number = len(recorded_sources(records))
            add_source(
                records,
                Source(
                    name=f"s{number}", uri="/", platform="NFS", cluster="c", datasource=f"{number}"
                ),
            )

        threads = [
            threading.Thread(target=_repeat, args=(step, stop, errors))
            for step in (write, read, record)
        ]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = len(acknowledged), len(errors)
            wait_until(lambda: len(acknowledged) > before[0])  # noqa: B023 (called at once)
            server.kill()
            wait_until(lambda: len(errors) > before[1])  # noqa: B023
            server.start()
        before = len(acknowledged), len(errors)
        wait_until(lambda: len(acknowledged) > before[0])
        stop.set()
        for thread in threads:
            thread.join(300)
        foreign = [error for error in errors if not isinstance(error, StorageError | CatalogBusy)]
        assert foreign == []
        assert any("no answer" in str(error) or "cannot be used" in str(error) for error in errors)
        assert not any("\n" in str(error) for error in errors)
        write()
        read()
        record()
        with store.reading() as cursor:
            rows = cursor.execute("SELECT fkey FROM metaocean").fetchall()
        assert len(rows) == len(set(rows))
        # A commit whose answer was lost may be there as well; none that was acknowledged is not.
        assert {f"c1:d1:{key}" for key in acknowledged} == {row[0] for row in rows}


def test_a_server_that_dies_within_a_transaction(tmp_path: Path) -> None:
    """Killed between a write and its commit: StorageError, nothing of it kept, then it works."""
    with own_postgres() as server:
        location = CatalogLocation(server.new(), tmp_path / "data")
        store = open_at(location)
        add(store, "kept")

        def write_while_it_dies() -> None:
            with store.writing("r") as connection:
                register(connection, source_names(), [file("lost")], [frame("lost")], 1)
                server.kill()

        with pytest.raises(StorageError):
            write_while_it_dies()
        with pytest.raises(StorageError, match=r"no answer|cannot be"), store.reading():
            pass
        server.start()
        assert info(store).files == 1
        add(store, "lost")
        assert info(store).files == 2


def test_a_full_disk_of_the_server_is_said(tmp_path: Path) -> None:
    """What PostgreSQL itself refuses is StorageError with its reason, and nothing is kept."""
    database = postgres().new()
    store = open_at(CatalogLocation(database, tmp_path / "data"))
    add(store, "a")
    assert isinstance(database, Postgres)
    with database.connected() as connection:
        connection.execute(
            f'ALTER DATABASE "{database.keywords["dbname"]}" SET default_transaction_read_only = on'
        )
    fresh = open_at(CatalogLocation(database, tmp_path / "data"))
    assert info(fresh).files == 1
    with pytest.raises(StorageError, match="read-only"):
        add(fresh, "b")
    assert info(store).files == 1
