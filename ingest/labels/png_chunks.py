"""A PNG file taken apart: its header, its compressed pixels, its palette, all checksums checked.

Source: Portable Network Graphics specification (W3C, third edition), sections 5, 8 and 11.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from catalog.errors import BadFile
from ingest.labels.other_content import kind_of_content

MAX_PIXELS = 2**25
MAX_INFLATED_BYTES = 2**27
"""Images that claim more are refused before a byte is inflated (decompression bombs).

Decoding 16-bit RGBA took 10 bytes for a pixel. A camera's image has 2 to 12 million pixels.
"""

SIGNATURE = b"\x89PNG\r\n\x1a\n"
"""First bytes of every PNG."""

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel, by colour type."""

_CHUNK, _CHECKSUM = struct.Struct(">I4s"), struct.Struct(">I")
"""A chunk's size and kind, and what stands behind its data."""

_BEST_DEFLATE_RATIO = 1032
"""No deflate stream inflates to more than this many times its size."""

_ADAM7 = ((0, 8, 0, 8), (4, 8, 0, 8), (0, 4, 4, 8), (2, 4, 0, 4), (0, 2, 2, 4), (1, 2, 0, 2), (0, 1, 1, 2))  # fmt: skip  # noqa: E501
"""First column and step, first row and step, of each pass of an interlaced image."""

HEADER_BYTES = 33
"""Signature and IHDR chunk: what `read_header` needs of a file."""


@dataclass(frozen=True)
class PngHeader:
    """Width and height [pixels], bit depth, colour type and interlacing, as IHDR states them."""

    width: int
    height: int
    bit_depth: int
    colour_type: int
    interlaced: bool

    @property
    def samples(self) -> int:
        """Samples of a pixel: 3 for RGB, 4 with alpha, 1 for grey or a palette."""
        return _SAMPLES[self.colour_type]

    @property
    def row_bytes(self) -> int:
        """Bytes of a full row of packed samples, without its filter byte."""
        return self._row_bytes(self.width)

    @property
    def inflated_bytes(self) -> int:
        """Size of the inflated image data: rows of packed samples, a filter byte before each."""
        if not self.interlaced:
            return self.height * (1 + self.row_bytes)
        size = 0
        for left, across, top, down in _ADAM7:
            columns = -(-(self.width - left) // across)
            rows = -(-(self.height - top) // down)
            if columns > 0 and rows > 0:
                size += rows * (1 + self._row_bytes(columns))
        return size

    def _row_bytes(self, pixels: int) -> int:
        return -(-pixels * self.bit_depth * self.samples // 8)


def read_header(png: bytes) -> PngHeader:
    """The header of a PNG, from its first 33 bytes.

    Raises:
        BadFile: Not a PNG, cut short, empty or absurdly large.
    """
    if not png:
        raise BadFile("is empty (0 bytes), expected a PNG image")
    if not png.startswith(SIGNATURE):
        raise BadFile(f"is not a PNG image but {kind_of_content(png)}")
    if len(png) < HEADER_BYTES:
        raise BadFile(f"PNG is truncated: its header is incomplete after {len(png)} bytes")
    (checksum,) = _CHECKSUM.unpack_from(png, HEADER_BYTES - 4)
    if png[8:16] != b"\0\0\0\rIHDR" or zlib.crc32(png[12 : HEADER_BYTES - 4]) != checksum:
        raise BadFile("PNG is damaged: its header's name or checksum is wrong")
    width, height, bit_depth, colour_type, _, _, interlace = struct.unpack(">IIBBBBB", png[16:29])
    if not width or not height or colour_type not in _SAMPLES:
        raise BadFile(f"PNG header is invalid: {width}x{height} pixels, colour type {colour_type}")
    if width * height > MAX_PIXELS:
        raise BadFile(f"PNG claims {width}x{height} pixels; at most {MAX_PIXELS:,} are read")
    header = PngHeader(width, height, bit_depth, colour_type, interlace != 0)
    if header.inflated_bytes > MAX_INFLATED_BYTES:
        raise BadFile(
            f"PNG claims {width}x{height} pixels of {bit_depth} bits and {header.samples} samples, "
            f"{header.inflated_bytes:,} bytes; at most {MAX_INFLATED_BYTES:,} are read"
        )
    return header


@dataclass(frozen=True)
class PngChunks:
    """The chunks of a PNG that make the picture."""

    header: PngHeader
    pixels: bytes
    """The zlib stream of all IDAT chunks."""
    palette: bytes | None
    """PLTE's entries, three bytes each; None without one."""

    def bare(self) -> bytes:
        """A PNG of these chunks alone: no other may change a colour, and Pillow rejects some."""
        header = self.header
        sizes = (header.width, header.height, header.bit_depth, header.colour_type)
        chunks = [(b"IHDR", struct.pack(">IIBBBBB", *sizes, 0, 0, header.interlaced))]
        if self.palette is not None:
            chunks.append((b"PLTE", self.palette))
        chunks += [(b"IDAT", self.pixels), (b"IEND", b"")]
        return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def take_apart(png: bytes, crc32: Callable[[memoryview], int] = zlib.crc32) -> PngChunks:
    """The chunks of a PNG that make the picture; the checksums of all chunks are checked.

    Args:
        crc32: The checksum; libdeflate's is 20 times as fast as zlib's.

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    header = read_header(png)
    pixels: list[memoryview] = []
    palette: bytes | None = None
    view, png_bytes = memoryview(png), len(png)  # a camera's image has some hundred chunks
    start = HEADER_BYTES
    kind = b""
    while kind != b"IEND":
        size, kind = _CHUNK.unpack_from(png, start) if start + 12 <= png_bytes else (png_bytes, b"")
        end = start + size + 12
        if end > png_bytes:
            raise BadFile(f"PNG is truncated: ends after {png_bytes:,} bytes within a chunk")
        if crc32(view[start + 4 : end - 4]) != _CHECKSUM.unpack_from(png, end - 4)[0]:
            raise BadFile(f"PNG is damaged: wrong checksum of the chunk at byte {start:,}")
        if kind == b"IHDR":
            raise BadFile("PNG is damaged: it has a second header")
        if kind == b"IDAT":
            pixels.append(view[start + 8 : end - 4])
        elif kind == b"PLTE":
            palette = png[start + 8 : end - 4]
        start = end
    stream = b"".join(pixels)
    _check_size(header, len(stream))
    if header.colour_type == 3 and not palette:
        raise BadFile("PNG is damaged: it has palette colours but no palette")
    return PngChunks(header, stream, palette)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _check_size(header: PngHeader, compressed_bytes: int) -> None:
    if header.inflated_bytes > _BEST_DEFLATE_RATIO * compressed_bytes:
        raise BadFile(
            f"PNG is truncated or damaged: {compressed_bytes:,} bytes cannot hold the "
            f"{header.width}x{header.height} pixels it claims"
        )
