"""Counting while inflating: equal to slow counting for every stream, and never beyond a buffer."""

import json
import os
import subprocess
import sys
import zlib
from collections import Counter
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import BadFile
from ingest.labels import pixel_count, stretch_rows
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.label_image import open_png
from ingest.labels.pixel_count import count_pixels
from ingest.labels.png_chunks import take_apart
from tests.ingest.deflate_writer import Bits, deflated
from tests.ingest.png_writer import SAMPLES, Picture, Pixel, around, raw_rows

REPOSITORY = Path(__file__).parent.parent.parent
LISTED = ClassList.from_colours(
    {"#ff0000": "Car", "#010203": "Sky", "#000000": "Black", "#555555": "Grey", "#ffffff": "White"}
)
COLOURS: list[Pixel] = [(255, 0, 0), (1, 2, 3), (0, 0, 0), (0, 0, 7), (85, 85, 85)]


def _label(rng: Random) -> Picture:
    """Areas of few colours, some of them as in the row above, in rows with filter None or Sub."""
    width, height = rng.choice([(1, 9), (7, 5), (60, 20), (700, 3), (2000, 12), (300, 130)])
    rows: list[list[Pixel]] = []
    for _ in range(height):
        if rows and rng.random() < 0.4:
            rows.append(list(rows[-1]))
            continue
        row: list[Pixel] = []
        while len(row) < width:
            row += _area(rng)
        rows.append(row[:width])
    filters = tuple(rng.choice([[0], [1], [0, 1], [0, 0, 1, 1, 1]]))
    return Picture(rows, 2, 8, filters, idat_bytes=rng.choice([50, 8192]))


def _area(rng: Random) -> list[Pixel]:
    size = rng.choice([1, 1, 2, 3, 30, 500])
    if rng.random() < 0.05:  # a difference that repeats
        step = rng.choice([1, 3, 0x30])
        return [(x * step % 256,) * 3 for x in range(size)]
    return [rng.choice(COLOURS)] * size


def _any_picture(rng: Random) -> Picture:
    """Small areas in any 8-bit format and filter."""
    colour_type = rng.choice([2, 6, 0, 3, 4])
    palette = ((255, 0, 0), (1, 2, 3), (0, 0, 0), (9, 9, 9)) if colour_type == 3 else ()
    width = rng.choice([1, 7, 60, 300])
    rows: list[list[Pixel]] = []
    for _ in range(rng.choice([1, 5, 20])):
        row: list[Pixel] = []
        while len(row) < width:
            row += [_pixel(rng, colour_type)] * rng.choice([1, 1, 2, 3, 30])
        rows.append(row[:width])
    filters = tuple(rng.choice([[0], [1], [2], [3], [4], [0, 1, 2, 3, 4]]))
    return Picture(rows, colour_type, 8, filters, palette=palette, idat_bytes=rng.choice([50, 999]))


def _pixel(rng: Random, colour_type: int) -> Pixel:
    if colour_type == 3:
        return (rng.randrange(4),)
    grey = rng.choice([0, 85, 255])
    colour = (grey,) if SAMPLES[colour_type] < 3 else rng.choice(COLOURS)
    return (*colour, rng.choice([0, 255])) if colour_type in (4, 6) else colour


def _slow(picture: Picture) -> tuple[list[int], int]:
    """Pixels of each listed class; and of none."""
    counts: Counter[int] = Counter()
    for row in picture.rows:
        for pixel, many in Counter(row).items():
            rgb = picture.palette[pixel[0]] if picture.palette else pixel
            rgb = rgb[:3] if len(rgb) >= 3 else (rgb[0],) * 3
            counts[rgb[0] << 16 | rgb[1] << 8 | rgb[2]] += many
    listed = [counts[colour] for colour in LISTED.class_of_key]
    return listed, counts.total() - sum(listed)


def _stream(rng: Random, picture: Picture) -> bytes:
    """A stream of a picture that chooses blocks, codes and matches at random."""
    raw = raw_rows(picture)
    pixel = SAMPLES[picture.colour_type]
    stride = 1 + pixel * picture.size[0]
    distances = rng.choice(
        [[1], [pixel], [1, pixel], [1] * 9 + [pixel] * 9 + [2, 4, stride], [pixel, 5, 4 * stride]]
    )
    eager, usual = rng.choice([0.3, 0.95, 1.0]), rng.random() < 0.9
    stream = deflated(raw, rng, distances, eager, usual=usual)
    assert zlib.decompress(stream) == raw
    return stream


def _by_stretches(stream: bytes, picture: Picture) -> tuple[list[int], int, str] | None:
    """Listed pixels, others and digest, as counted while inflating; None where they are not."""
    counts, digest = np.zeros(256, np.int64), np.zeros(1, np.uint64)
    width, height = picture.size
    if not stretch_rows.count(stream, height, width, LISTED.lookup_table, counts, digest):
        return None
    return counts[: len(LISTED)].tolist(), int(counts[UNKNOWN_CLASS]), f"{int(digest[0]):016x}"


