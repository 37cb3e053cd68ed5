"""Decoding a JPEG camera image: milliseconds of CPU a frame, one thread.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.decode_jpeg [--peers]

Real A2D2 images where A2D2_ROOT is set, else the committed sample frames, resized to each size and
written as JPEG of quality 90, colours halved both ways. "Framesift" is what is used everywhere:
simplejpeg behind a walk over all segments. "made small" is the input of a network of 240x152, once
by decoding whole and averaging, once by decoding at a fraction of the size (scaled DCT), whose
pixels are others. With --peers OpenCV and PyTurboJPEG, too, of the lock's group bench; the second
needs the system's libturbojpeg. Pixels of all that decode whole are compared before anything is
timed. Ways take turns, and the least of several rounds counts. Last, what is found of damage.
"""

import argparse
import importlib
import io
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
from PIL import Image

from ingest.images.camera_image import decode_image
from pipeline.prepared.decoded_frames import small_image
from pipeline.runs.size import Size

SIZES = ((1920, 1208), (2048, 1024))
SMALL = Size(height_px=152, width_px=240)
FRAMES, ROUNDS, DAMAGED = 4, 7, 100
Way = Callable[[bytes], Any]


def main(arguments: Sequence[str]) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", action="store_true", help="OpenCV and PyTurboJPEG, too")
    whole: dict[str, Way] = {
        "Pillow": _pillow,
        "simplejpeg": lambda jpeg: simplejpeg.decode_jpeg(jpeg, "RGB"),
        "Framesift": decode_image,
    }
    if parser.parse_args(arguments).peers:
        whole |= _peers()
    small: dict[str, Way] = {
        "made small, whole": lambda jpeg: small_image(decode_image(jpeg), SMALL),
        "made small, scaled DCT": _scaled,
    }
    pictures = _pictures()
    for size in SIZES:
        for form in ({}, {"progressive": True}):
            jpegs = [_jpeg(picture, size, **form) for picture in pictures]
            expected = [decode_image(jpeg) for jpeg in jpegs]
            for name, way in whole.items():
                for jpeg, pixels in zip(jpegs, expected, strict=True):
                    if not np.array_equal(way(jpeg), pixels):
                        print(f"{name}: its pixels differ")
            kind = "progressive" if form else "baseline"
            mean_kb = sum(map(len, jpegs)) / len(jpegs) / 1e3
            print(f"{size[0]}x{size[1]}, {kind}, {mean_kb:,.0f} kB a frame:")
            for name, seconds in _timed(whole | small, jpegs).items():
                print(f"  {name:26}{1e3 * seconds:8.2f} ms")
            levels = [_difference(jpeg) for jpeg in jpegs]
            print(f"  scaled DCT differs by {np.mean(levels):.2f} levels in the mean")
    kept = {name: whole[name] for name in ("Pillow", "Framesift")}
    _print_damage(_jpeg(pictures[0], SIZES[0]), kept)


def _timed(ways: Mapping[str, Way], jpegs: Sequence[bytes]) -> dict[str, float]:
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.process_time()
            for jpeg in jpegs:
                way(jpeg)
            best[name] = min(best[name], (time.process_time() - began) / len(jpegs))
    return best


def _print_damage(jpeg: bytes, ways: Mapping[str, Way]) -> None:
    """How many of some damaged files each way refuses, and how many it shows with other pixels."""
    draw = random.Random(1)
    for what in ("512 bytes are zero", "512 bytes are missing", "one bit is another"):
        damaged = []
        for _ in range(DAMAGED):
            at = draw.randrange(1_000, len(jpeg) - 1_000)
            behind = at + (0 if what.startswith("one") else 512)
            other = {"512 bytes are zero": bytes(512), "512 bytes are missing": b""}.get(what)
            if other is None:
                other, behind = bytes([jpeg[at] ^ 1 << draw.randrange(8)]), at + 1
            damaged.append(jpeg[:at] + other + jpeg[behind:])
        refused = {name: sum(map(_refuses(way), damaged)) for name, way in ways.items()}
        print(f"{what}, refused of {DAMAGED}: {refused}")


def _refuses(way: Way) -> Callable[[bytes], bool]:
    def refuses(jpeg: bytes) -> bool:
        try:
            with warnings.catch_warnings(action="ignore"):
                return way(jpeg) is None
        except Exception:  # each library has its own
            return True

    return refuses


def _pillow(jpeg: bytes) -> Any:
    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as image:
        image.load()
        return np.asarray(image.convert("RGB"))


def _scaled(jpeg: bytes) -> Any:
    height, width = SMALL.height_px, SMALL.width_px
    pixels = simplejpeg.decode_jpeg(jpeg, "RGB", min_height=height, min_width=width)
    return small_image(pixels, SMALL)


def _difference(jpeg: bytes) -> float:
    whole = small_image(decode_image(jpeg), SMALL).astype(int)
    return float(np.abs(whole - _scaled(jpeg)).mean())


def _peers() -> dict[str, Way]:
    cv2 = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    peers: dict[str, Way] = {
        "OpenCV": lambda jpeg: cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB)
    }
    turbojpeg = importlib.import_module("turbojpeg")
    try:
        turbo = turbojpeg.TurboJPEG()
    except (RuntimeError, OSError, AttributeError) as error:
        print(f"PyTurboJPEG: {error}")
    else:
        peers["PyTurboJPEG"] = lambda jpeg: turbo.decode(jpeg, pixel_format=turbojpeg.TJPF_RGB)
    return peers


def _pictures() -> list[Image.Image]:
    root = Path(os.environ.get("A2D2_ROOT") or Path(__file__).parent.parent / "sample_data/a2d2")
    paths = sorted(root.rglob("*_camera_*.png"))[:FRAMES]
    if not paths:
        sys.exit(f"{root}: no frames there; set A2D2_ROOT to a folder of A2D2 files")
    return [Image.open(path).convert("RGB") for path in paths]


def _jpeg(picture: Image.Image, size: tuple[int, int], **form: bool) -> bytes:
    content = io.BytesIO()
    picture.resize(size, Image.Resampling.LANCZOS).save(content, "JPEG", quality=90, **form)
    return content.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
