"""Costs and scaling of Dask: one worker against two, and the scheduler's time for a unit.

    .venv/bin/python -m benchmarks.dask_scaling [--frames 8000] [--tasks 5000]

Units of labels (see scan_labels) are counted by one worker and by two, without listing or catalog;
each worker is held to one core, because counting takes as many as it gets.
Then units without frames pass through the scheduler: what is left is Dask's own time for a unit,
from which the time for 100 million files is estimated.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

from benchmarks.scan_labels import REPOSITORY, link_frames
from ingest.engines.dask import DaskEngine
from ingest.labels.class_list import ClassList
from ingest.labels.class_list_file import read_class_list
from ingest.layouts.read_layout import preset
from ingest.scan.count_unit import UnitSource
from ingest.scan.engine import CountTask
from ingest.scan.listing_diff import compare
from ingest.scan.pair_frames import FrameFiles, pair_frames
from ingest.scan.portions import Portion
from ingest.sources.local_folder import LocalFolder
from ingest.sources.source_options import NO_OPTIONS

A2D2 = preset("a2d2")
UNIT_FRAMES = 500
FILES = 100_000_000
FILES_PER_UNIT = 2_000


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=8_000)
    parser.add_argument("--tasks", type=int, default=5_000)
    options = parser.parse_args()
    (REPOSITORY / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=REPOSITORY / "build") as folder:
        root = Path(folder, "source")
        link_frames(root, options.frames, with_images=False)
        files = LocalFolder(root)
        class_list = read_class_list(files, None)
        task = CountTask(
            UnitSource(str(root), NO_OPTIONS, class_list),
            files,
            ClassList.from_colours(class_list),
            check_images=False,
        )
        frames = [
            frame
            for scene in pair_frames(compare(files.list(), [], A2D2.parse), A2D2)
            for frame in scene.frames
        ]
        rates = {workers: _rate(task, frames, workers) for workers in (1, 2)}
        for workers, rate in rates.items():
            print(f"{workers} workers {rate:8,.0f} frames/s  {rate / rates[1]:.2f}", flush=True)
        _scheduler(task, options.tasks)


def _rate(task: CountTask, frames: list[FrameFiles], workers: int) -> float:
    with _cluster(workers) as cluster, Client(cluster) as client:
        client.wait_for_workers(workers)
        for core, address in enumerate(client.nthreads()):
            client.run(os.sched_setaffinity, 0, {core}, workers=[address])
        engine = DaskEngine(client, UNIT_FRAMES)
        _count(engine, task, frames[: workers * UNIT_FRAMES])  # imports and compiled code
        began = time.perf_counter()
        _count(engine, task, frames)
        return len(frames) / (time.perf_counter() - began)


def _count(engine: DaskEngine, task: CountTask, frames: list[FrameFiles]) -> None:
    starts = range(0, len(frames), UNIT_FRAMES)
    for _ in engine.count(task, (Portion(frames[n : n + UNIT_FRAMES]) for n in starts)):
        pass


def _scheduler(task: CountTask, tasks: int) -> None:
    """Units of one frame whose label is no PNG: there is nothing to count."""
    frame = FrameFiles(
        next(pair_frames(compare(task.files.list(), [], A2D2.parse), A2D2)).frames[0].id
    )
    frame.label = next(iter(task.files.list()))
    with _cluster(2) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        engine = DaskEngine(client, 1)
        _drain(engine, task, [Portion([frame])] * 50)
        began = time.perf_counter()
        _drain(engine, task, [Portion([frame])] * tasks)
        each = (time.perf_counter() - began) / tasks
    units = FILES // FILES_PER_UNIT
    print(
        f"a unit costs {1e3 * each:.2f} ms beside its frames (scheduler, client and two workers "
        f"share 2 cores): {FILES:,} files are {units:,} units, {units * each / 60:.1f} minutes"
    )


def _drain(engine: DaskEngine, task: CountTask, portions: list[Portion]) -> None:
    for _ in engine.count(task, portions):
        pass


def _cluster(workers: int) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")


if __name__ == "__main__":
    main()
