"""A first and a second scan of a local folder of many frames.

    .venv/bin/python -m benchmarks.scan_folder [FRAMES]

The committed sample frames, hard-linked under distinct names in A2D2's layout (41,277 frames by
default, as many as A2D2 has). Prints frames/s, CPU and peak memory, and how long the labels take to
count alone, without listing and catalog.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from catalog.record_store import RecordStore
from catalog.store import CatalogLocation, CatalogStore
from catalog.tables import Source
from ingest.class_list import read_class_list
from ingest.palette import Palette
from ingest.pixel_count import count_pixels
from ingest.scan import scan_source
from ingest.source_files import LocalFolder

SAMPLE = Path(__file__).parent.parent / "sample_data" / "a2d2" / "camera_lidar_semantic"
FRAMES_PER_SCENE = 2_000


def main(frames: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(dir=SAMPLE.parent.parent.parent / "build") as folder:
        root = Path(folder, "source")
        _link(root, frames)
        home = Path(folder, "home")
        store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
        records = RecordStore(home / "records.sqlite")
        source = records.add_source(
            Source(name="s", uri=str(root), platform="local", cluster="c", datasource="s")
        )
        print(f"{frames:,} frames, {os.cpu_count()} cores")
        for title in ("first scan", "second scan"):
            began, cpu = time.perf_counter(), time.process_time()
            counts = scan_source(store, records, source, workers=os.cpu_count() or 1).counts
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
            print(
                f"{title:14}{wall:8.1f} s {frames / wall:8.0f} frames/s {cpu:8.1f} s CPU"
                f" {counts.frames:8,} counted"
            )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"peak memory {peak:.0f} MiB; counting alone {_counting_alone(root):.2f} ms per label"
        )


def _link(root: Path, frames: int) -> None:
    """Link sample frames, in turn, as frames of as many scenes as are needed."""
    root.mkdir(parents=True)
    os.link(SAMPLE / "class_list.json", root / "class_list.json")
    images = sorted(SAMPLE.glob("*/camera/cam_front_center/*.png"))
    for number in range(frames):
        image = images[number % len(images)]
        label = Path(str(image).replace("_camera_", "_label_").replace("/camera/", "/label/"))
        scene, frame = divmod(number, FRAMES_PER_SCENE)
        name = f"20300101_{scene:06d}"
        for kind, path in (("camera", image), ("label", label)):
            target = root / name / kind / "cam_front_center"
            target.mkdir(parents=True, exist_ok=True)
            stamp = name.replace("_", "")
            os.link(path, target / f"{stamp}_{kind}_frontcenter_{frame:09d}.png")


def _counting_alone(root: Path) -> float:
    palette = Palette.from_class_list(read_class_list(LocalFolder(root), None))
    labels = [path.read_bytes() for path in sorted(SAMPLE.rglob("*_label_*.png"))]
    count_pixels(labels[0], palette)
    began = time.process_time()
    for label in labels:
        count_pixels(label, palette)
    return 1e3 * (time.process_time() - began) / len(labels)


if __name__ == "__main__":
    (SAMPLE.parent.parent.parent / "build").mkdir(exist_ok=True)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 41_277)