def _by_libdeflate(raw: bytes, picture: Picture) -> tuple[list[int], int, str]:
    """The same of filtered rows, as counted once they are inflated."""
    counts = count_pixels(around(picture, zlib.compress(raw, level=0)), LISTED)
    return counts.counts.tolist(), counts.unknown, counts.digest


def _damages(rng: Random, stream: bytes) -> list[bytes]:
    """Streams with one bit changed, of the blocks, of the checksum; cut; with a byte too many."""
    bit = rng.randrange(8 * len(stream))
    return [
        _changed(stream, bit),
        _changed(stream, 8 * len(stream) - 1 - rng.randrange(32)),
        stream[: rng.randrange(len(stream))],
        stream[:-1],
    ]


def _changed(stream: bytes, bit: int) -> bytes:
    damaged = bytearray(stream)
    damaged[bit >> 3] ^= 1 << (bit & 7)
    return bytes(damaged)


def agree(seed: int) -> bool:
    """Count a label that this number draws; whether it was counted while inflating."""
    rng = Random(seed)
    picture = _label(rng)
    stream = _stream(rng, picture)
    counts = _by_stretches(stream, picture)
    plain = _by_libdeflate(raw_rows(picture), picture)
    assert plain[:2] == _slow(picture)
    assert counts in (None, plain), seed
    for damaged in _damages(rng, stream):
        wrong = _by_stretches(damaged, picture)
        # A bit may stand between the blocks' end and a whole byte; and now and then Adler-32 fits.
        taken = None if wrong is None else zlib_takes(damaged)
        assert wrong is None or (taken and wrong == _by_libdeflate(taken, picture)), seed
    return counts is not None


def agree_whatever_it_is(seed: int) -> None:
    """Count a picture that this number draws, through `count_pixels`, and refuse its damages."""
    rng = Random(seed)
    picture = rng.choice([_label, _any_picture])(rng)
    stream = _stream(rng, picture)
    counts = count_pixels(around(picture, stream), LISTED)
    assert (counts.counts.tolist(), counts.unknown) == _slow(picture), seed
    for damaged in _damages(rng, stream):
        if zlib_takes(damaged) is None:
            with pytest.raises(BadFile):
                count_pixels(around(picture, damaged), LISTED)


def zlib_takes(stream: bytes) -> bytes | None:
    """What zlib inflates of a stream; None where it refuses it."""
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return None


@pytest.fixture(autouse=True)
def _no_label_is_one_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_count, "FEW_LABELS", 0)
    monkeypatch.setattr(pixel_count, "FEW_TO_COMPILE_FOR", 0)


@pytest.mark.wide
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_stream_of_any_label(seed: int) -> None:
    """Blocks, codes and matches at random: counts, digest, and damages."""
    agree(seed)


@pytest.mark.wide
def test_most_are_counted_while_inflating() -> None:
    """The property above holds of streams that this way counts, and not of what it leaves."""
    assert sum(agree(seed) for seed in range(40)) >= 12


