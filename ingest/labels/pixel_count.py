"""Counts the pixels of a label image that each class covers."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.labels.inflate import crc32, inflate
from ingest.labels.label_image import open_png
from ingest.labels.palette import UNKNOWN_CLASS, Palette
from ingest.labels.png_chunks import PngChunks, PngHeader, take_apart

_REPORTED_COLOURS = 16

FEW_LABELS = 50
"""Labels that a process counts before it loads the faster way: that takes 12 ms of CPU."""

FEW_TO_COMPILE_FOR = 1000
"""Labels that a process counts before it compiles the faster way, which takes 5 to 8 s of CPU, once
for an installation (docs/decisions/0034)."""

_label_numbers = itertools.count()


@dataclass(frozen=True)
class PixelCounts:
    """Pixels per class of one label image; all counts are exact and sum to width * height.

    Attributes:
        counts: (n_classes,) int64 [pixels], in the palette's class order.
        unknown: Pixels whose colour is not in the palette.
        unknown_colours: Those colours as "#rrggbb" with their pixels, at most the 16 largest.
        digest: 16 hexadecimal digits, the same for images of the same size and colours, however
            they are stored; 64 bits of no cryptographic strength.
    """

    counts: npt.NDArray[np.int64]
    unknown: int
    unknown_colours: Mapping[str, int]
    width: int
    height: int
    digest: str = ""


def count_pixels(png: bytes, palette: Palette) -> PixelCounts:
    """Exact pixels per class of a label PNG; colours are compared exactly, never nearest.

    Alpha is ignored and gamma is not applied. Images of samples of at most 8 bits that are not
    interlaced are counted by `ingest.labels.stretch_rows` where they are RGB, made of areas, and
    many, and otherwise by `ingest.labels.run_kernel`; all others through Pillow.
    """
    chunks = take_apart(png, crc32)
    width, height = chunks.header.width, chunks.header.height
    digest = np.zeros(1, np.uint64)
    if _is_of_bytes(chunks.header):
        counts = _count_rows(chunks, palette, digest)
    else:
        counts = _count_image(png, palette, digest)
    unknown = int(counts[UNKNOWN_CLASS])
    return PixelCounts(
        counts[: len(palette)].copy(),
        unknown,
        _unknown_colours(png, palette) if unknown else {},
        width,
        height,
        f"{int(digest[0]):016x}",
    )


def _is_of_bytes(header: PngHeader) -> bool:
    """True where rows are counted as they are inflated: samples of 8 bits, or several in a byte."""
    if header.interlaced:
        return False
    narrow = header.colour_type in (0, 3) and header.bit_depth in (1, 2, 4)
    return header.bit_depth == 8 or narrow


def _count_rows(
    chunks: PngChunks, palette: Palette, digest: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of an image that `_is_of_bytes`; and digest."""
    from ingest.labels import (
        run_kernel,  # Numba takes half a second to import: only who counts needs it
    )

    header = chunks.header
    width, height = header.width, header.height
    counts = np.zeros(256, dtype=np.int64)
    if (header.colour_type, header.bit_depth) == (2, 8) and _is_one_of_many():
        from ingest.labels import stretch_rows

        if stretch_rows.count(chunks.pixels, height, width, palette.lookup_table, counts, digest):
            return counts
        counts[:] = 0
    raw = inflate(chunks.pixels, header.inflated_bytes)
    several = header.samples >= 3
    colours = _colours_of_samples(chunks)
    done = run_kernel.count_rows(
        raw,
        height,
        width,
        header.samples,
        header.bit_depth,
        palette.lookup_table,
        counts,
        np.resize(colours, 256),
        digest,
    )
    if done < height:
        raise BadFile(f"PNG is damaged: row {done} has a filter that PNG does not know")
    return counts if several else _classes_of_samples(counts, colours, palette)


def _is_one_of_many() -> bool:
    """Estimate that the faster way pays for the next label; it costs time where wrong."""
    number = next(_label_numbers)
    if number < FEW_LABELS or number >= FEW_TO_COMPILE_FOR:
        return number >= FEW_LABELS
    from ingest.labels import stretch_rows

    return stretch_rows.is_compiled()


def _colours_of_samples(chunks: PngChunks) -> npt.NDArray[np.uint32]:
    """(256 or fewer,) uint32 colour by grey level or palette index."""
    levels = np.arange(1 << chunks.header.bit_depth, dtype=np.uint32)
    levels *= 255 // levels[-1]
    colours = levels << 16 | levels << 8 | levels
    if chunks.palette is not None and chunks.header.colour_type == 3:
        entries = np.frombuffer(chunks.palette, dtype=np.uint8)[: len(chunks.palette) // 3 * 3]
        red, green, blue = entries.reshape(-1, 3)[:256].astype(np.uint32).T
        colours = red << 16 | green << 8 | blue
    return colours.astype(np.uint32)


def _classes_of_samples(
    pixels: npt.NDArray[np.int64], colours: npt.NDArray[np.uint32], palette: Palette
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, from pixels by grey level or palette index."""
    largest = int(np.flatnonzero(pixels).max())
    if largest >= len(colours):
        raise BadFile(f"PNG is damaged: uses colour {largest} of a palette of {len(colours)}")
    counts = np.zeros(256, dtype=np.int64)
    np.add.at(counts, palette.lookup_table[colours], pixels[: len(colours)])
    return counts


def _count_image(
    png: bytes, palette: Palette, digest: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """(256,) int64 [pixels] by class id, of any PNG, decoded by Pillow; and digest."""
    from ingest.labels import run_kernel

    image = open_png(png)
    rows = np.zeros((image.height, 1 + 3 * image.width), np.uint8)
    rows[:, 1:] = np.asarray(image).reshape(image.height, -1)
    counts = np.zeros(256, dtype=np.int64)
    run_kernel.count_rows(
        rows.ravel(), image.height, image.width, 3, 8, palette.lookup_table, counts,
        np.zeros(256, np.uint32), digest,
    )  # fmt: skip
    return counts


def _unknown_colours(png: bytes, palette: Palette) -> dict[str, int]:
    unknown = [item for item in _colours(png) if item[0] not in palette.class_of_colour]
    unknown.sort(key=lambda item: (-item[1], item[0]))
    return {f"#{colour:06x}": pixels for colour, pixels in unknown[:_REPORTED_COLOURS]}


def _colours(png: bytes) -> list[tuple[int, int]]:
    """Colours 0xRRGGBB of an image with their pixels."""
    image = open_png(png)
    # A small table first: Pillow clears all of it for every image.
    colours = image.getcolors(1 << 10) or image.getcolors(image.width * image.height) or []
    return [(red << 16 | green << 8 | blue, pixels) for pixels, (red, green, blue) in colours]  # type: ignore[misc]
