"""What a training's input costs: from the prepared form, decoded, and decoded by Pillow.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.training_input [--frames 96]
        [--sizes 240x152 960x600]

Real A2D2 frames where A2D2_ROOT is set, else the committed sample frames, in turn under distinct
names, as the manifest of a staged dataset; files and form are in the page cache. Each row is an
epoch or its beginning, in batches of 4 in the order of a run of one rank: milliseconds of CPU a
frame, all threads of the process, and frames a second. "Pillow" is how frames were decoded before
there was a kernel for it. Rounds take turns, and the least counts. The last two rows are of one
thread without batches: of what a decoded frame takes, its camera image's share and its label's.
"""

import argparse
import os
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from catalog.storage.file_version import version_of
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import open_png
from pipeline.cores import cores
from pipeline.example_order import examples
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.prepared.decoded_frames import DecodedFrames, nearest
from pipeline.prepared.form import prepared_rows
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import Size
from tests.training.drawn_frames import FrameFiles, read_class_list, write_manifest
from training.input.batches import Batches
from training.input.frame_reader import FrameReader

SAMPLE = Path(__file__).parent.parent / "sample_data" / "a2d2"
BATCH_SIZE = 4
ROUNDS = 3

Reader = Callable[[int], tuple[np.ndarray, np.ndarray]]  # type: ignore[type-arg]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=96)
    parser.add_argument("--sizes", nargs="+", default=["240x152", "960x600"])
    given = parser.parse_args()
    print(f"{given.frames} frames, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as cache:
        folder = staged_frames(Path(cache), given.frames)
        for size in map(Size.parse, given.sizes):
            _measure(folder, size)


def _measure(folder: Path, size: Size) -> None:
    frames = Manifest.read(folder)
    palette, classes = frames.header.class_list, frames.header.dataset_classes
    before = _children_s()
    began = time.process_time(), time.perf_counter()
    made = prepare(folder, size)
    cpu_s = time.process_time() - began[0] + _children_s() - before
    wall_s = time.perf_counter() - began[1]
    print(f"{size}: form of {made.bytes / 1e6:,.0f} MB")
    _row("preparing, once", cpu_s / len(frames), len(frames) / wall_s)
    rows = prepared_rows(frames, size)
    decoding = FrameReader(frames, classes, size)
    readers: dict[str, tuple[object, int, int]] = {
        "prepared": (
            FrameReader(frames, classes, size, prepared=rows),
            1,
            len(frames),
        ),
        "decoded, one thread": (decoding, 1, 24),
        "decoded, a thread a core": (decoding, cores(), 24),
        "decoded by Pillow": (_Pillow(frames, palette, size), 1, 24),
    }
    best = dict.fromkeys(readers, (float("inf"), 0.0))
    for _ in range(ROUNDS):
        for name, (reader, threads, count) in readers.items():
            cpu_s, rate = _epoch(reader, len(frames), threads, min(count, len(frames)))
            best[name] = min(best[name][0], cpu_s), max(best[name][1], rate)
    for name, (cpu_s, rate) in best.items():
        _row(name, cpu_s, rate)
    decoded = DecodedFrames(frames, classes)
    _, full_px = decoding.image(0)
    parts: dict[str, Callable[[int], object]] = {
        "its camera image, made small": decoding.image,
        "its label": lambda row: nearest(decoded.label(row, full_px), size),
    }
    for name, part in parts.items():
        _row(name, *min(_of_each(part, min(24, len(frames))) for _ in range(ROUNDS)))


def _of_each(part: Callable[[int], object], count: int) -> tuple[float, float]:
    """CPU seconds a row, and rows a second, of the first rows."""
    cpu, wall = time.process_time(), time.perf_counter()
    for row in range(count):
        part(row)
    return (time.process_time() - cpu) / count, count / (time.perf_counter() - wall)


def _epoch(reader: object, frames: int, threads: int, count: int) -> tuple[float, float]:
    """CPU seconds a frame, and frames a second, of the first frames of an epoch."""
    ahead = islice(examples(frames, 0, BATCH_SIZE), count)
    cpu, wall = time.process_time(), time.perf_counter()
    batches = Batches(reader, ahead, batch_size=BATCH_SIZE, seed=0, threads=threads)  # type: ignore[arg-type]
    for _ in range(count // BATCH_SIZE):
        next(batches)
    batches.close()
    return (time.process_time() - cpu) / count, count / (time.perf_counter() - wall)


class _Pillow:
    """A reader as it was: all of a PNG decoded by Pillow, colours looked up by NumPy."""

    def __init__(self, frames: Manifest, palette: ClassList, size: Size) -> None:
        self._images, self._labels = frames.image_paths(), frames.label_paths()
        self._palette, self._size = palette, size

    def small(self, row: int) -> tuple[object, object]:
        from PIL import Image

        picture = open_png(Path(self._images[row]).read_bytes())
        to = (self._size.width_px, self._size.height_px)
        rgb = np.asarray(open_png(Path(str(self._labels[row])).read_bytes()))
        packed = rgb[..., 0].astype(np.uint32) << 16
        packed |= rgb[..., 1].astype(np.uint32) << 8
        packed |= rgb[..., 2]
        label = nearest(self._palette.lookup_table[packed], self._size)
        return np.asarray(picture.resize(to, Image.Resampling.BOX)), label


def staged_frames(cache: Path, frames: int) -> Path:
    """The manifest of frames in a cache, in turn the real or committed ones."""
    root = Path(os.environ.get("A2D2_ROOT") or SAMPLE)
    found = sorted(root.rglob("*/camera/*/*.png"))[:16]
    (cache / "given").mkdir()
    files = []
    for number in range(frames):
        image = found[number % len(found)]
        label = Path(str(image).replace("/camera/", "/label/").replace("_camera_", "_label_"))
        names = []
        for kind, path in (("camera", image), ("label", label)):
            given = cache / "given" / path.name
            if not given.exists():
                shutil.copy(path, given)
            names.append(f"{number:05d}_{kind}.png")
            os.link(given, cache / names[-1])
        files.append(FrameFiles("scene", *names))
    class_list = read_class_list(next(root.rglob("class_list.json")))
    folder = cache / ".manifests" / "frames"
    manifest = write_manifest(folder, cache, {"train": files}, class_list)
    rows = manifest.frames.to_pylist()
    for row in rows:
        for kind in ("image", "label"):
            row[f"{kind}_version"] = version_of((cache / row[kind]).stat())
    Manifest(manifest.header, pa.Table.from_pylist(rows, FRAMES_SCHEMA)).write(folder)
    return folder


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(title: str, cpu_s: float, rate: float) -> None:
    print(f"  {title:30}{1e3 * cpu_s:8.2f} ms CPU a frame {rate:8,.0f} frames/s", flush=True)


if __name__ == "__main__":
    main()
