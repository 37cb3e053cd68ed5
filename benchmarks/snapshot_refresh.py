"""Bringing a snapshot in memory up to a commit, against loading it again.

    python -m benchmarks.snapshot_refresh [--frames 1000000] [--rounds 5]

For commits of 50 new frames, of 5,000, and of new values for 50 frames drawn from all: seconds and
CPU seconds of the refresh, medians of the rounds, and how many times as much loading takes. All
commits together may change a quarter of the files, as then everything is loaded again.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.frames.frames import register
from catalog.memory.interruptible import Interruptible
from catalog.memory.snapshot import SnapshotInMemory
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from tests.catalog.some_rows import file, frame, source_names

_LIMITS = {"memory_limit": "2GB"}
_BUDGET_MB = 16_000

Made = TypeVar("Made")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    with tempfile.TemporaryDirectory() as folder:
        store = CatalogStore(CatalogLocation.in_folder(Path(folder, "catalog")))
        load_frames(store, list(palette.tags), options.frames)
        print(f"{options.frames:,} frames x {len(palette.tags)} classes, {os.cpu_count()} cores")
        snapshot, wall, cpu = _measured(lambda: _loaded(store))
        print(
            f"{'loaded':<24} {wall:>7.3f} s  {cpu:>7.3f} s CPU  "
            f"{snapshot.table_bytes // 10**6:,} MB"
        )
        commits: dict[str, Callable[[int], None]] = {
            "50 new frames": lambda number: new_frames(store, f"a{number}", 50),
            "5,000 new frames": lambda number: new_frames(store, f"b{number}", 5_000),
            "50 frames' values": lambda _: _new_values(store, 50),
        }
        for name, commit in commits.items():
            walls, cpus = [], []
            for number in range(options.rounds):
                commit(number)
                snapshot, took, used = _measured(partial(_refreshed, snapshot, store))
                walls.append(took)
                cpus.append(used)
            took, used = statistics.median(walls), statistics.median(cpus)
            print(
                f"{name:<24} {took:>7.3f} s  {used:>7.3f} s CPU  "
                f"{snapshot.table_bytes // 10**6:,} MB  "
                f"loading takes {wall / took:,.0f} times as long, {cpu / used:,.0f} times the CPU"
            )


def _loaded(store: CatalogStore) -> SnapshotInMemory:
    with store.inspecting() as cursor:
        return SnapshotInMemory(cursor, _BUDGET_MB, _LIMITS, Interruptible())


def _refreshed(snapshot: SnapshotInMemory, store: CatalogStore) -> SnapshotInMemory:
    with store.inspecting() as cursor:
        return snapshot.refreshed(cursor, Interruptible())


def _measured(work: Callable[[], Made]) -> tuple[Made, float, float]:
    """The product, seconds, CPU seconds of this process."""
    began, cpu = time.perf_counter(), time.process_time()
    product = work()
    return product, time.perf_counter() - began, time.process_time() - cpu


def new_frames(store: CatalogStore, scene: str, count: int) -> None:
    """Commit frames of a scene, with their labels."""
    images, labels = ([f"{scene}/{kind}/{n}.png" for n in range(count)] for kind in ("i", "l"))
    frames = [
        replace(frame(image, car=number), label=label, scene=scene)
        for number, (image, label) in enumerate(zip(images, labels, strict=True))
    ]
    with store.writing("new frames", "benchmark") as connection:
        register(connection, source_names(), [file(key) for key in images + labels], frames, 2)


def _new_values(store: CatalogStore, count: int) -> None:
    with store.writing("new values", "benchmark") as connection:
        connection.execute(
            "UPDATE class_pixels SET car = car + 1 WHERE fkey IN "
            f"(SELECT fkey FROM class_pixels USING SAMPLE {count} ROWS)"
        )


if __name__ == "__main__":
    main()
