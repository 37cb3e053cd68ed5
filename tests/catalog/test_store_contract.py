"""What a store promises, wherever its metadata and data lie: SQLite or PostgreSQL, folder or S3."""

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from catalog.errors import (
    CatalogBusy,
    CatalogDamaged,
    InvalidInput,
    NotFound,
    SqlError,
    StorageError,
)
from catalog.frames.catalog_info import info
from catalog.frames.frames import register, remove, remove_source_files
from catalog.lake.connection import Lake
from catalog.maintenance.compaction import compact
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.storage.location import WRITE_LOCK, CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Prefix
from catalog.store import CatalogStore, snapshot_of
from catalog.tags import families
from catalog.tags.tags import add_class_tags
from catalog.values import key_of, make_fkey
from query.statistics.class_statistics import class_report
from tests.catalog.backends import EACH, WITH_MIXED, clone, new_location, open_at, variables
from tests.catalog.replacing import FRAMES, fill, replace
from tests.catalog.some_rows import FILES_OF_A_COMMIT, file, frame, source_names
from tests.ingest.s3_server import moto
from tests.postgres_server import PASSWORD, postgres
from tests.zygote import run_python

REPOSITORY = Path(__file__).parent.parent.parent
COUNT = "SELECT count(*) FROM metaocean"

_empty: dict[str, CatalogLocation] = {}


@pytest.fixture(params=EACH)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A combination of metadata and data, with the keys to it."""
    name = str(request.param)
    if name.startswith("postgres"):
        postgres()
    if name.endswith("s3"):
        moto().sign_in(monkeypatch, tmp_path)
    return name


@pytest.fixture
def location(
    backend: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> CatalogLocation:
    """An empty catalog of the test's own, a copy: making one takes a third of a second."""
    if backend not in _empty:
        _empty[backend] = new_location(backend, tmp_path_factory.mktemp("empty"))
        open_at(_empty[backend]).close()
    return clone(_empty[backend], tmp_path)


@pytest.fixture
def store(location: CatalogLocation) -> Iterator[CatalogStore]:
    """An empty catalog, opened."""
    store = open_at(location)
    yield store
    store.close()


def add(store: CatalogStore, *keys: str, scan: int = 1, **class_pixels: int) -> None:
    """Commit files with their frames."""
    with store.writing("test") as connection:
        files, frames = (
            [file(key) for key in keys],
            [frame(key, **class_pixels) for key in keys],
        )
        register(connection, source_names(), files, frames, scan)


def fkeys(store: CatalogStore, table: str = "metaocean") -> list[str]:
    with store.reading() as cursor:
        rows = cursor.execute(f"SELECT fkey FROM {table} ORDER BY fkey").fetchall()
    return [key_of(row[0], "c1", "d1") for row in rows]


def all_data(location: CatalogLocation) -> list[str]:
    """Every file of the catalog's data."""
    if isinstance(location.data, S3Prefix):
        return sorted(key for key, _ in location.data.objects())
    return sorted(str(path) for path in location.data.rglob("*") if path.is_file())


@pytest.mark.wide
def test_a_reading_transaction_is_one_state(location: CatalogLocation) -> None:
    """Commits that replace, delete and compact change no answer of a transaction that has begun.

    With several threads: with one DuckDB reads SQLite's tables in another way.
    """
    counts = "SELECT count(*), count(DISTINCT fkey), sum(car) FROM lake.main.class_pixels"
    fill(store := open_at(location))
    replace(store, [1, 2])  # there is a delete file, which the next commits replace
    reader = CatalogStore(location, threads=2)

    def remove_some() -> None:
        with store.writing("removed") as connection:
            remove(connection, source_names(), ["f007", "f008"])

    steps: list[Callable[[], object]] = [
        partial(replace, store, [1, 3, 5]),
        remove_some,
        partial(replace, store, range(FRAMES)),
        partial(compact, store, list, keep=timedelta(hours=1)),
        partial(replace, store, [1, 3]),
    ]
    for step in steps:
        with reader.reading() as cursor:
            number = snapshot_of(cursor)
            before = cursor.execute(counts).fetchone()
            assert before is not None
            step()
            for _ in range(2):
                assert cursor.execute(counts).fetchone() == before
                files = cursor.execute("SELECT count(*) FROM metaocean").fetchone()
                assert files == before[:1]
                assert snapshot_of(cursor) == number
        assert before[0] == before[1]
    reader.close()
    store.close()


