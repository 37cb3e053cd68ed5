"""Every damaged PNG is a BadFile with one line; never another error, never a wrong count."""

import struct
import warnings
import zlib
from random import Random

import pytest

from catalog.errors import BadFile
from ingest.labels.class_list import ClassList
from ingest.labels.label_image import decode_image, decode_label
from ingest.labels.pixel_count import count_pixels
from ingest.labels.png_chunks import MAX_PIXELS, read_header
from tests.ingest.png_writer import (
    SIGNATURE,
    Picture,
    around,
    chunk,
    encode,
    header,
    raw_rows,
)

RNG = Random(1)
PICTURE = Picture(
    [[(RNG.choice([0, 90, 255]), 0, RNG.choice([0, 7])) for _ in range(24)] for _ in range(20)],
    filters=(1, 4, 2),
    idat_bytes=64,
)
GOOD = encode(PICTURE)


def refused(png: bytes, palette: ClassList) -> str:
    """The reason why all three readers refuse the file."""
    reasons = set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for read in (
            lambda: count_pixels(png, palette),
            lambda: decode_label(png, palette),
            lambda: decode_image(png),
        ):
            with pytest.raises(BadFile) as error:
                read()
            reasons.add(error.value.reason)
    assert not any("\n" in reason or " object at 0x" in reason for reason in reasons)
    return reasons.pop()


def test_truncated_anywhere(palette: ClassList) -> None:
    """Cut at every byte the file is bad, also where only its end and no pixel is missing."""
    for size in range(len(GOOD)):
        with pytest.raises(BadFile) as error:
            count_pixels(GOOD[:size], palette)
        assert "\n" not in str(error.value)
    assert "truncated" in refused(GOOD[:-1], palette)


def test_any_single_flipped_bit_is_noticed(palette: ClassList) -> None:
    """No flipped bit counts wrong pixels: the checksums of all chunks are checked."""
    rng = Random(2)
    for at in range(len(GOOD)):
        damaged = bytearray(GOOD)
        damaged[at] ^= 1 << rng.randrange(8)
        with pytest.raises(BadFile):
            count_pixels(bytes(damaged), palette)


def test_garbage(palette: ClassList) -> None:
    """Random bytes, alone, behind a good header, or in a chunk of good checksum, are BadFile."""
    rng = Random(3)
    for _ in range(200):
        noise = rng.randbytes(rng.randrange(1, 300))
        for png in (
            noise,
            SIGNATURE + noise,
            header(3, 3) + noise,
            header(3, 3) + chunk(b"IDAT", noise) + chunk(b"IEND", b""),
        ):
            with pytest.raises(BadFile):
                count_pixels(png, palette)


@pytest.mark.parametrize(
    ("png", "words"),
    [
        (b"", "empty"),
        (b"GIF89a" + bytes(40), "not a PNG"),
        (b"\xff\xd8\xff\xe0" + bytes(40), "not a PNG"),
        (SIGNATURE, "truncated"),
        (header(4, 4)[:-1], "truncated"),
        (header(4, 4), "truncated"),
        (header(4, 4) + chunk(b"IEND", b""), "cannot hold"),
        (header(0, 4) + chunk(b"IDAT", b"x") + chunk(b"IEND", b""), "0x4"),
        (header(2**31, 2**31) + chunk(b"IEND", b""), "at most"),
        (header(MAX_PIXELS + 1, 1) + chunk(b"IEND", b""), "at most"),
        (header(4_200, 4_200, 16, 6) + chunk(b"IEND", b""), "141,124,200 bytes; at most"),
        (header(5000, 5000) + chunk(b"IDAT", bytes(99)) + chunk(b"IEND", b""), "cannot hold"),
        (header(4, 4, 3, 2) + chunk(b"IDAT", bytes(99)) + chunk(b"IEND", b""), "3 bits"),
        (header(4, 4, 8, 5) + chunk(b"IDAT", bytes(99)) + chunk(b"IEND", b""), "colour type 5"),
        (SIGNATURE + chunk(b"IHDR", bytes(12)) + bytes(20), "header"),
        (SIGNATURE + chunk(b"IDAT", bytes(13)) + bytes(20), "header"),
    ],
)
def test_headers_and_ends(png: bytes, words: str, palette: ClassList) -> None:
    """Empty, other formats, headers alone, impossible headers, decompression bombs."""
    assert words in refused(png, palette)


@pytest.mark.attacks
def test_a_bomb_is_refused_by_its_header() -> None:
    """What claims more pixels than MAX_PIXELS is refused before a byte of it is inflated."""
    with pytest.raises(BadFile, match="at most"):
        read_header(header(100_000, 100_000))
    assert read_header(header(1920, 1208)).width == 1920


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("height", [2, 3, 8, 9])
def test_missing_rows_are_not_counted_as_black(
    interlaced: bool, height: int, palette: ClassList
) -> None:
    """A stream that ends properly but a row too early is refused; Pillow would fill in zeros."""
    picture = Picture([[(255, 0, 0)] * 3] * height, interlaced=interlaced)
    raw = raw_rows(picture)
    short = zlib.compress(raw[:-10])
    assert "missing" in refused(around(picture, short), palette)
    black = Picture([[(0, 0, 0)] * 3] * height, interlaced=interlaced)
    assert count_pixels(encode(black), palette).unknown == 3 * height


def test_bad_streams(palette: ClassList) -> None:
    """A stream with a filter that does not exist, or that is no zlib stream, is refused."""
    picture = Picture([[(1, 2, 3)] * 4] * 2)
    raw = bytearray(raw_rows(picture))
    raw[0] = 9
    refused(around(picture, zlib.compress(bytes(raw))), palette)
    refused(around(picture, b"\x79" + zlib.compress(raw_rows(picture))[1:]), palette)


def test_palette_images_that_lack_colours(palette: ClassList) -> None:
    """No palette, or an index beyond it: the colour is not known, so the label is bad."""
    for beyond in (2, 3):
        indexed = Picture([[(0,), (beyond,)]], 3, 8, palette=((255, 0, 0), (0, 0, 255)))
        assert f"uses colour {beyond} of a palette of 2" in refused(encode(indexed), palette)
    assert "no palette" in refused(encode(Picture([[(0,), (1,)]], 3, 8)), palette)


def test_two_headers(palette: ClassList) -> None:
    """A second IHDR cannot change the size that was checked."""
    second = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    assert "second header" in refused(encode(PICTURE, second), palette)
