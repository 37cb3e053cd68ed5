"""Caches for tests: staged datasets of small files, as a staging leaves them, without a catalog."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ingest.labels.class_list import ClassList
from pipeline.cache.lease import BEAT_FILE, LEASE_FILE, LEASES, MANIFESTS, USED_FILE
from pipeline.entry_name import HEADER_FILE
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_rows import FRAMES_SCHEMA

CLASSES = ClassList.from_colours({"#ff0000": "Car"})
BYTES = 1000
"""Size of each file."""


def stage(cache: Path, name: str, files: Sequence[str], used: float = 0.0) -> Path:
    """The staged manifest of a dataset of these images, whose entries lie in the cache.

    Args:
        cache: Folder of the cache.
        name: The dataset's name.
        files: Keys of its images.
        used: When it was last used [s].
    """
    place = cache / MANIFESTS / f"{name}-v1-0"
    frames = [
        {
            "fkey": f"local:a2d2:{key}",
            "split": "all",
            "scene": "1",
            "camera": "front",
            "image_source": "a2d2",
            "image": key,
            "image_size": BYTES,
            "image_version": "1",
        }
        for key in files
    ]
    header = ManifestHeader(
        name, 1, "0", {}, 0, CLASSES, ("Car",), {"all": len(frames)},
        roots={"a2d2": os.path.relpath(cache / "local:a2d2", place)},
        datasources={"a2d2": "local:a2d2"}, staged=True,
    )  # fmt: skip
    Manifest(header, pa.Table.from_pylist(frames, FRAMES_SCHEMA)).write(place)
    for path in Manifest.read(place).image_paths():
        if not Path(path).exists():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(bytes(BYTES))
            os.utime(path, (used, used))
    (place / USED_FILE).touch()
    for file in (USED_FILE, HEADER_FILE) if used else (USED_FILE,):
        os.utime(place / file, (used, used))
    return place


def staged_names(cache: Path) -> set[str]:
    """The datasets whose manifests lie in a cache; each names files that are there."""
    names = set()
    for place in (cache / MANIFESTS).glob("[!.]*"):
        manifest = Manifest.read(place)
        assert all(Path(path).exists() for path in manifest.image_paths())
        names.add(manifest.header.name)
    return names


def keys(cache: Path) -> set[str]:
    """Keys of the entries of a cache, without their versions."""
    root = cache / "local:a2d2"
    found = (str(path.relative_to(root)) for path in root.rglob("*.png"))
    return {key.partition("~")[0] + ".png" for key in found}


def foreign_lease(cache: Path, manifest: str, **reserved: int) -> Path:
    """The folder of a lease that another host holds, which has beaten once."""
    folder = cache / LEASES / "another"
    folder.mkdir(parents=True)
    (folder / BEAT_FILE).write_text(json.dumps({"host": "another", "process": "7:7"}))
    said = {"manifest": manifest, "dataset": "night@1", "job": "train-7", "user": "bob"}
    (folder / LEASE_FILE).write_text(json.dumps({**said, "host": "node7", "pid": 7}))
    if reserved:
        (folder / "reserved").write_text(json.dumps(reserved))
    return folder
