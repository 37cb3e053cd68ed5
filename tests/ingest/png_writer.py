"""A PNG encoder for tests: every colour type, bit depth, row filter and interlacing.

Written apart from the code under test, after the PNG specification (W3C, third edition).
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
FORMATS = (
    *((0, depth) for depth in (1, 2, 4, 8, 16)),
    *((2, depth) for depth in (8, 16)),
    *((3, depth) for depth in (1, 2, 4, 8)),
    *((4, depth) for depth in (8, 16)),
    *((6, depth) for depth in (8, 16)),
)
"""Every (colour type, bit depth) that the specification allows."""

_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))  # fmt: skip  # noqa: E501

Pixel = tuple[int, ...]
Rows = Sequence[Sequence[Pixel]]


@dataclass(frozen=True)
class Picture:
    """A picture's samples and how they are to be written."""

    rows: Rows
    colour_type: int = 2
    depth: int = 8
    filters: tuple[int, ...] = (0,)
    interlaced: bool = False
    palette: tuple[tuple[int, int, int], ...] = ()
    idat_bytes: int = 1 << 16
    level: int = 6

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return len(self.rows[0]), len(self.rows)


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(
    width: int, height: int, depth: int = 8, colour_type: int = 2, interlace: int = 0
) -> bytes:
    """Signature and IHDR."""
    fields = struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, interlace)
    return SIGNATURE + chunk(b"IHDR", fields)


def encode(picture: Picture, extra: bytes = b"") -> bytes:
    """The PNG; ``extra`` chunks stand before the pixels."""
    return around(picture, zlib.compress(raw_rows(picture), picture.level), extra)


def around(picture: Picture, stream: bytes, extra: bytes = b"") -> bytes:
    """The PNG of a picture whose compressed pixels are given."""
    step = picture.idat_bytes
    parts = [stream[at : at + step] for at in range(0, len(stream), step)]
    palette = b"".join(bytes(colour) for colour in picture.palette)
    return b"".join(
        [
            header(*picture.size, picture.depth, picture.colour_type, picture.interlaced),
            chunk(b"PLTE", palette) if palette else b"",
            extra,
            *(chunk(b"IDAT", piece) for piece in parts),
            chunk(b"IEND", b""),
        ]
    )


def raw_rows(picture: Picture) -> bytes:
    """The filtered rows, pass by pass, before compression."""
    if not picture.interlaced:
        return _filtered(picture, picture.rows)
    out = b""
    for left, top, across, down in _PASSES:
        rows = [row[left::across] for row in picture.rows[top::down]]
        rows = [row for row in rows if row]
        out += _filtered(picture, rows)
    return out


def _filtered(picture: Picture, rows: Rows) -> bytes:
    distance = max(1, SAMPLES[picture.colour_type] * picture.depth // 8)
    out = bytearray()
    above: bytes | None = None
    for number, row in enumerate(rows):
        line = _packed(row, picture.depth)
        kind = picture.filters[number % len(picture.filters)]
        out.append(kind)
        out += _filter(kind, line, above or bytes(len(line)), distance)
        above = line
    return bytes(out)


def _packed(row: Sequence[Pixel], depth: int) -> bytes:
    bits = "".join(f"{sample:0{depth}b}" for pixel in row for sample in pixel)
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _filter(kind: int, line: bytes, above: bytes, distance: int) -> bytes:
    out = bytearray()
    for at, value in enumerate(line):
        left = line[at - distance] if at >= distance else 0
        corner = above[at - distance] if at >= distance else 0
        predicted = (0, left, above[at], (left + above[at]) // 2, _paeth(left, above[at], corner))
        out.append((value - predicted[kind]) % 256)
    return bytes(out)


def _paeth(left: int, above: int, corner: int) -> int:
    estimate = left + above - corner
    nearest: int = min((left, above, corner), key=lambda value: abs(estimate - value))
    return nearest
