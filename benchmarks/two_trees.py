"""What it costs to pair files whose images and labels lie in two trees, and how much memory.

    python -m benchmarks.two_trees [--names 1000000]

Names of Cityscapes' layout, listed in order and sorted by their frames, beside names of A2D2's,
which come by scenes: each in a process of its own, from a listing made up as it goes to portions of
a scan. No file is read. CPU seconds, and the process's largest memory above what it has before.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime

from catalog.values import File
from ingest.layouts.layout import Layout
from ingest.layouts.read_layout import preset
from ingest.scan.listing_diff import compare
from ingest.scan.portions import Portions
from ingest.scan.scan_counts import ScanCounts

_SCENE_FRAMES = 500
_WHEN = datetime(2020, 1, 1)  # noqa: DTZ001 (naive UTC)


def _names(layout: str, names: int) -> Iterator[str]:
    """Names in byte order, half of them labels."""
    frames = names // 2
    if layout == "a2d2":
        for first in range(0, frames, _SCENE_FRAMES):
            scene = f"20180807_{first // _SCENE_FRAMES:06}"
            stamp = scene.replace("_", "")
            for kind in ("camera", "label"):
                for number in range(first, min(first + _SCENE_FRAMES, frames)):
                    yield (
                        f"{scene}/{kind}/cam_front_center/"
                        f"{stamp}_{kind}_frontcenter_{number:09}.png"
                    )
        return
    for folder, ending in (("gtFine", "gtFine_labelIds"), ("leftImg8bit", "leftImg8bit")):
        for first in range(0, frames, _SCENE_FRAMES):
            town = f"town{first // _SCENE_FRAMES:06}"
            for number in range(first, min(first + _SCENE_FRAMES, frames)):
                yield f"{folder}/train/{town}/{town}_000000_{number:06}_{ending}.png"


def _listed(layout: str, names: int) -> Iterator[File]:
    for number, key in enumerate(_names(layout, names)):
        yield File(key, 100_000 + number, _WHEN, _WHEN, _WHEN, number, "anna", "lab", 1, 1, "-rw")


def _measure(name: str, names: int) -> dict[str, float]:
    layout: Layout = preset(name)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.process_time()
    portions = Portions(ScanCounts(), layout, frames_each=500, files_each=2_000)
    frames = sum(
        len(portion.frames)
        for portion in portions.cut(compare(_listed(name, names), [], layout.parse))
    )
    if frames != names // 2:
        raise SystemExit(f"{name}: {frames} frames of {names} names")
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "cpu_s": time.process_time() - start,
        "memory_mb": (after.ru_maxrss - before.ru_maxrss) / 1024,
    }


def main() -> None:
    """Measure both and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--one", choices=("a2d2", "cityscapes"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(options.one, options.names)))
        return
    print(f"{options.names:,} names, half of them labels")
    for name in ("a2d2", "cityscapes"):
        command = [sys.executable, "-m", "benchmarks.two_trees", "--names", str(options.names)]
        done = subprocess.run([*command, "--one", name], check=True, capture_output=True, text=True)
        row = json.loads(done.stdout)
        print(f"{name:12} {row['cpu_s']:6.1f} s of CPU, {row['memory_mb']:5.0f} MB more memory")


if __name__ == "__main__":
    main()
