"""Catalogs for the tests of query/, and the same data as plain Python for comparison."""

import json
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from catalog.lake.catalog import Catalog
from catalog.lake.layouts import WIDE
from catalog.records.sources import add_source
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import tag_name
from ingest.scan.scan import scan_source
from query.run.result_format import encoded
from query.run.run_sql import run_sql
from sample_data.regenerate import COMMITTED_COUNTS, COMMITTED_SET

POSITIONS = ("front", "side", "rear", "center", "left_", "right_")


def drawn(catalogued: Path, folder: Path) -> CatalogStore:
    """A catalog of the drawn frames as the bucket a2d2: a copy of the catalogued home's."""
    shutil.copytree(catalogued / "catalog", folder, dirs_exist_ok=True)
    location = CatalogLocation.in_folder(folder)
    return CatalogStore(location, memory_limit="1GB", class_names=class_names)


def in_memory(store: CatalogStore) -> CatalogStore:
    """The same catalog, with its snapshot held in memory."""
    hot = CatalogStore(
        store.location, memory_limit="1GB", snapshot_memory_mb=200, class_names=class_names
    )
    hot.memory.at(None)
    assert hot.memory.wait(300)
    with hot.reading() as snapshot:
        assert snapshot.layout is WIDE
    return hot


def ingested(folder: Path, root: Path) -> CatalogStore:
    """A catalog that holds the source at ``root`` as the bucket a2d2."""
    location = CatalogLocation.in_folder(folder)
    store = CatalogStore(location, memory_limit="1GB", class_names=class_names)
    records = RecordStore(folder / "records.sqlite")
    source = add_source(
        records,
        Source(
            name="a2d2",
            uri=str(root),
            platform="IBM COS",
            cluster="local",
            datasource="a2d2",
        ),
    )
    scan_source(store, records, source)
    return store


@dataclass(frozen=True)
class DrawnFrame:
    """Facts about a drawn frame without the catalog: its files and counts.json."""

    key: str
    label: str
    camera: str
    scene: str
    tags: dict[str, int]

    @property
    def fkey(self) -> str:
        """The catalog's name of the camera image."""
        return f"local:a2d2:{self.key}"


@cache
def class_names() -> dict[str, str]:
    """Class name of each class tag, read off class_list.json."""
    path = COMMITTED_SET / "camera_lidar_semantic" / "class_list.json"
    listed: dict[str, str] = json.loads(path.read_text())
    names = dict.fromkeys(name.rsplit(" ", 1)[0] if name[-1].isdigit() else name
                          for name in listed.values())  # fmt: skip
    return {tag_name(name): name for name in names}


def drawn_frames() -> list[DrawnFrame]:
    """The 24 drawn frames, from the files on disk and the generator's own counts."""
    counts: dict[str, dict[str, int]] = json.loads(COMMITTED_COUNTS.read_text())["frames"]
    frames = []
    for path in sorted(COMMITTED_SET.rglob("*_label_*.png")):
        label = path.relative_to(COMMITTED_SET).as_posix()
        camera = path.parent.name.removeprefix("cam_")
        tags = dict.fromkeys(class_names(), 0)
        tags.update({tag_name(name): n for name, n in counts[path.name].items()})
        words = camera.split("_")
        tags.update({tag: int(tag.rstrip("_") in words) for tag in POSITIONS})
        image = label.replace("/label/", "/camera/").replace("_label_", "_camera_")
        frames.append(DrawnFrame(image, label, camera, path.parts[-4], tags))
    return frames


def listed_files() -> list[str]:
    """Keys of every file of the drawn set that the catalog lists."""
    return sorted(
        path.relative_to(COMMITTED_SET).as_posix()
        for path in COMMITTED_SET.rglob("*")
        if path.is_file()
    )


def rows(store: Catalog, text: str) -> list[tuple[object, ...]]:
    """The rows of a statement as tuples."""
    return as_tuples(run_sql(store, text, timeout_s=120).rows)


def as_tuples(table: pa.Table) -> list[tuple[object, ...]]:
    """An Arrow table's rows."""
    return [tuple(row.values()) for row in table.to_pylist()]


def lines(table: pa.Table) -> list[str]:
    """An Arrow table as lines of Discover's CSV."""
    return b"".join(encoded("csv", table.schema, table.to_batches())).decode().splitlines(True)


def one(store: CatalogStore, expression: str) -> object:
    """The value of an expression without a table."""
    return rows(store, f"select {expression} as v from t_car fetch first 1 row only")[0][0]
