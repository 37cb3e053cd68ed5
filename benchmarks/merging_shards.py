"""What the merge of a validation takes: seconds, and the most memory.

    .venv/bin/python -m benchmarks.merging_shards --shards 10000 --frames 1000000

Shards are written as a validation writes them, of drawn scores and 60 cells a frame of 38 classes,
without pictures, each scene with all of the metrics' sums. Adding up and the whole report are timed
in a process of their own each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from training.validation.frame_cells import FrameCells, FrameScore
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.table import METRICS
from training.validation.scene_sums import sums_of
from training.validation.shard_file import About, ShardResult

CLASSES = tuple(f"Class {n}" for n in range(38))
TAGS = tuple(f"class_{n}" for n in range(38))
LABEL_TAGS = tuple((tag,) for tag in TAGS)
SCENES, CELLS = 200, 60

_PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from training.merge_scores import merge, open_shards
folder, shards, whole = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "report"
began, cpu = time.perf_counter(), time.process_time()
if whole:
    merge(folder, shards, folder / "out")
else:
    open_shards(folder, shards)
seconds = time.perf_counter() - began
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.process_time() - cpu, seconds, most]))
"""


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=10_000)
    parser.add_argument("--frames", type=int, default=1_000_000)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, flags.shards, flags.frames)
        for what in ("sums", "report"):
            ended = subprocess.run(
                [sys.executable, "-c", _PROGRAM, name, str(flags.shards), what],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            cpu_s, seconds, mib = json.loads(ended.stdout.splitlines()[-1])
            print(
                f"{what} of {flags.shards:,} shards, {flags.frames:,} frames: {cpu_s:.2f} s "
                f"of CPU, {seconds:.2f} s, {mib:,.0f} MiB at most"
            )


def _write(folder: Path, shards: int, frames: int) -> None:
    random = np.random.default_rng(1)
    size = len(CLASSES)
    length = len(sums_of({name: metric.empty(size) for name, metric in METRICS.items()}))
    for shard in range(shards):
        rows = range(shard, frames, shards)
        cell = np.sort(random.integers(0, size * size, (len(rows), CELLS)), axis=1)
        pixels = random.integers(1, 50_000, cell.shape)
        matrix = np.bincount(cell.ravel(), pixels.ravel(), size * size).astype(np.int64)
        metrics = {name: metric.empty(size) for name, metric in METRICS.items()}
        metrics["scores"] = Confusion(matrix.reshape(size, size), np.ones(size, np.int64))
        place = np.repeat(np.arange(len(rows), dtype=np.int32), CELLS)
        cells = FrameCells(place, cell.ravel().astype(np.int32), pixels.ravel().astype(np.int32))
        miou = random.random(len(rows)).tolist()
        scores = [
            FrameScore(
                f"local:a2d2:camera_lidar_semantic/scene/camera/{row:09d}.png", row,
                f"scene-{row % SCENES}", "front_center", 2_000_000, 319_360, 0.9, 0.5, one / 2,
                0.8, one,
            )
            for row, one in zip(rows, miou, strict=True)
        ]  # fmt: skip
        about = About(
            "a" * 64, "runs/night", 300, CLASSES, TAGS, LABEL_TAGS, "munich", 2, "d-17",
            "validation", frames, shard, shards,
        )  # fmt: skip
        scenes = {f"scene-{row % SCENES}" for row in rows}
        sums = {scene: random.integers(1, 50_000, length) for scene in scenes}
        ShardResult(about, metrics, scores, cells, scenes=sums).write(folder)


if __name__ == "__main__":
    main()
