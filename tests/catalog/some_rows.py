"""Rows for the tests of the catalog."""

from datetime import datetime
from pathlib import Path

from catalog.frames.frames import SourceNames
from catalog.lake.schema import POSITION_TAGS
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.values import File, Frame

SHARED_KEY = "shared"
FILES_OF_A_COMMIT = 2
WHEN = datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001 (naive UTC)


def source_names(datasource: str = "d1", platform: str = "NFS") -> SourceNames:
    """The names of the rows' source."""
    return SourceNames(platform, "c1", datasource, "/root")


def file(key: str) -> File:
    """A file."""
    return File(key, 10, WHEN, inode=7, owner="me", size_consumed=512)


def frame(image: str, **class_pixels: int) -> Frame:
    """A frame of the front centre camera."""
    positions = {tag: int(tag in ("front", "center")) for tag in POSITION_TAGS}
    size = sum(class_pixels.values())
    return Frame(image, image + "-label", None, None, "20180807_145028", "front_center", 1, size, 1,
                 positions, class_pixels, 0)  # fmt: skip


def two_frames(prefix: str, shared: str) -> tuple[list[File], list[Frame]]:
    """Files of two frames and one more, and the two frames' tags."""
    keys = [f"{prefix}/{number}" for number in range(FILES_OF_A_COMMIT)]
    return [file(key) for key in [*keys, shared]], [frame(key) for key in keys]


def open_store(folder: Path, **options: float) -> CatalogStore:
    """The catalog in a home's folder, made where there is none."""
    return CatalogStore(CatalogLocation.in_folder(folder / "catalog"), threads=1, **options)  # type: ignore[arg-type]


def local_places(store: CatalogStore) -> tuple[Path, Path]:
    """Metadata file and data folder of a catalog that lies whole in a folder."""
    metadata, data = store.location.metadata, store.location.data
    assert isinstance(metadata, Path)
    assert isinstance(data, Path)
    return metadata, data
