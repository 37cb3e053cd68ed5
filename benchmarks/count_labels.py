"""Counting the classes of A2D2-sized labels, against the plain ways and against the limit.

    A2D2_ROOT=/path/to/a2d2 .venv/bin/python -m benchmarks.count_labels [--rewritten]

Then the same labels as id maps, each as Pillow writes it: 8 bits of grey, a palette, the red
of RGBA, 16-bit instance maps of the labels' size and of 2048x1024, and panoptic labels, whose
segments are a table of each label. With --rewritten instead the same labels with the same colours:
RGB and RGBA with all filters, and palettes.
Real labels when A2D2_ROOT is set, else the committed sample frames. Every way runs on the same
labels in one process; ways take turns, so that a slow moment of the machine hits all of them, and
the least CPU time per label of several rounds counts. Counts are compared before anything is timed.
"""

import argparse
import importlib
import io
import json
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deflate
import numpy as np
import numpy.typing as npt
from PIL import Image

from ingest.labels import pixel_count
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import decode_label
from ingest.labels.pixel_count import PixelCounts, count_pixels
from ingest.labels.png_chunks import PngChunks, take_apart
from ingest.labels.segments import Segments

ROUNDS = 7
Way = Callable[[bytes], Any]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rewritten", action="store_true")
    rewritten = parser.parse_args().rewritten
    root = Path(os.environ.get("A2D2_ROOT") or Path(__file__).parent.parent / "sample_data/a2d2")
    labels = [path.read_bytes() for path in sorted(root.rglob("*_label_*.png"))][:16]
    if not labels:
        sys.exit(f"{root}: no labels there; set A2D2_ROOT to a folder of A2D2 files")
    class_list = next(root.rglob("class_list.json"))
    palette = ClassList.from_colours(json.loads(class_list.read_text(encoding="utf-8")))
    if rewritten:
        for mode in ("RGB", "RGBA", "P"):
            _measure_rewritten(mode, [_rewritten(png, mode) for png in labels], palette)
        return
    chunks = {png: take_apart(png) for png in labels}
    ways = _ways(palette, chunks)
    _compare_counts(labels, palette)
    best = _measure(ways, labels)
    _print(best, labels, chunks, root)
    _measure_ids([decode_label(png, palette) for png in labels], palette)


def _ways(palette: ClassList, chunks: dict[bytes, PngChunks]) -> dict[str, Way]:
    """Every way by name; those whose package is missing are left out."""
    ways: dict[str, Way] = {
        "one mask per class": lambda png: _masks(png, palette),
        "NumPy pack + unique": lambda png: np.unique(_packed(png), return_counts=True),
        "NumPy table look-up": lambda png: np.bincount(
            palette.lookup_table[_packed(png)].ravel(), minlength=256
        ),
        "Pillow decode + getcolors": lambda png: _image(png).getcolors(256),
        "zlib inflate alone": lambda png: zlib.decompress(chunks[png].pixels),
        "libdeflate inflate alone": lambda png: deflate.zlib_decompress(
            chunks[png].pixels, chunks[png].header.inflated_bytes
        ),
        "Framesift count_pixels": lambda png: _count(png, palette, few=0),
        "Framesift, one of few": lambda png: _count(png, palette, few=sys.maxsize),
    }
    cv2, pyspng, isal = (_optional(name) for name in ("cv2", "pyspng", "isal.isal_zlib"))
    if cv2 is not None:
        ways["OpenCV decode alone"] = lambda png: cv2.imdecode(
            np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR
        )
    if pyspng is not None:
        ways["libspng decode alone"] = pyspng.load
    if isal is not None:
        ways["ISA-L inflate alone"] = lambda png: isal.decompress(chunks[png].pixels)
    return ways


def _count(png: bytes, palette: ClassList, few: int) -> PixelCounts:
    """Count as in a process that has counted many labels, or in one that has not."""
    pixel_count.FEW_LABELS = pixel_count.FEW_TO_COMPILE_FOR = few
    return count_pixels(png, palette)


