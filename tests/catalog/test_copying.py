"""framesift catalog copy: a local catalog with its history and records becomes a team's."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import AlreadyExists, CatalogBusy, CatalogDamaged, InvalidInput, StorageError
from catalog.frames.catalog_info import info
from catalog.frames.frames import register, remove
from catalog.lake.metadata.own_tables import is_made
from catalog.maintenance.copying import copy_catalog
from catalog.records.datasets import recorded_datasets
from catalog.records.scans import recorded_problems, replace_problems
from catalog.records.sources import add_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Scan, Source
from catalog.storage.location import WRITE_LOCK, CatalogLocation
from catalog.storage.postgres import Postgres
from catalog.storage.s3_prefix import S3Prefix
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.tags import add_class_tags
from catalog.values import Problem, make_fkey
from tests.api.servers import framesift
from tests.catalog.backends import new_location, open_at, variables
from tests.catalog.some_rows import file, frame, local_places, open_store, source_names
from tests.ingest.s3_server import moto
from tests.postgres_server import PASSWORD, postgres

TABLES = ("metaocean_view", "lake.main.files", "lake.main.class_pixels", "lake.main.tags_frame")


@pytest.fixture(autouse=True)
def _signed_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    moto().sign_in(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> tuple[CatalogStore, RecordStore]:
    """A local home with history: rows replaced and removed, families extended and dropped."""
    store = open_store(tmp_path / "home")
    add_class_tags(store, ["car", "sky"])
    for scan in range(3):
        keys = [f"k{number}" for number in range(scan, scan + 4)]
        with store.writing(f"scan {scan}", author="ingest") as connection:
            frames = [frame(key, car=scan, sky=7) for key in keys]
            register(connection, source_names(), [file(key) for key in keys], frames, scan)
    rows = pa.table({"fkey": [make_fkey("c1", "d1", "k1")], "loss": [0.5]})
    families.write(store, "scores", {"loss": "DOUBLE"}, rows)
    families.write(store, "gone", {"is-wet": "BOOLEAN"}, None)
    families.drop(store, "gone")
    with store.writing("fewer") as connection:
        remove(connection, source_names(), ["k0"])
    records = RecordStore(tmp_path / "home" / "records" / "records.sqlite")
    source = add_source(
        records, Source(name="a", uri="/ä'", platform="NFS", cluster="c1", datasource="d1")
    )
    with records.session() as session:
        scan_record = Scan(source_id=source.id, state="done", counts={"files": 3})
        session.add(scan_record)
        session.add(
            Dataset(name="val", version=1, content_id="x", question={"where": "car > 1"},
                    snapshot=4, frames=2, splits={}, class_pixels={}, manifest="/m")
        )  # fmt: skip
        session.flush()
        number = scan_record.id
    replace_problems(records, source.id, number, [], [Problem("orphan", "k9", "no partner")])
    return store, records


def everything(store: CatalogStore) -> list[object]:
    """What every snapshot has in every table."""
    content: list[object] = []
    for number in range(1, store.snapshot() + 1):
        with store.reading(number) as cursor:
            content.extend(
                cursor.execute(f"SELECT * FROM {table} ORDER BY fkey").fetchall()
                for table in TABLES
            )
    with store.reading() as cursor:
        content.append(cursor.execute("SELECT * FROM lake.snapshots() ORDER BY 1").fetchall())
    return content


@pytest.mark.wide
def test_a_copy_is_equal_and_goes_on(
    home: tuple[CatalogStore, RecordStore], tmp_path: Path
) -> None:
    """Every snapshot reads the same, records have their numbers, and both are written further."""
    store, records = home
    target = new_location("postgres-s3", tmp_path / "team")
    team_records = RecordStore(postgres().new())
    told: list[tuple[int, int]] = []
    copied = copy_catalog(
        store, target, (records, team_records), lambda done, files: told.append((done, files))
    )
    team = open_at(target)
    assert everything(team) == everything(store)
    assert copied.snapshot == copied.snapshots - 1 == store.snapshot()
    assert copied.rows["files"] == info(store).files == 5
    assert told[-1] == (copied.files, copied.files)
    assert copied.records["sources"] == copied.records["datasets"] == 1
    (dataset,) = recorded_datasets(team_records)
    assert (dataset.question, dataset.snapshot) == ({"where": "car > 1"}, 4)
    assert recorded_problems(team_records, source_id=1) == recorded_problems(records, source_id=1)
    for one, of_one in ((store, records), (team, team_records)):
        with one.writing("more") as connection:
            register(connection, source_names(), [file("new")], [frame("new", car=1, sky=1)], 9)
        add_class_tags(one, ["truck"])
        families.write(one, "later", {"x": "INTEGER"}, None)
        source = Source(name="b", uri="/b", platform="NFS", cluster="c", datasource="b")
        assert add_source(of_one, source).id == 2
    assert info(team) == info(store)


@pytest.mark.wide
def test_what_is_there_is_not_touched(
    home: tuple[CatalogStore, RecordStore], tmp_path: Path
) -> None:
    """A catalog, data or records at the target are refused and stay; SQLite is refused."""
    store, records = home
    target = new_location("postgres-s3", tmp_path)
    used = new_location("postgres-s3", tmp_path)
    before = open_at(used).snapshot()
    full_records = RecordStore(tmp_path / "full.sqlite")
    add_source(
        full_records, Source(name="z", uri="/z", platform="NFS", cluster="z", datasource="z")
    )
    for target_place, of_records in (
        (used, None),
        (CatalogLocation(used.metadata, target.data), None),
        (CatalogLocation(target.metadata, used.data), None),
        (target, (records, full_records)),
    ):
        with pytest.raises(AlreadyExists):
            copy_catalog(store, target_place, of_records)
    with pytest.raises(InvalidInput, match="framesift catalog backup"):
        copy_catalog(store, CatalogLocation(tmp_path / "x.sqlite", tmp_path / "x"))
    assert open_at(used).snapshot() == before
    assert not is_made(target)
    copy_catalog(store, target)


@pytest.mark.wide
@pytest.mark.parametrize("backend", ["postgres-folder", "postgres-s3"])
def test_nothing_is_left_of_a_copy_that_fails(
    backend: str, home: tuple[CatalogStore, RecordStore], tmp_path: Path
) -> None:
    """A data file that is missing, or has other rows: the target is empty again, then usable."""
    store, records = home
    target = new_location(backend, tmp_path / "team")
    _, data = local_places(store)
    lost = max((data / "main" / "files").glob("*.parquet"))
    hidden = lost.rename(tmp_path / "hidden")
    team_records = RecordStore(postgres().new())
    with pytest.raises(StorageError, match="missing, and a snapshot needs it"):
        copy_catalog(store, target, (records, team_records))
    lost.write_bytes(hidden.read_bytes()[:-1])
    with pytest.raises(CatalogDamaged):
        copy_catalog(store, target, (records, team_records))
    assert isinstance(target.metadata, Postgres)
    with target.metadata.connected() as connection:
        left = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert left == []
    if isinstance(target.data, S3Prefix):
        assert list(target.data.objects()) == []
    else:
        assert not target.data.exists()
    assert recorded_sources(team_records) == []
    hidden.replace(lost)
    copy_catalog(store, target, (records, team_records))
    if backend == "postgres-folder":  # of the other one: test_a_copy_is_equal_and_goes_on
        assert everything(open_at(target)) == everything(store)


@pytest.mark.wide
def test_writers_wait_for_a_copy(home: tuple[CatalogStore, RecordStore], tmp_path: Path) -> None:
    """A copy takes the write lock of the original: with it held elsewhere, it says so."""
    store, _ = home
    hurried = open_store(tmp_path / "home", lock_wait_s=0.1)
    busy = pytest.raises(CatalogBusy, match="the catalog is being copied")
    with store.lock(WRITE_LOCK, "x"), busy:
        copy_catalog(hurried, new_location("postgres-folder", tmp_path / "team"))


@pytest.mark.wide
def test_the_command(home: tuple[CatalogStore, RecordStore], tmp_path: Path) -> None:
    """`catalog copy`, then everything by the team's settings; no password in what is printed."""
    store, _ = home
    store.close()
    target = new_location("postgres-s3", tmp_path)
    database = postgres().new()
    settings = variables(target, database)
    endpoint = {"FRAMESIFT_CATALOG_S3_ENDPOINT": settings["FRAMESIFT_CATALOG_S3_ENDPOINT"]}
    arguments = [
        "catalog", "copy", settings["FRAMESIFT_CATALOG_METADATA"],
        settings["FRAMESIFT_CATALOG_DATA"], "--records", settings["FRAMESIFT_RECORDS"],
    ]  # fmt: skip
    run = framesift(tmp_path / "home", *arguments, variables=endpoint)
    assert run.returncode == 0, run.stderr
    assert "copied 10 snapshots, the newest 9" in run.stdout
    assert PASSWORD not in run.stdout + run.stderr
    again = framesift(tmp_path / "home", *arguments, variables=endpoint)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    info_run = framesift(tmp_path / "empty", "info", "--json", variables=settings)
    information = json.loads(info_run.stdout)
    assert (information["files"], information["sources"], information["datasets"]) == (5, 1, 1)
    assert not (tmp_path / "empty" / "catalog").exists()
