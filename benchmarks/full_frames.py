"""A frame at full size: what it takes on disk and to read, in the full form and in other forms.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.full_frames

Real A2D2 frames where A2D2_ROOT is set, else the committed sample frames; one thread, files in the
page cache. Each row is an image and its label's class ids: megabytes a frame, and milliseconds of
CPU to read it. What is read is compared with what decoding the PNG files gives before anything is
timed (but for JPEG, which loses). Ways take turns, and the least of several rounds counts.
"""

import io
import os
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from benchmarks.training_input import staged_frames
from framesift.data import open_frames
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.prepared.full_form import full_rows
from pipeline.prepared.prepare import prepare
from pipeline.runs.size import FULL, Size
from training.input.frame_reader import FrameReader

FRAMES = 4
ROUNDS = 9
SMALL = Size(height_px=152, width_px=240)
Pair = tuple[Any, Any]
Way = Callable[[int], Pair]


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as cache:
        folder = staged_frames(Path(cache), FRAMES)
        began = time.process_time()
        made = prepare(folder, FULL, processes=1)
        making_s = (time.process_time() - began) / FRAMES
        frames = Manifest.read(folder)
        classes = frames.header.dataset_classes
        full = full_rows(frames)
        png, stored = (
            DecodedFrames(frames, classes),
            DecodedFrames(frames, classes, stored=full),
        )
        pairs = [_frame(png, row) for row in range(FRAMES)]
        paths = (*frames.image_paths(), *frames.label_paths())
        png_bytes = sum(Path(str(path)).stat().st_size for path in paths)
        of_files, of_form = open_frames(folder), open_frames(made.folder)
        small = [FrameReader(frames, classes, SMALL, full=of) for of in (None, full)]
        groups: dict[str, dict[str, tuple[float, Way]]] = {
            "training and validation": {
                "PNG": (png_bytes, lambda row: _frame(png, row)),
                "full form": (made.bytes, lambda row: _frame(stored, row)),
                **_others(pairs),
            },
            "framesift.data": {
                "PNG": (png_bytes, lambda row: of_files[row]),
                "full form": (made.bytes, lambda row: of_form[row]),
            },
            f"made {SMALL}": {
                "PNG": (png_bytes, small[0].small),
                "full form": (made.bytes, small[1].small),
            },
        }
        for group in list(groups)[:2]:
            _compare(groups[group], pairs)
        height_px, width_px = pairs[0][1].shape
        print(f"{FRAMES} frames of {width_px}x{height_px}, load {os.getloadavg()[0]:.1f}")
        print(f"making the full form, once: {1e3 * making_s:.0f} ms of CPU a frame")
        for group, ways in groups.items():
            print(f"{group:32}{'MB a frame':>12}{'ms of CPU':>12}{'PNG / this':>12}")
            best = _measured({name: way for name, (_, way) in ways.items()})
            for name, spent_s in best.items():
                size = f"{ways[name][0] / FRAMES / 1e6:.2f}"
                ratio = best["PNG"] / spent_s
                print(f"  {name:30}{size:>12}{1e3 * spent_s:12.2f}{ratio:12.1f}")


def _compare(ways: dict[str, tuple[float, Way]], pairs: list[Pair]) -> None:
    for name, (_, way) in ways.items():
        for row, pair in enumerate(pairs):
            for ours, theirs in zip(way(row), pair, strict=True):
                if not name.startswith("JPEG"):
                    assert (ours == theirs).all(), name


def _frame(frames: DecodedFrames, row: int) -> Pair:
    image = frames.image(row)
    return image, frames.label(row, (image.shape[0], image.shape[1]))


def _others(pairs: list[Pair]) -> dict[str, tuple[float, Way]]:
    """Other forms, which were not taken, by name: the bytes of all, and how one is read."""
    lz4, zstd = pa.Codec("lz4"), pa.Codec("zstd", compression_level=1)
    shape, flat = pairs[0][0].shape, pairs[0][1].shape
    whole = [(image.tobytes(), label.tobytes()) for image, label in pairs]
    packed = {
        name: [tuple(codec.compress(part, asbytes=True) for part in pair) for pair in whole]
        for name, codec in (("LZ4", lz4), ("zstd", zstd))
    }
    differences = []
    for image, label in pairs:
        rows = image.copy()
        rows[1:] -= image[:-1]
        differences.append(
            (zstd.compress(rows, asbytes=True), zstd.compress(label.tobytes(), asbytes=True))
        )
    jpeg = []
    for image, label in pairs:
        content = io.BytesIO()
        Image.fromarray(image).save(content, "JPEG", quality=95)
        jpeg.append((content.getvalue(), lz4.compress(label.tobytes(), asbytes=True)))

    def array(content: Any, of: tuple[int, ...]) -> Any:
        return np.frombuffer(content, np.uint8).reshape(of)

    def unpacked(codec: Any, content: list[Any]) -> Way:
        sizes = int(np.prod(shape)), int(np.prod(flat))
        return lambda row: (
            array(codec.decompress(content[row][0], sizes[0]), shape),
            array(codec.decompress(content[row][1], sizes[1]), flat),
        )

    def summed(row: int) -> Pair:
        image, label = unpacked(zstd, differences)(row)
        rows = image.reshape(shape[0], -1)
        for above, here in pairwise(rows):
            np.add(here, above, out=here)
        return image, label

    def of_jpeg(row: int) -> Pair:
        image, label = jpeg[row]
        pixels = np.asarray(Image.open(io.BytesIO(image)))
        return pixels, array(lz4.decompress(label, int(np.prod(flat))), flat)

    def copied(row: int) -> Pair:
        return array(whole[row][0], shape).copy(), array(whole[row][1], flat).copy()

    forms: dict[str, tuple[list[Any], Way]] = {
        "uncompressed": (whole, copied),
        "LZ4 of pixels": (packed["LZ4"], unpacked(lz4, packed["LZ4"])),
        "zstd of pixels": (packed["zstd"], unpacked(zstd, packed["zstd"])),
        "zstd of differences": (differences, summed),
        "JPEG of quality 95": (jpeg, of_jpeg),
    }
    return {
        name: (sum(len(part) for pair in content for part in pair), way)
        for name, (content, way) in forms.items()
    }


def _measured(ways: dict[str, Any]) -> dict[str, float]:
    """CPU seconds a frame of each way, in one thread."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.thread_time()
            for row in range(FRAMES):
                way(row)
            best[name] = min(best[name], (time.thread_time() - began) / FRAMES)
    return best


if __name__ == "__main__":
    main()
