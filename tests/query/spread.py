"""A catalog of frames drawn at random, and the same frames as plain Python."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.frames.frames import SourceNames, register
from catalog.lake.schema import POSITION_TAGS
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.families import write
from catalog.tags.tags import add_class_tags
from catalog.values import File, Frame, make_fkey

CLASSES = {"car": "Car", "bicycle": "Bicycle", "animals": "Animals", "sky": "Sky", "ego": "Ego car"}
"""Class name of each class tag. No frame has an ego car; each source lacks one class."""

_LACKS = {"first": "animals", "second": "bicycle"}
_START = datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001 (naive UTC)
_FAMILY = {
    "speed": "DOUBLE", "gear": "BIGINT", "weather": "VARCHAR", "wet": "BOOLEAN",
    "seen": "TIMESTAMP", "pixels": "INTEGER",
}  # fmt: skip


@dataclass
class SpreadFrame:
    """A frame: its tags of every family by name, None where it has none, and its pixels."""

    fkey: str
    pixels: int
    tags: dict[str, Any] = field(default_factory=dict)


def spread(count: int, seed: int) -> list[SpreadFrame]:
    """Frames of two sources; labels of different sizes; every value that a tag can have."""
    random = np.random.default_rng(seed)

    def one(*values: Any) -> Any:
        return values[int(random.integers(len(values)))]

    frames = []
    for number in range(count):
        source = one("first", "first", "second")
        pixels: dict[str, Any] = {
            tag: 0 if tag == "ego" else one(0, 1, int(random.integers(2, 400_000)))
            for tag in CLASSES
        }
        pixels["unknown_pixels"] = one(0, 0, int(random.integers(1, 5000)))
        pixels[_LACKS[source]] = None
        frame = SpreadFrame(
            make_fkey("c1", source, f"{number}.png"), sum(v or 0 for v in pixels.values()), pixels
        )
        frame.tags |= {"camera": one("front", "front", "rear"), "scene": f"s{number // 17}"}
        frame.tags |= dict.fromkeys(_FAMILY)
        if random.random() < 0.8:
            frame.tags |= {
                "speed": one(None, 0.0, -3.5, math.nan, math.inf, float(random.normal(50, 20))),
                "gear": one(None, 0, 1, 2, 3, 9),
                "weather": one(None, "", "dry", "dry", "rain", "snow", "fog", "it's hail"),
                "wet": one(None, True, False),
                "seen": one(None, _START + timedelta(seconds=int(random.integers(10**6)))),
                "pixels": 7,
            }
        frames.append(frame)
    return frames


def put(store: CatalogStore, frames: list[SpreadFrame]) -> None:
    """Catalog the frames."""
    add_class_tags(store, list(CLASSES))
    for source, lacking in _LACKS.items():
        ours = [frame for frame in frames if frame.fkey.startswith(f"c1:{source}:")]
        names = SourceNames("NFS", "c1", source, "/root")
        keys = [frame.fkey.rpartition(":")[2] for frame in ours]
        files = [File(key + more, 10, _START) for key in keys for more in ("", "-label")]
        with store.writing("spread") as connection:
            register(
                connection,
                names,
                files,
                [_frame(frame, key, lacking) for frame, key in zip(ours, keys, strict=True)],
                1,
            )
    rows = [{"fkey": f.fkey} | {tag: f.tags[tag] for tag in _FAMILY} for f in frames]
    rows = [row for row in rows if row["pixels"] is not None]
    if rows:
        write(store, "drive", _FAMILY, pa.Table.from_pylist(rows))
    not_finite = [
        (f.tags["speed"], f.fkey) for f in frames if not math.isfinite(f.tags["speed"] or 0)
    ]
    if not_finite:  # a family takes none any more; a catalog may have some of before
        with store.writing("spread") as connection:
            connection.executemany(
                "UPDATE lake.main.tags_drive SET speed = ? WHERE fkey = ?", not_finite
            )


def _frame(frame: SpreadFrame, key: str, lacking: str) -> Frame:
    counted = {tag: frame.tags[tag] for tag in CLASSES if tag != lacking}
    return Frame(
        key, f"{key}-label", None, None, frame.tags["scene"], frame.tags["camera"], 1,
        frame.pixels, 1, dict.fromkeys(POSITION_TAGS, 0), counted, frame.tags["unknown_pixels"],
    )  # fmt: skip


def spread_store(folder: Path, frames: list[SpreadFrame]) -> CatalogStore:
    """A new catalog with the frames."""
    location = CatalogLocation.in_folder(folder)
    store = CatalogStore(location, memory_limit="1GB", class_names=CLASSES.copy)
    put(store, frames)
    return store


def with_pixels(frames: list[SpreadFrame], tag: str) -> list[SpreadFrame]:
    """Those with a pixel of a class."""
    return [frame for frame in frames if (frame.tags[tag] or 0) > 0]


def grouped(
    frames: list[SpreadFrame], key: Callable[[SpreadFrame], str]
) -> dict[str, list[SpreadFrame]]:
    """The frames by a key, keys in order."""
    return {k: [f for f in frames if key(f) == k] for k in sorted({key(f) for f in frames})}
