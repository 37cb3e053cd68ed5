"""Counting by runs, at every place where a run may begin, end or cross a block, in any filter."""

import zlib
from collections import Counter
from itertools import pairwise, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import BadFile
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import open_png
from ingest.labels.pixel_count import count_pixels
from tests.ingest.png_writer import Picture, Pixel, around, encode, raw_rows

LISTED = ClassList.from_colours(
    {"#ff0000": "Car", "#87ceff": "Sky", "#000000": "Black", "#555555": "Grey", "#ffffff": "White"}
)
FORMATS = ((2, 8), (6, 8), (0, 8), (4, 8), (3, 8), (3, 4), (3, 2), (3, 1), (0, 4), (0, 2), (0, 1))
COLOURS: tuple[tuple[int, int, int], ...] = (
    (255, 0, 0), (0x87, 0xCE, 255), (0, 0, 0), (255, 0, 0), (0x12, 0x34, 0x56),
)  # fmt: skip


def _pixels(colour_type: int, depth: int) -> list[Pixel]:
    """Some pixels of a format; two of them show the same colour where it can say one twice."""
    most = (1 << depth) - 1
    if colour_type == 3:
        return [(index,) for index in range(min(most + 1, len(COLOURS)))]
    if colour_type == 0:
        return [(0,), (most,), (most // 3,)]
    if colour_type == 4:
        return [(0, 0), (0, 255), (255, 7), (85, 7)]
    return [colour + (alpha,) * (colour_type == 6) for colour in COLOURS for alpha in (0, 255)]


def _row(rng: Random, pixels: list[Pixel], width: int) -> list[Pixel]:
    row: list[Pixel] = []
    while len(row) < width:
        row += [rng.choice(pixels)] * rng.choice([1, 1, 2, 3, 9, 32, 33, 140])
    return row[:width]


def _picture(rng: Random) -> Picture:
    """Areas, many of them as in the row above or moved by a pixel, in any filter."""
    colour_type, depth = rng.choice(FORMATS)
    pixels = _pixels(colour_type, depth)
    width = rng.choice([1, 2, 7, 8, 9, 31, 32, 33, 65, 260])
    rows = [_row(rng, pixels, width)]
    for _ in range(rng.choice([0, 1, 5, 12])):
        row, chance = list(rows[-1]), rng.random()
        if chance < 0.3:
            row = _row(rng, pixels, width)
        elif chance < 0.6:
            row = row[:1] + row[:-1]
        elif chance < 0.8:
            row[rng.randrange(width)] = rng.choice(pixels)
        rows.append(row)
    filters = tuple(rng.randrange(5) for _ in range(rng.choice([1, 1, 2, 5])))
    return Picture(rows, colour_type, depth, filters, palette=COLOURS if colour_type == 3 else ())


def _rgb(picture: Picture) -> list[list[tuple[int, int, int]]]:
    most = (1 << picture.depth) - 1

    def of(pixel: Pixel) -> tuple[int, int, int]:
        if picture.palette:
            return picture.palette[pixel[0]]
        red, green, blue = pixel[:3] if len(pixel) >= 3 else pixel[:1] * 3
        return red * 255 // most, green * 255 // most, blue * 255 // most

    return [[of(pixel) for pixel in row] for row in picture.rows]


@settings(max_examples=200, deadline=None, database=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_runs_are_counted_in_any_format_and_filter(seed: int) -> None:
    """As pixel by pixel, as Pillow decodes them, and with the digest of the same RGB picture."""
    picture = _picture(Random(seed))
    if picture.colour_type == 3:  # no more colours than its samples can say
        picture = Picture(
            picture.rows, 3, picture.depth, picture.filters,
            palette=picture.palette[: 1 << picture.depth],
        )  # fmt: skip
    png, colours = encode(picture), _rgb(picture)
    counted = count_pixels(png, LISTED)
    pixels = Counter(red << 16 | green << 8 | blue for row in colours for red, green, blue in row)
    assert counted.counts.tolist() == [pixels[colour] for colour in LISTED.class_of_key]
    assert counted.unknown == pixels.total() - sum(counted.counts.tolist())
    assert np.array_equal(np.asarray(open_png(png)), np.array(colours, np.uint8))
    assert counted.digest == count_pixels(encode(Picture(colours)), LISTED).digest


@pytest.mark.wide
def test_every_tie_of_the_paeth_filter() -> None:
    """Left, above and corner on a grid that has every tie, in each byte of a pixel."""
    triples = list(product(range(0, 256, 15), repeat=3))
    above = [sample for corner, over, _ in triples for sample in (corner, over)]
    below = [sample for _, _, left in triples for sample in (left, 77)]
    for samples, colour_type in ((1, 0), (3, 2), (4, 6)):
        # Each byte its own: the others are those of other triples.
        rows = [
            [tuple(row[(at + 2 * n) % len(row)] for n in range(samples)) for at in range(len(row))]
            for row in (above, below)
        ]
        by_paeth = count_pixels(encode(Picture(rows, colour_type, filters=(0, 4))), LISTED)
        plain = count_pixels(encode(Picture(rows, colour_type)), LISTED)
        assert by_paeth.digest == plain.digest
        assert any(one != other for one, other in pairwise(rows[1]))


@pytest.mark.parametrize(("colour_type", "depth"), FORMATS)
def test_a_filter_that_png_does_not_know(colour_type: int, depth: int) -> None:
    """The row is named, whatever the format; what the rows above hold does not matter."""
    picture = Picture([[pixel] * 9 for pixel in _pixels(colour_type, depth)[:2]] * 2, colour_type,
                      depth, palette=COLOURS[: 1 << depth] if colour_type == 3 else ())  # fmt: skip
    raw = bytearray(raw_rows(picture))
    raw[len(raw) // 4 * 2] = 5
    with pytest.raises(BadFile, match="row 2 has a filter that PNG does not know"):
        count_pixels(around(picture, zlib.compress(bytes(raw))), LISTED)


def test_a_colour_that_the_palette_lacks() -> None:
    """An index beyond the palette is damage, also where a byte holds several."""
    for depth in (2, 4, 8):
        picture = Picture([[(0,), (1,), (3,)]], 3, depth, palette=COLOURS[:3])
        with pytest.raises(BadFile, match="uses colour 3 of a palette of 3"):
            count_pixels(encode(picture), LISTED)