@pytest.mark.wide
@pytest.mark.parametrize("backend", WITH_MIXED, indirect=True)
def test_made_once_and_opened_again(backend: str, tmp_path: Path) -> None:
    """The first store makes the catalog, the second finds it and what was written."""
    location = new_location(backend, tmp_path)
    first = open_at(location)
    assert (info(first).files, first.snapshot()) == (0, 1)
    add(first, "a")
    first.close()
    second = open_at(location)
    add(second, "b")
    assert fkeys(first) == fkeys(second) == ["a", "b"]
    assert second.snapshot() == 3


def test_all_or_nothing(store: CatalogStore) -> None:
    """A block that raises undoes rows, columns and families, keeps no snapshot, frees the lock."""
    before = store.snapshot()

    def write_and_fail() -> None:
        with store.writing("fails") as connection:
            register(connection, source_names(), [file("a")], [frame("a")], 1)
            families.define(connection, "late", {"loss": "DOUBLE"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert store.snapshot() == before
    assert fkeys(store) == []
    add(store, "a")
    assert fkeys(store) == ["a"]


@pytest.mark.wide
def test_rows_replace_rows(store: CatalogStore) -> None:
    """A key that comes again has one row, and its newest tags."""
    add_class_tags(store, ["car", "sky"])
    for scan in (1, 2):
        add(store, "a", "b", scan=scan, car=scan, sky=2)
    assert fkeys(store) == fkeys(store, "t_car") == ["a", "b"]
    with store.reading() as cursor:
        values = cursor.execute("SELECT DISTINCT value FROM t_car").fetchall()
        assert values == [("2",)]
        wide = cursor.execute("SELECT filename, car, front FROM metaocean_view ORDER BY fkey")
        assert wide.fetchall() == [("a", "2", "1"), ("b", "2", "1")]
    store.class_names = {"car": "Car"}.copy
    assert class_report(store).classes[0].pixels == 4
    with pytest.raises(InvalidInput, match="listed twice"):
        add(store, "c", "c")
    with store.writing("r") as connection:
        remove(connection, source_names(), ["a", "never there"])
    assert fkeys(store) == fkeys(store, "t_car") == ["b"]
    with store.writing("r") as connection:
        assert remove_source_files(connection, source_names()) == 1
    assert fkeys(store) == fkeys(store, "t_front") == []


def test_readers_keep_their_snapshot(store: CatalogStore, location: CatalogLocation) -> None:
    """Another store commits while a reader is in the middle: it sees nothing of it."""
    add(store, "a")
    other = open_at(location)
    with store.reading() as cursor:
        before = snapshot_of(cursor)
        half_read = cursor.execute("SELECT fkey FROM metaocean")
        with other.writing("open") as connection:
            register(connection, source_names(), [file("b")], [], 1)
            assert fkeys(store) == ["a"]  # and nobody waits for the writer
        families.write(other, "late", {"loss": "DOUBLE"})
        assert half_read.fetchall() == [("c1:d1:a",)]
        assert cursor.execute(COUNT).fetchall() == [(1,)]
        assert snapshot_of(cursor) == before
    assert fkeys(store) == ["a", "b"]
    with store.reading(before) as cursor:
        assert cursor.execute(COUNT).fetchall() == [(1,)]
    with store.reading() as cursor:
        old = f"SELECT count(*) FROM lake.main.files AT (VERSION => {before})"
        assert cursor.execute(old).fetchall() == [(1,)]
    with pytest.raises(NotFound, match="snapshot"), store.reading(999):
        pass
    other.close()


def test_commits_have_author_and_reason(store: CatalogStore) -> None:
    """Each snapshot says who made it and what for, whatever characters that has."""
    with store.writing('it\'s; the "reason" %s $1', author="Zoë") as connection:
        register(connection, source_names(), [file("ä'\"\\ b%")], [], 1)
    with store.reading() as cursor:
        rows = cursor.execute(
            "SELECT author, commit_message FROM lake.snapshots() ORDER BY snapshot_id"
        ).fetchall()
    assert rows[1:] == [("framesift", "catalog created"), ("Zoë", 'it\'s; the "reason" %s $1')]
    assert fkeys(store) == ["ä'\"\\ b%"]


def test_tag_families(store: CatalogStore) -> None:
    """A family of every type is made, filled, extended and dropped; values come back as given.

    A number that is not finite is no value.
    """
    add(store, "a", "b")
    when = pa.array([0, 86_400_000_000], pa.timestamp("us"))
    rows = pa.table(
        {
            "fkey": [make_fkey("c1", "d1", key) for key in ("a", "b")],
            "is-wet": [True, None],
            "number": pa.array([2**31 - 1, -1], pa.int32()),
            "large": [2**62, None],
            "loss": [0.1, float("inf")],
            "word": ["ä\n'\"", ""],
            "at_": when,
        }
    )
    kinds = dict(zip(rows.column_names[1:], families.TYPES, strict=True))
    written = families.write(store, "any", kinds, rows)
    assert (written.rows, written.unknown) == (2, ())
    with store.reading() as cursor:
        stored = cursor.execute("SELECT * FROM lake.main.tags_any ORDER BY fkey").to_arrow_table()
        first, second = rows.to_pylist()
        assert stored.to_pylist() == [first, second | {"loss": None}]
        assert cursor.execute('SELECT value FROM "t_is-wet"').fetchall() == [("true",)]
    more = rows.select(["fkey"]).append_column("gear", pa.array([1, 2], pa.int32()))
    families.write(store, "any", {"gear": "INTEGER"}, more)
    with store.reading() as cursor:
        stored = cursor.execute("SELECT gear, word FROM metaocean_view ORDER BY fkey").fetchall()
    assert stored == [("1", "ä\n'\""), ("2", "")]
    assert families.drop(store, "any") == 2
    assert families.families(store) == []
    with pytest.raises(duckdb.CatalogException), store.reading() as cursor:
        cursor.execute("SELECT * FROM t_word")


def test_busy_names_the_holder(store: CatalogStore, location: CatalogLocation) -> None:
    """A write that waits in vain says who holds the lock; readers and other locks do not wait."""
    other = open_at(location, lock_wait_s=0.3)
    with store.lock(WRITE_LOCK, "held"):
        with pytest.raises(CatalogBusy) as error:
            add(other, "a")
        assert fkeys(other) == []
        with other.lock("scan-1", "scanned", 0.0):
            pass
    expected = f"by process {os.getpid()} on {socket.gethostname()} since 2"
    assert expected in str(error.value)
    assert "waited 0.3 s" in str(error.value)
    add(other, "a")
    with pytest.raises(ZeroDivisionError), store.lock(WRITE_LOCK, "held"):
        raise ZeroDivisionError
    add(other, "b")
    other.close()


@pytest.mark.wide
def test_four_processes_at_once(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that find no catalog make it once and lose no commit; fkeys stay unique."""
    location = new_location(backend, tmp_path)
    path = postgres().new() if backend.startswith("postgres") else tmp_path / "records.sqlite"
    for name, value in variables(location, path).items():
        monkeypatch.setenv(name, value)
    writers, commits = 4, 4
    done = run_python("-m", "tests.catalog.writers", tmp_path, str(writers), str(commits))
    assert (done.returncode, done.stderr) == (0, "")
    expected = {
        f"w{writer}/{commit}/{number}"
        for writer in range(writers)
        for commit in range(commits)
        for number in range(FILES_OF_A_COMMIT)
    }
    store = open_at(location)
    assert fkeys(store) == sorted(expected | {"shared"})
    assert store.snapshot() == 1 + writers * commits
    assert len(recorded_sources(RecordStore(path))) == writers * commits


def test_a_commit_behind_the_lock_s_back(store: CatalogStore, location: CatalogLocation) -> None:
    """Where the lock did not hold somebody off, the later commit fails: no fkey is there twice."""
    rogue = Lake(location, {}, read_only=False)

    def write() -> None:
        with store.writing("later") as connection:
            register(connection, source_names(), [file("a")], [frame("a")], 1)
            rogue.connection.execute("USE lake.main")
            rogue.connection.execute("BEGIN")
            register(rogue.connection, source_names(), [file("a")], [frame("a")], 1)
            rogue.connection.execute("COMMIT")

    if isinstance(location.metadata, Postgres):
        with pytest.raises(CatalogBusy, match="another commit came in between"):
            write()
    else:
        with pytest.raises((CatalogBusy, StorageError, CatalogDamaged, duckdb.Error)):
            write()
    rogue.close()
    assert fkeys(store) in ([], ["a"])
    add(store, "a", "b")
    assert fkeys(store) == ["a", "b"]


STATEMENTS = (
    "SELECT * FROM read_text('{data}/../../outside.txt')",
    "SELECT * FROM read_text('{data}/main/../../../outside.txt')",
    "SELECT * FROM read_blob('{data}/main/files/*')",
    "SELECT * FROM read_parquet('{data}/main/files/*.parquet')",
    "SELECT * FROM '{data}/main/files/*.parquet'",
    'SELECT * FROM "{data}/../../outside.csv"',
    "SELECT (SELECT content FROM read_text('{data}/x'))",
    "SELECT * FROM glob('{data}/**')",
    "SELECT * FROM glob('s3://*')",
    "SELECT * FROM read_text('s3://bucket/x?s3_endpoint=127.0.0.1:1')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM parquet_metadata('{data}/main/files/*.parquet')",
    "SELECT * FROM sniff_csv('{data}/x')",
    "SELECT * FROM postgres_scan('dbname=postgres', 'public', 't')",
    "SELECT * FROM postgres_query('__ducklake_metadata_lake', 'SELECT 1')",
    "CALL postgres_execute('__ducklake_metadata_lake', 'CREATE TABLE t (a int)')",
    "SELECT * FROM sqlite_scan('/x', 't')",
    "SELECT * FROM __ducklake_metadata_lake.public.users",
    "SELECT * FROM __ducklake_metadata_lake.users",
    "SELECT * FROM __ducklake_metadata_lake.pg_catalog.pg_authid",
    "SELECT * FROM duckdb_secrets(redact => false)",
    "SELECT * FROM duckdb_logs()",
    "SELECT * FROM which_secret('{data}/x', 's3')",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "DROP SECRET catalog_s3",
    "COPY (SELECT 1) TO '{data}/x.csv'",
    "COPY (SELECT 1) TO '/tmp/x.csv'",
    "ATTACH '{data}/x.db'",
    "ATTACH 'dbname=postgres' (TYPE postgres)",
    "DELETE FROM lake.main.files",
    "INSERT INTO lake.main.catalog_format VALUES (9)",
    "DROP TABLE lake.main.files",
    "UPDATE __ducklake_metadata_lake.ducklake_metadata SET value = ''",
    "SET enable_external_access = true",
    "SET s3_endpoint = '127.0.0.1:1'",
    "LOAD httpfs",
    "COMMIT",
    "SELECT 1; SELECT 2",
)


def test_readers_are_locked_down(store: CatalogStore, location: CatalogLocation) -> None:
    """No statement reaches a file, a server, a secret or another table, or changes anything."""
    add(store, "a")
    before = all_data(location)
    outside = b"outside,secret\n1,2\n"
    if isinstance(location.data, S3Prefix):
        moto().client().put_object(Bucket=location.data.bucket, Key="outside.txt", Body=outside)
        moto().client().put_object(Bucket=location.data.bucket, Key="outside.csv", Body=outside)
    else:
        (location.data.parent.parent / "outside.txt").write_bytes(outside)
        (location.data.parent.parent / "outside.csv").write_bytes(outside)
    data = str(location.data).rstrip("/")
    for pattern in STATEMENTS:
        statement = pattern.replace("{data}", data)
        with (
            pytest.raises((SqlError, duckdb.Error, StorageError, CatalogDamaged)) as error,
            store.reading() as cursor,
        ):
            cursor.execute(statement).fetchall()
        assert "secret\n" not in str(error.value)
    assert all_data(location) == before
    assert fkeys(store) == ["a"]


def test_secrets_stay_secret(store: CatalogStore, location: CatalogLocation) -> None:
    """What a reader may ask of DuckDB itself shows no password and no key, nor do the settings."""
    lake = Lake(location, {}, read_only=True)
    settings = lake.connection.cursor().execute("SELECT value FROM duckdb_settings()").fetchall()
    lake.close()
    assert ("testing",) not in settings  # which is what the environment has for S3
    text = f"{location!r} {location.metadata} {location.data} {store!r}"
    with store.reading() as cursor:
        for statement in (
            "SELECT * FROM duckdb_databases()",
            "SELECT * FROM duckdb_settings()",
            "SELECT current_setting('s3_secret_access_key')",
            "SELECT * FROM lake.ducklake_metadata",
            "SELECT * FROM __ducklake_metadata_lake.ducklake_metadata",
            "SELECT sql FROM duckdb_views()",
        ):
            try:
                text += repr(cursor.execute(statement).fetchall())
            except (duckdb.Error, SqlError) as error:
                text += str(error)
    assert PASSWORD not in text
    assert "'testing'" not in text
    assert "secret=" not in text


@pytest.mark.parametrize(
    ("version", "advice"),
    [(9, "use the version"), (1, r"with the version .*\(framesift dataset export\)")],
)
def test_another_format_is_refused(
    store: CatalogStore, location: CatalogLocation, version: int, advice: str
) -> None:
    """A catalog of a later format, or one of before, is refused, saying how to go on."""
    with store.writing("another format") as connection:
        connection.execute("UPDATE catalog_format SET version = ?", [version])
    refused = rf"catalog format {version}, this version reads 2; {advice}"
    with pytest.raises(CatalogDamaged, match=refused):
        open_at(location)


@pytest.mark.parametrize("backend", WITH_MIXED, indirect=True)
def test_lost_data_files_and_lost_metadata(store: CatalogStore, location: CatalogLocation) -> None:
    """A Parquet file that is gone, or metadata gone beside data, is an error with the way back."""
    add(store, "a")
    if isinstance(location.data, S3Prefix):
        (lost,) = [key for key in all_data(location) if "/files/" in key]
        moto().client().delete_object(Bucket=location.data.bucket, Key=lost)
    else:
        (lost,) = [path for path in all_data(location) if "/files/" in path]
        moved = Path(lost).rename(location.data.parent / "kept")
    store.close()
    with pytest.raises(CatalogDamaged, match="from a backup") as error:
        fkeys(store)
    assert Path(lost).name in str(error.value)
    if not isinstance(location.data, S3Prefix):
        moved.rename(lost)
        assert fkeys(store) == ["a"]
    add(store, "b")
    store.close()
    if isinstance(location.metadata, Postgres):
        empty = postgres().new()
        again = CatalogLocation(empty, location.data)
    else:
        again = CatalogLocation(location.metadata.with_name("other.sqlite"), location.data)
    with pytest.raises(CatalogDamaged, match="missing, but"):
        open_at(again)
