"""Counting by runs, at every place where a run may begin, end or cross a block; undoing filters."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.labels.palette import UNKNOWN_CLASS, Palette
from ingest.labels.pixel_count import count_pixels
from ingest.labels.run_kernel import unfilter
from tests.ingest.png_writer import Picture, encode, raw_rows

COLOURS = (0xFF0000, 0x87CEFF, 0xFF00FF, 0x123456)


def _rows(widths: list[tuple[int, int]], width: int) -> list[int]:
    """A row of ``width`` pixels: runs of (length, colour index), the last one cut or stretched."""
    row: list[int] = []
    for length, colour in widths:
        row += [COLOURS[colour]] * length
    row = row[:width]
    return row + [row[-1]] * (width - len(row))


runs = st.lists(st.tuples(st.integers(1, 140), st.integers(0, 3)), min_size=1, max_size=12)


@settings(max_examples=200, deadline=None)
@given(
    width=st.integers(1, 260),
    rows=st.lists(st.tuples(st.integers(0, 1), runs), min_size=1, max_size=6),
)
def test_runs_of_any_length_are_counted(
    palette: Palette, width: int, rows: list[tuple[int, list[tuple[int, int]]]]
) -> None:
    """Rows of filter None and Sub, runs longer and shorter than a block of 32 pixels."""
    pixels = [_rows(found, width) for _, found in rows]
    filters = tuple(filter_type for filter_type, _ in rows)
    samples = [[(c >> 16, c >> 8 & 255, c & 255) for c in row] for row in pixels]
    png = encode(Picture(samples, filters=filters))
    wanted = np.zeros(256, dtype=np.int64)
    for row in pixels:
        for colour in row:
            wanted[palette.class_of_colour.get(colour, UNKNOWN_CLASS)] += 1
    counted = count_pixels(png, palette)
    assert counted.counts.tolist() == wanted[: len(palette)].tolist()
    assert counted.unknown == wanted[UNKNOWN_CLASS]


def test_every_tie_of_the_paeth_filter() -> None:
    """Left, above and corner on a grid that has every tie: what was filtered comes back."""
    triples = list(product(range(0, 256, 15), repeat=3))
    above = [(sample,) for corner, above, _ in triples for sample in (corner, above)]
    below = [(sample,) for _, _, left in triples for sample in (left, 77)]
    raw = np.frombuffer(raw_rows(Picture([above, below], 0, filters=(0, 4))), np.uint8).copy()
    assert unfilter(raw, 2, len(above), 1) == 2
    assert raw.reshape(2, -1)[:, 1:].tolist() == [
        [sample for (sample,) in row] for row in (above, below)
    ]
