"""A home made by the previous release: opened, brought forward, read, and ingested into.

fixtures/home_1.tar.xz was made at 0.1.0 by ingesting one drawn scene (3 frames) from a folder,
extracting family `image`, importing family `mine` and saving dataset `kept`; its records have
schema 0001.
"""

import json
import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from catalog.errors import StorageError
from catalog.frames.frames import info
from catalog.maintenance.check import check
from catalog.records.datasets import recorded_datasets
from catalog.records.scans import last_scan
from catalog.records.sources import recorded_sources
from catalog.records.store import NEWEST, RecordStore
from catalog.records.tag_definitions import recorded_class_names
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FORMAT
from tests.api.servers import framesift
from tests.disks import small_disk

FIXTURE = Path(__file__).parent / "fixtures" / "home_1.tar.xz"
SCENE, NEW_SCENE = "20260507_155109", "20260616_094856"
OF_THEN = 6
"""Newest snapshot in it."""


@pytest.fixture
def home(tmp_path: Path, sample_root: Path) -> Path:
    """The old home, its source where this machine has it, with one more scene by now."""
    shutil.unpack_archive(FIXTURE, tmp_path)
    source = tmp_path / "source"
    source.mkdir()
    frames = sample_root / "camera_lidar_semantic"
    shutil.copy(frames / "class_list.json", source)
    for scene in (SCENE, NEW_SCENE):
        shutil.copytree(frames / scene, source / scene)
    with closing(sqlite3.connect(tmp_path / "home_1" / "records" / "records.sqlite")) as records:
        records.execute("UPDATE sources SET uri = ?", [str(source)])
        records.commit()
        assert records.execute("SELECT version_num FROM alembic_version").fetchall() == [("0001",)]
    return tmp_path / "home_1"


def test_records_are_brought_forward(home: Path) -> None:
    """Stores that open at once migrate once; every record is there, and the new column."""
    path = home / "records" / "records.sqlite"
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: RecordStore(path), range(4)))
    for records in stores:
        (source,) = recorded_sources(records)
        (dataset,) = recorded_datasets(records)
        assert (source.name, dataset.name, dataset.snapshot) == ("old", "kept", OF_THEN)
        assert len(source.version) == 32
        how = (dataset.seed, dataset.class_frames, dataset.parents, dataset.report)
        assert how == ("0", {}, [], {})
        scan = last_scan(records, source.id)
        assert scan is not None
        assert scan.kind == "scan"
        assert recorded_class_names(records)["car"] == "Car"
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("SELECT version_num FROM alembic_version").fetchall() == [(NEWEST,)]


def test_nothing_is_wrong_with_it(home: Path) -> None:
    """Views and format are brought forward when it is opened, once, and a check finds nothing."""
    for _ in range(2):
        store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
        assert check(store, {}) == []
        assert store.snapshot() == OF_THEN + 2
        with store.reading() as cursor:
            rows = cursor.execute("SELECT count(*) FROM metaocean_view WHERE nodename IS NULL")
            assert rows.fetchone() == (10,)


def test_the_catalog_reads_as_then(home: Path) -> None:
    """Rows, tags of every family, views and old snapshots are there."""
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    information = info(store)
    assert (information.files, information.frames, information.tags, information.snapshot) == (
        10,
        3,
        61,
        OF_THEN + 2,
    )
    with store.reading() as cursor:
        rows = cursor.execute(
            "SELECT frame_number, car, weather, image_sharpness IS NOT NULL FROM metaocean_view "
            "WHERE car IS NOT NULL ORDER BY 1"
        ).fetchall()
        assert rows == [
            ("129", "283788", "rain", True),
            ("149", "90283", None, True),
            ("166", "53966", "sun", True),
        ]
        assert cursor.execute("SELECT sum(value::INT) FROM t_rating").fetchall() == [(8,)]
    with store.reading(3) as cursor:
        assert cursor.execute("SELECT count(*) FROM metaocean").fetchall() == [(10,)]


def test_work_goes_on(home: Path) -> None:
    """An ingest finds the old scene and a new one; tags are imported; the dataset is there."""
    run = framesift(home, "ingest", "old", "--json")
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    labels = len(list((home.parent / "source").rglob("*_label_*.png")))
    information = json.loads(framesift(home, "info", "--json").stdout)
    assert information["frames"] == labels > 3
    assert information["files"] == counts["files"] > 10
    assert counts["bad_files"] == counts["removed"] == 0
    table = home / "more.csv"
    table.write_text("filename,weather\n20260507155109_camera_frontcenter_000000149.png,fog\n")
    imported = framesift(home, "tags", "import", str(table), "--family", "mine", "--json")
    assert json.loads(imported.stdout)["imported"] == 1, imported.stderr
    rows = framesift(home, "sql", "select weather from metaocean_view where weather = 'fog'")
    assert "fog" in rows.stdout
    listed = json.loads(framesift(home, "dataset", "list", "--json").stdout)
    assert [dataset["name"] for dataset in listed] == ["kept"]


def test_its_dataset_is_read_and_divided_anew(home: Path) -> None:
    """A manifest of format 1 is read, compared and exported; its new version has today's."""
    folder = home / "datasets" / "kept" / "v1"
    with closing(sqlite3.connect(home / "records" / "records.sqlite")) as records:
        records.execute("UPDATE datasets SET manifest = ?", [str(folder)])
        records.commit()
    assert Manifest.read(folder).header.format == 1
    divided = framesift(home, "dataset", "split", "kept", "--split", "a=0.5,b=0.5",
                        "--split-by", "frame", "--allow-leakage", "--json")  # fmt: skip
    assert divided.returncode == 0, divided.stderr
    document = json.loads(divided.stdout)
    assert (document["version"], document["parents"][0]["name"]) == (2, "kept@1")
    assert Manifest.read(Path(document["manifest"])).header.format == FORMAT
    moved = json.loads(framesift(home, "dataset", "diff", "kept@1", "kept", "--json").stdout)
    assert moved["frames_moved"] == moved["frames_before"] == 3
    report = json.loads(framesift(home, "dataset", "show", "kept@1", "--json").stdout)
    assert (report["class_frames"], report["seed"]) == ({}, 0)


def test_where_it_cannot_be_brought_forward(home: Path, tmp_path: Path) -> None:
    """On a disk that is read-only: the format, what this release does with it, and what to do."""
    location = CatalogLocation.in_folder(home / "catalog")
    data = tmp_path / "data"
    with small_disk(data, "size=20m"):
        shutil.copytree(home / "catalog" / "data", data, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", str(data)], check=True)
        shutil.rmtree(home / "catalog" / "data")
        (home / "catalog" / "data").symlink_to(data)
        with pytest.raises(StorageError, match=r"catalog format 1, .* read-only.* Open it once"):
            CatalogStore(location)
    shutil.rmtree(data)
