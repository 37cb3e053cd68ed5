"""Small A2D2 trees made for a test, and the stores to scan them into."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from catalog.records.scans import recorded_problems
from catalog.records.sources import add_source
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import recorded_class_names
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.scan.engine import Engine
from ingest.scan.scan import ScanOptions, ScanResult, scan_source
from ingest.scan.scan_counts import Progress
from tests.ingest.png_writer import Picture, Pixel, encode

SCENE = "20180807_145028"
CLASS_LIST = {"#ff0000": "Car 1", "#c80000": "Car 2", "#00ff00": "Bicycle 1", "#87ceff": "Sky"}
CAR, BICYCLE, SKY, NOTHING = (255, 0, 0), (0, 255, 0), (0x87, 0xCE, 0xFF), (9, 9, 9)


def frame_key(kind: str, number: int, extension: str = "png", camera: str = "front_center") -> str:
    """Key of one file of a frame of SCENE."""
    stamp, token = SCENE.replace("_", ""), camera.replace("_", "")
    return f"{SCENE}/{kind}/cam_{camera}/{stamp}_{kind}_{token}_{number:09d}.{extension}"


def put(root: Path, key: str, content: bytes) -> Path:
    """Write a file below the root, folders and all."""
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def add_frame(root: Path, number: int, row: Sequence[Pixel], camera: str = "front_center") -> None:
    """A camera image and its label of one row of pixels."""
    put(root, frame_key("camera", number, camera=camera), encode(Picture([row])))
    put(root, frame_key("label", number, camera=camera), encode(Picture([row])))


def make_tree(root: Path, frames: int = 3) -> Path:
    """A root with a class list and frames 1, 2...; frame n has n red pixels, one green, one sky."""
    put(root, "class_list.json", json.dumps(CLASS_LIST).encode())
    for number in range(1, frames + 1):
        add_frame(root, number, [CAR] * number + [BICYCLE, SKY])
    return root


@dataclass(frozen=True)
class Home:
    """A catalog and records of a test."""

    store: CatalogStore
    records: RecordStore

    @classmethod
    def at(cls, folder: Path) -> "Home":
        """Open or make them in a folder."""
        location = CatalogLocation.in_folder(folder / "catalog")
        records = RecordStore(folder / "records.sqlite")
        names = partial(recorded_class_names, records)
        return cls(CatalogStore(location, threads=1, class_names=names), records)

    def close(self) -> None:
        """Close both."""
        self.store.close()
        self.records.engine.dispose()

    def add(self, root: Path, platform: str = "NFS", name: str = "a2d2") -> Source:
        """Add a source."""
        return add_source(
            self.records,
            Source(name=name, uri=str(root), platform=platform, cluster="host1", datasource=name),
        )

    def scan(
        self,
        source: Source,
        *,
        engine: Engine | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> ScanResult:
        """Scan a source; options are those of ScanOptions."""
        return scan_source(
            self.store,
            self.records,
            source,
            ScanOptions(**options),
            engine=engine,
            progress=progress,
        )

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Rows of a statement over the views."""
        with self.store.reading() as cursor:
            return cursor.execute(statement, list(values)).fetchall()

    def problems(self, scan: int) -> list[tuple[str, str]]:
        """Kind and key of a scan's problems."""
        return [
            (problem.kind, problem.key) for problem in recorded_problems(self.records, scan_id=scan)
        ]
