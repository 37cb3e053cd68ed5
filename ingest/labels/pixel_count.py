"""Counts the pixels of a label image that each class covers."""

import itertools
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.encoding import SAMPLES
from ingest.labels.inflate import crc32, inflate
from ingest.labels.label_image import check_samples, decode_values, open_png
from ingest.labels.png_chunks import PngChunks, take_apart
from ingest.labels.segments import Segments, class_of_colour, turned

_REPORTED_KEYS = 16

FEW_LABELS = 50
"""Labels that a process counts before it loads the faster way: that takes 12 ms of CPU."""

FEW_TO_COMPILE_FOR = 1000
"""Labels that a process counts before it compiles the faster way, which takes 5 to 8 s of CPU, once
for an installation (docs/decisions/0034)."""

_LEVELS: npt.NDArray[np.uint32] = np.arange(256, dtype=np.uint32)
_label_numbers = itertools.count()


@dataclass(frozen=True)
class PixelCounts:
    """Pixels per class of one label image; all counts are exact and sum to width * height."""

    counts: npt.NDArray[np.int64]
    """(n_classes,) int64 [pixels], in the class list's class order."""
    unknown: int
    """Pixels whose key the class list does not have."""
    unknown_keys: Mapping[str, int]
    """Those keys, "#rrggbb" of colours, with their pixels; at most the 16 largest. Not void."""
    width: int
    height: int
    digest: str = ""
    """16 hexadecimal digits, the same for images of the same size and values, however they are
    stored; 64 bits of no cryptographic strength.
    """
    void: int = 0
    """Unknown pixels of panoptic labels that are of no segment, as id 0 says."""


def count_pixels(
    png: bytes, class_list: ClassList, segments: Segments | None = None
) -> PixelCounts:
    """Exact pixels per class of a label PNG; keys are compared exactly, never nearest.

    Alpha is ignored and gamma is not applied. Images that are not interlaced are counted by
    `ingest.labels.sample_kernel` where a pixel is one sample, and of 8 bits of RGB or RGBA by
    `ingest.labels.run_kernel`, or `ingest.labels.stretch_rows` where they are RGB, made of areas,
    and many; all others through Pillow.

    Args:
        segments: Of a panoptic label.
    """
    chunks = take_apart(png, crc32)
    width, height = chunks.header.width, chunks.header.height
    digest = np.zeros(1, np.uint64)
    check_samples(chunks, class_list.encoding)
    with _table(class_list, segments) as table:
        counts = _counts(png, chunks, class_list, table, digest)
    unknown, void = int(counts[UNKNOWN_CLASS]), 0
    unknown_keys = dict[str, int]()
    if unknown:
        unknown_keys = _unknown_keys(png, chunks, class_list, segments)
    if class_list.encoding.is_panoptic:
        void = int(counts[len(class_list)])
    return PixelCounts(
        counts[: len(class_list)].copy(),
        unknown + void,
        unknown_keys,
        width,
        height,
        f"{int(digest[0]):016x}",
        void,
    )


def _table(
    class_list: ClassList, segments: Segments | None
) -> AbstractContextManager[npt.NDArray[np.uint8]]:
    """Class ids by a pixel's value, for the block; of void the first that no class has."""
    if not class_list.encoding.is_panoptic:
        return nullcontext(class_list.lookup_table)
    if segments is None:
        raise ValueError("a panoptic label that is to be counted needs its segments")
    return class_of_colour(segments, class_list.lookup_table, len(class_list))