def _optional(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _rewritten(png: bytes, mode: str) -> bytes:
    """A label as Pillow writes it in this mode, with the same colours."""
    image = _image(png).convert("RGB")
    other = image.quantize(256) if mode == "P" else image.convert(mode)
    if other.convert("RGB").tobytes() != image.tobytes():
        sys.exit(f"mode {mode} does not hold the label's colours")
    content = io.BytesIO()
    other.save(content, "PNG")
    return content.getvalue()


def _measure_rewritten(mode: str, labels: list[bytes], palette: ClassList) -> None:
    """Print what counting labels of one mode takes, and which filters their rows have."""
    _compare_counts(labels, palette)
    rows: Counter[int] = Counter()
    chunks = {png: take_apart(png) for png in labels}
    for parts in chunks.values():
        raw = zlib.decompress(parts.pixels)
        rows.update(raw[:: 1 + parts.header.row_bytes])
    depths = {parts.header.bit_depth for parts in chunks.values()}
    every = _ways(palette, chunks)
    names = ("Framesift count_pixels", "libdeflate inflate alone", "Pillow decode + getcolors")
    best = _measure({name: every[name] for name in names}, labels)
    print(f"{mode}, {depths} bits a sample; rows by filter: {dict(sorted(rows.items()))}")
    for name, spent in best.items():
        print(f"    {name:28}{sum(spent) / len(spent):8.2f} ms")


def _measure_ids(labels: list[npt.NDArray[np.uint8]], palette: ClassList) -> None:
    """Print what counting id maps takes: labels of class ids, written in each form."""
    print("\nid maps: CPU ms per label, mean; in brackets times inflate alone")
    print(f"{'form':22}" + "".join(f"{name:>18}" for name in _ID_WAYS))
    classes = [{"key": key, "name": name} for key, name in enumerate(palette.classes)]
    for form, encoding, write in (
        ("grey, 8 bits", "index", lambda ids: Image.fromarray(ids)),
        ("palette", "index", _with_palette),
        ("RGBA, its red", "channel:0", _in_red),
        ("grey, 16 bits", "index//1000", lambda ids: Image.fromarray(_instances(ids))),
        ("the same, 2048x1024", "index//1000", lambda ids: Image.fromarray(_instances(_wide(ids)))),
        ("panoptic", "panoptic", lambda ids: Image.fromarray(_panoptic(ids))),
    ):
        class_list = ClassList.from_json({"encoding": encoding, "classes": classes})
        images, segments = [], {}
        for ids in labels:
            content = io.BytesIO()
            write(ids).save(content, "PNG")
            images.append(content.getvalue())
            if class_list.encoding.is_panoptic:
                numbers = np.unique(_instances(ids)).tolist()
                of_segment = {n: n // 1000 for n in numbers if n // 1000 != UNKNOWN_CLASS}
                segments[images[-1]] = Segments(of_segment)
        best = _measure(_id_ways(images, class_list, segments), images)
        mean = {name: sum(spent) / len(spent) for name, spent in best.items()}
        limit = mean["inflate"]
        cells = (
            f"{mean[name]:10.2f} ({mean[name] / limit:5.2f})" if name in mean else f"{'-':>18}"
            for name in _ID_WAYS
        )
        print(f"{form:22}" + "".join(cells))


_ID_WAYS = ("Framesift", "inflate", "Pillow+bincount", "OpenCV+bincount")


def _id_ways(
    images: list[bytes], class_list: ClassList, segments: dict[bytes, Segments]
) -> dict[str, Way]:
    """Each way of counting ids, where its package is there; all count alike."""
    chunks = {png: take_apart(png) for png in images}
    table = class_list.lookup_table
    if segments:  # a segment's id has one class in all labels, so that one table does for Pillow
        table = np.full(1 << 24, UNKNOWN_CLASS, np.uint8)
        for each in segments.values():
            table[[*each.category_of]] = [*each.category_of.values()]

    def bincount(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        if segments:
            wide = values.astype(np.uint32)
            values = wide[..., 0] | wide[..., 1] << 8 | wide[..., 2] << 16
        elif values.ndim == 3:
            values = values[..., 0]
        return np.bincount(table[values].ravel(), minlength=256)

    ways: dict[str, Way] = {
        "Framesift": lambda png: count_pixels(png, class_list, segments.get(png)),
        "inflate": lambda png: deflate.zlib_decompress(
            chunks[png].pixels, chunks[png].header.inflated_bytes
        ),
        "Pillow+bincount": lambda png: bincount(np.asarray(_image(png))),
    }
    cv2 = _optional("cv2")
    # OpenCV reads palettes as colours, and colours from blue on.
    if cv2 is not None and chunks[images[0]].header.colour_type == 0:
        ways["OpenCV+bincount"] = lambda png: bincount(
            cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
        )
    for png in images:
        counts = count_pixels(png, class_list, segments.get(png)).counts.tolist()
        for name in ("Pillow+bincount", "OpenCV+bincount"):
            if name in ways and ways[name](png)[: len(class_list)].tolist() != counts:
                sys.exit(f"counts differ from {name}: nothing is measured")
    return ways


def _with_palette(ids: npt.NDArray[np.uint8]) -> Image.Image:
    image = Image.fromarray(ids)
    image.putpalette(bytes(3 * 256))
    return image


def _in_red(ids: npt.NDArray[np.uint8]) -> Image.Image:
    """A bitmask as BDD100K has them: classes in red, instances in blue."""
    rgba = np.zeros((*ids.shape, 4), np.uint8)
    rgba[..., 0], rgba[..., 2] = ids, np.arange(ids.shape[1]) // 400
    return Image.fromarray(rgba)


def _wide(ids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.resize(ids, (1024, ids.shape[1]))[:, np.arange(2048) % ids.shape[1]]


def _instances(ids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """An instance map: the number of an instance changes every 400 pixels along a row."""
    return (ids.astype(np.uint16) * 1000 + np.arange(ids.shape[1]) // 400).astype(np.uint16)


def _panoptic(ids: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The same instances as segments of a panoptic label."""
    numbers = _instances(ids).astype(np.uint32)
    parts = (numbers & 255, numbers >> 8 & 255, numbers >> 16)
    rgb: npt.NDArray[np.uint8] = np.stack(parts, axis=-1).astype(np.uint8)
    return rgb


def _image(png: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(png))
    image.load()
    return image


def _packed(png: bytes) -> npt.NDArray[np.uint32]:
    rgb = np.asarray(_image(png).convert("RGB")).astype(np.uint32)
    return np.asarray(rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2], dtype=np.uint32)


def _masks(png: bytes, palette: ClassList) -> list[int]:
    rgb = np.asarray(_image(png).convert("RGB"))
    counts = [0] * len(palette)
    for colour, class_id in palette.class_of_key.items():
        channels = np.array([colour >> 16, colour >> 8 & 255, colour & 255], dtype=np.uint8)
        counts[class_id] += int((rgb == channels).all(axis=2).sum())
    return counts


def _compare_counts(labels: list[bytes], palette: ClassList) -> None:
    for png in labels:
        expected = _masks(png, palette)
        if any(_count(png, palette, few).counts.tolist() != expected for few in (0, sys.maxsize)):
            sys.exit("counts differ from one mask per class: nothing is measured")


def _measure(ways: dict[str, Way], labels: list[bytes]) -> dict[str, list[float]]:
    """CPU time of each way [ms], by label: the best of several."""
    best = {name: [float("inf")] * len(labels) for name in ways}
    for way in ways.values():
        way(labels[0])
    for round_number in range(ROUNDS):
        for name, way in ways.items():
            slow = name == "one mask per class"
            if slow and round_number:
                continue
            for _ in range(1 if slow else 3):
                for number, png in enumerate(labels):
                    began = time.process_time_ns()
                    way(png)
                    spent = (time.process_time_ns() - began) / 1e6
                    best[name][number] = min(best[name][number], spent)
    return best


def _print(
    best: dict[str, list[float]], labels: list[bytes], chunks: dict[bytes, PngChunks], root: Path
) -> None:
    mean = {name: sum(times) / len(labels) for name, times in best.items()}
    ours = mean["Framesift count_pixels"]
    size = sum(map(len, labels)) / len(labels)
    raw = sum(chunks[png].header.inflated_bytes for png in labels) / len(labels)
    print(f"{len(labels)} labels of {root.name}: {size / 1e3:.0f} kB, {raw / 1e6:.1f} MB inflated")
    print(f"{_processor()}, one core; CPU ms per label, best of {3 * ROUNDS}\n")
    print(f"{'way':28}{'ms':>10}{'times ours':>12}")
    for name, spent in sorted(mean.items(), key=lambda item: -item[1]):
        print(f"{name:28}{spent:10.2f}{spent / ours:12.2f}")
    limit, plain = mean["libdeflate inflate alone"], mean["Pillow decode + getcolors"]
    print(f"\nagainst Pillow decode + getcolors: {plain / ours:.1f} times as fast (target 15)")
    print(f"against libdeflate inflate alone: {ours / limit:.2f} times its time (target 1)")
    each = best["Framesift count_pixels"]
    faster = zip(best["Pillow decode + getcolors"], each, strict=True)
    inflated = zip(each, best["libdeflate inflate alone"], strict=True)
    print("label by label, Pillow:    ", *(f"{plain / ours:6.1f}" for plain, ours in faster))
    print("label by label, libdeflate:", *(f"{ours / limit:6.2f}" for ours, limit in inflated))
    print("\nlabel by label [ms]")
    for name in (
        "Framesift count_pixels", "Framesift, one of few", "libdeflate inflate alone",
        "Pillow decode + getcolors",
    ):  # fmt: skip
        print(f"{name:28}" + "".join(f"{spent:7.2f}" for spent in best[name]))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


if __name__ == "__main__":
    main()