@pytest.mark.wide
def test_labels_of_the_sample_frames_and_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What encoders write is counted while inflating where libdeflate would copy pixel by pixel."""
    root = Path(os.environ.get("A2D2_ROOT") or REPOSITORY / "sample_data/a2d2")
    class_list = json.loads(next(root.rglob("class_list.json")).read_text(encoding="utf-8"))
    palette = ClassList.from_colours(class_list)
    monkeypatch.setattr(pixel_count, "FEW_LABELS", 1 << 60)  # `count_pixels` is the other way
    ways = []
    for path in sorted(root.rglob("*_label_*.png"))[:16]:
        png = path.read_bytes()
        expected = np.zeros(256, np.int64)
        for pixels, rgb in open_png(png).getcolors(1 << 24) or []:
            red, green, blue = rgb  # type: ignore[misc]
            expected[palette.lookup_table[red << 16 | green << 8 | blue]] += pixels
        totals = np.zeros(256, np.int64)
        chunks = take_apart(png)
        size = chunks.header.height, chunks.header.width
        digest = np.zeros(1, np.uint64)
        ways.append(stretch_rows.count(chunks.pixels, *size, palette.lookup_table, totals, digest))
        if ways[-1]:
            assert totals.tolist() == expected.tolist()
            assert f"{int(digest[0]):016x}" == count_pixels(png, palette).digest
    assert ways.count(True) * 3 >= len(ways)


@pytest.mark.parametrize("wider", [0, 1])
def test_the_widest_rows(wider: int) -> None:
    """Rows up to half the window are counted while inflating, and wider ones otherwise."""
    picture = Picture([[(255, 0, 0)] * (stretch_rows.WIDEST + wider)] * 5, filters=(1,))
    rle = zlib.compressobj(strategy=zlib.Z_RLE)
    stream = rle.compress(raw_rows(picture)) + rle.flush()
    counts = _by_stretches(stream, picture)
    assert (counts is None) == bool(wider)
    assert counts is None or counts[:2] == _slow(picture)
    assert count_pixels(around(picture, stream), LISTED).counts.tolist() == _slow(picture)[0]


@pytest.mark.parametrize("alone", [97, 99, 101, 106, 300])
def test_a_row_as_one_of_long_ago(alone: int) -> None:
    """A match finds what stood before it when the window was moved back, which is within row 98."""
    rng = Random(1)
    mixed = [rng.choice(COLOURS) for _ in range(1000)]
    areas = [[COLOURS[0]] * 700 + [COLOURS[1]] * 300, [COLOURS[4]] * 1000]
    picture = Picture([mixed if y % 10 == 6 else areas[y % 2] for y in range(400)], filters=(1,))
    raw = raw_rows(picture)
    first, rest = raw[: 3001 * alone], raw[3001 * alone :]
    runs = zlib.compressobj(wbits=-15, strategy=zlib.Z_RLE)
    stream = runs.compress(first) + runs.flush(zlib.Z_SYNC_FLUSH)
    any_match = zlib.compressobj(level=9, wbits=-15, zdict=first[-32768:])
    stream = b"\x78\x9c" + stream + any_match.compress(rest) + any_match.flush()
    stream += zlib.adler32(raw).to_bytes(4, "big")
    assert zlib.decompress(stream) == raw
    assert _by_stretches(stream, picture) == _by_libdeflate(raw, picture)


@pytest.mark.wide
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_stream_of_any_picture(seed: int) -> None:
    """All 8-bit formats and filters, whichever way counts them."""
    agree_whatever_it_is(seed)


@pytest.mark.slow
def test_nothing_beyond_a_buffer(tmp_path: Path) -> None:
    """The same with every access to an array checked, by Numba and in ingest.labels.words."""
    program = "from tests.ingest.test_stretch_rows import agree\nfor seed in range(20): agree(seed)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
        env={**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


def _block(*parts: tuple[int, int]) -> bytes:
    bits = Bits()
    for value, count in parts:
        bits.put(value, count)
    return b"\x78\x9c" + bits.done() + bytes(12)


_DYNAMIC = ((1, 1), (2, 2))


@pytest.mark.parametrize(
    "stream",
    [
        _block((1, 1), (3, 2)),
        _block((1, 1), (0, 2), (0, 5), (4, 16), (4, 16)),
        _block(*_DYNAMIC, (30, 5), (0, 5), (0, 4)),
        _block(*_DYNAMIC, (0, 5), (31, 5), (0, 4)),
        _block(*_DYNAMIC, (0, 5), (0, 5), (0, 4), (1, 3), (1, 3), (1, 3)),  # over-subscribed
        _block(*_DYNAMIC, (0, 5), (0, 5), (0, 4), (1, 3)),  # incomplete
        _block(*_DYNAMIC, (0, 5), (0, 5), (0, 4)),  # no code at all
        _block(*_DYNAMIC, (0, 5), (0, 5), (0, 4), (1, 3), (1, 3), (0, 1)),  # repeats nothing
        _block((1, 1), (1, 2), (0b0000001, 7), (0, 5)),  # a match before the first byte
        b"\x79\x9c\x03\0\0\0\0\1",
        b"\x78\xbb\x03\0\0\0\0\1",
    ],
)
def test_streams_that_zlib_refuses(stream: bytes) -> None:
    """Codes, blocks and distances that are none."""
    assert zlib_takes(stream) is None
    with pytest.raises(BadFile):
        count_pixels(around(Picture([[(1, 2, 3)] * 3]), stream), LISTED)


def test_every_tie_of_the_paeth_filter() -> None:
    """Left, above and corner on a grid that has every tie: what was filtered is counted."""
    triples = list(product(range(0, 256, 15), repeat=3))
    above: list[Pixel] = [(sample,) for corner, over, _ in triples for sample in (corner, over)]
    below: list[Pixel] = [(sample,) for _, _, left in triples for sample in (left, 85)]
    grey = [(0, 4), (0, 0)]
    by_paeth, plain = (
        count_pixels(around(picture, zlib.compress(raw_rows(picture))), LISTED)
        for picture in (Picture([above, below], 0, filters=filters) for filters in grey)
    )
    assert by_paeth.digest == plain.digest


def test_what_is_compiled_is_used_early(tmp_path: Path) -> None:
    """Without machine code a process waits for 1,000 labels; with it, for 50."""
    program = """
from itertools import count
from ingest.labels import pixel_count, stretch_rows
def labels_before():
    pixel_count._label_numbers = count()
    return next(n for n in range(2000) if pixel_count._is_one_of_many())
print(labels_before())
(stretch_rows.Path(stretch_rows.count_rgb.stats.cache_path) / "stretch_rows.count.nbi").touch()
stretch_rows.is_compiled.cache_clear()
print(labels_before())
"""
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert run.stdout.split() == ["1000", "50"]