def _counts(
    png: bytes,
    chunks: PngChunks,
    class_list: ClassList,
    table: npt.NDArray[np.uint8],
    digest: npt.NDArray[np.uint64],
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id; and digest."""
    header, encoding = chunks.header, class_list.encoding
    by_colour = encoding.is_colour or encoding.is_panoptic
    one_sample = header.samples < 3
    if not header.interlaced and header.bit_depth in ((1, 2, 4, 8) if one_sample else (8,)):
        if one_sample:
            return _count_samples(chunks, class_list, digest)
        if by_colour:
            return _count_colours(chunks, class_list, table, digest)
    if by_colour:
        return _count_decoded(np.asarray(open_png(png)), table, digest)
    if not header.interlaced:
        try:
            if one_sample:
                return _count_samples(chunks, class_list, digest)
            return _count_colours(chunks, class_list, table, digest)
        except BadFile:
            pass  # Pillow says what is wrong
    return _count_values(chunks, class_list, digest)


def _count_values(
    chunks: PngChunks, class_list: ClassList, digest: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of an image whose values are decoded first; and digest."""
    values = decode_values(chunks, class_list.encoding)
    as_colour = np.zeros((*values.shape, 3), np.uint8)
    as_colour[..., 1], as_colour[..., 2] = values >> 8, values & 255
    return _count_decoded(as_colour, class_list.lookup_table, digest)


def _count_colours(
    chunks: PngChunks,
    class_list: ClassList,
    table: npt.NDArray[np.uint8],
    digest: npt.NDArray[np.uint64],
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of 8 bits of RGB or RGBA, not interlaced; and digest."""
    from ingest.labels import (
        run_kernel,  # Numba takes half a second to import: only who counts needs it
    )

    header = chunks.header
    width, height = header.width, header.height
    counts = np.zeros(256, dtype=np.int64)
    channel = class_list.encoding.channel
    if header.samples == 3 and channel is None and _is_one_of_many():
        from ingest.labels import stretch_rows

        if stretch_rows.count(chunks.pixels, height, width, table, counts, digest):
            return counts
        counts[:] = 0
    raw = inflate(chunks.pixels, header.inflated_bytes)
    done = run_kernel.count_rows(raw, height, width, header.samples, channel, table, counts, digest)
    _check_rows(done, height)
    return counts


def _count_samples(
    chunks: PngChunks, class_list: ClassList, digest: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of one sample a pixel, not interlaced; and digest.

    16-bit samples are keys; narrower ones may stand for colours.
    """
    from ingest.labels import sample_kernel

    header = chunks.header
    raw = inflate(chunks.pixels, header.inflated_bytes)
    counts = np.zeros(256, dtype=np.int64)
    values = _values_of_samples(chunks, class_list)
    value_of = np.zeros(256, np.uint32)
    value_of[: len(values)] = values
    done = sample_kernel.count(
        raw,
        header.height,
        header.width,
        header.samples,
        header.bit_depth,
        class_list.lookup_table,
        value_of,
        counts,
        digest,
    )
    _check_rows(done, header.height)
    return counts if header.bit_depth == 16 else _classes_of_samples(counts, values, class_list)


def _check_rows(done: int, height: int) -> None:
    if done < height:
        raise BadFile(f"PNG is damaged: row {done} has a filter that PNG does not know")


def _is_one_of_many() -> bool:
    """Estimate that the faster way pays for the next label; it costs time where wrong."""
    number = next(_label_numbers)
    if number < FEW_LABELS or number >= FEW_TO_COMPILE_FOR:
        return number >= FEW_LABELS
    from ingest.labels import stretch_rows

    return stretch_rows.is_compiled()


def _values_of_samples(chunks: PngChunks, class_list: ClassList) -> npt.NDArray[np.uint32]:
    """(256 or fewer,) uint32 by palette index, or level of grey of 8 bits or fewer.

    The sample itself, or its colour.
    """
    levels = _LEVELS[: min(256, 1 << chunks.header.bit_depth)]
    palette = chunks.palette if chunks.header.colour_type == 3 else None
    if not class_list.encoding.is_colour:
        return levels if palette is None else levels[: len(palette) // 3]
    red = green = blue = levels * (255 // levels[-1])
    if palette is not None:
        entries = np.frombuffer(palette, np.uint8)[: len(palette) // 3 * 3]
        red, green, blue = entries.reshape(-1, 3)[:256].astype(np.uint32).T
    colours: npt.NDArray[np.uint32] = red << 16 | green << 8 | blue
    return colours


def _classes_of_samples(
    pixels: npt.NDArray[np.int64], colours: npt.NDArray[np.uint32], class_list: ClassList
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, from pixels by grey level or palette index."""
    largest = int(pixels.nonzero()[0][-1])
    if largest >= len(colours):
        raise BadFile(f"PNG is damaged: uses colour {largest} of a palette of {len(colours)}")
    # Sums of pixels are far below 2**53, so they are exact.
    sums = np.bincount(class_list.lookup_table[colours], pixels[: len(colours)], minlength=256)
    return sums.astype(np.int64)


def _count_decoded(
    rgb: npt.NDArray[np.uint8], table: npt.NDArray[np.uint8], digest: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of (H, W, 3) pixels [RGB]; and digest."""
    from ingest.labels import run_kernel

    height, width, _ = rgb.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = rgb.reshape(height, -1)
    counts = np.zeros(256, dtype=np.int64)
    run_kernel.count_rows(rows.ravel(), height, width, 3, None, table, counts, digest)
    return counts


def _unknown_keys(
    png: bytes, chunks: PngChunks, class_list: ClassList, segments: Segments | None
) -> dict[str, int]:
    encoding = class_list.encoding
    if segments is not None:
        return _unknown_segments(png, class_list, segments)
    if encoding.is_colour:
        pixels_of_key = _colours(png)
    else:
        values = np.bincount(decode_values(chunks, encoding).ravel(), minlength=SAMPLES)
        pixels_of_key = {}
        for value in np.flatnonzero(values):
            key = int(encoding.keys(value))
            pixels_of_key[key] = pixels_of_key.get(key, 0) + int(values[value])
    unknown = [item for item in pixels_of_key.items() if item[0] not in class_list.class_of_key]
    unknown.sort(key=lambda item: (-item[1], item[0]))
    return {encoding.key_text(key): pixels for key, pixels in unknown[:_REPORTED_KEYS]}


def _unknown_segments(png: bytes, class_list: ClassList, segments: Segments) -> dict[str, int]:
    """Pixels of categories that are no class, and of ids that are no segment."""
    unknown: dict[str, int] = {}
    for colour, pixels in _colours(png).items():
        number = turned(colour)
        category = segments.category_of.get(number)
        if number and category not in class_list.class_of_key:
            what = f"segment {number}" if category is None else f"category {category}"
            unknown[what] = unknown.get(what, 0) + pixels
    largest = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))
    return dict(largest[:_REPORTED_KEYS])


def _colours(png: bytes) -> dict[int, int]:
    """Pixels of each colour 0xRRGGBB of an image."""
    image = open_png(png)
    # A small table first: Pillow clears all of it for every image.
    colours = image.getcolors(1 << 10) or image.getcolors(image.width * image.height) or []
    return {red << 16 | green << 8 | blue: pixels for pixels, (red, green, blue) in colours}  # type: ignore[misc]
