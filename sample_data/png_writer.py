"""Writes 8-bit RGB PNG files in the three byte layouts that A2D2's files have.

Readers of PNG tend to be tested on whatever one library writes. Choosing filter, chunk size
and compression level here lets the sample set cover the paths that the real files take.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"

FILTER_NONE = 0
FILTER_SUB = 1
FILTER_PAETH = 4

_ROWS_PER_BLOCK = 64
"""Rows filtered at a time: the temporary arrays then stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class PngEncoding:
    """The layout of a picture's bytes in a PNG file."""

    first_row_filter: int
    """PNG filter type of row 0."""
    row_filter: int
    """PNG filter type of every other row."""
    level: int
    """zlib level."""
    idat_bytes: int | None
    """Largest size of one IDAT chunk's data; None for a single chunk."""
    colour_chunks: bool = False
    """Whether sRGB, gAMA and pHYs stand before the picture data."""


CAMERA = PngEncoding(FILTER_SUB, FILTER_PAETH, level=-1, idat_bytes=65_536)
LABEL_SUB = PngEncoding(FILTER_SUB, FILTER_SUB, level=1, idat_bytes=8_192)
LABEL_NONE = PngEncoding(FILTER_NONE, FILTER_NONE, level=5, idat_bytes=None, colour_chunks=True)


def encode_png(picture: NDArray[np.uint8], encoding: PngEncoding) -> bytes:
    """The whole PNG file of a picture.

    Args:
        picture: (H, W, 3) uint8 RGB.

    Returns:
        The file's bytes, the same for the same arguments and zlib build.

    Raises:
        ValueError: The array is not (H, W, 3) uint8, or a filter type is not None, Sub or Paeth.
    """
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise ValueError(
            f"picture is {picture.dtype} {picture.shape}; expected uint8 (height, width, 3)"
        )
    height, width, _ = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [PNG_SIGNATURE, _chunk(b"IHDR", header)]
    if encoding.colour_chunks:
        parts.append(_chunk(b"sRGB", b"\x00"))
        parts.append(_chunk(b"gAMA", struct.pack(">I", 45_455)))
        parts.append(_chunk(b"pHYs", struct.pack(">IIB", 3_780, 3_780, 1)))
    stream = _compressed(picture, encoding)
    step = encoding.idat_bytes or len(stream)
    parts.extend(_chunk(b"IDAT", stream[at : at + step]) for at in range(0, len(stream), step))
    parts.append(_chunk(b"IEND", b""))
    return b"".join(parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    """One PNG chunk: length, kind, data and the CRC over kind and data."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _compressed(picture: NDArray[np.uint8], encoding: PngEncoding) -> bytes:
    """The zlib stream of the filtered rows, each with its filter byte."""
    compressor = zlib.compressobj(encoding.level)
    pieces = [compressor.compress(block) for block in _filtered_blocks(picture, encoding)]
    pieces.append(compressor.flush())
    return b"".join(pieces)


def _filtered_blocks(picture: NDArray[np.uint8], encoding: PngEncoding) -> Iterator[bytes]:
    """The filtered rows, `_ROWS_PER_BLOCK` at a time; row 0 comes alone."""
    flat = picture.reshape(picture.shape[0], -1)
    above = np.zeros((1, flat.shape[1]), dtype=np.uint8)
    yield _filtered(flat[:1], above, encoding.first_row_filter)
    for top in range(1, flat.shape[0], _ROWS_PER_BLOCK):
        rows = flat[top : top + _ROWS_PER_BLOCK]
        yield _filtered(rows, flat[top - 1 : top - 1 + len(rows)], encoding.row_filter)


def _filtered(rows: NDArray[np.uint8], above: NDArray[np.uint8], kind: int) -> bytes:
    """Filter bytes and residuals of some rows; `above` holds the row over each of them."""
    out = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.uint8)
    out[:, 0] = kind
    if kind == FILTER_NONE:
        out[:, 1:] = rows
    elif kind == FILTER_SUB:
        out[:, 1:4] = rows[:, :3]
        np.subtract(rows[:, 3:], rows[:, :-3], out=out[:, 4:])
    elif kind == FILTER_PAETH:
        out[:, 1:4] = rows[:, :3] - above[:, :3]
        np.subtract(rows[:, 3:], _paeth(rows, above), out=out[:, 4:])
    else:
        raise ValueError(f"PNG filter {kind} is not written here; expected 0, 1 or 4")
    return out.tobytes()


def _paeth(rows: NDArray[np.uint8], above: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Paeth's predictor of every byte but a row's first three."""
    left = rows[:, :-3].astype(np.int16)
    up = above[:, 3:].astype(np.int16)
    corner = above[:, :-3].astype(np.int16)
    to_left = np.abs(up - corner)
    to_up = np.abs(left - corner)
    to_corner = np.abs(left + up - 2 * corner)
    up_or_corner = np.where(to_up <= to_corner, up, corner)
    take_left = (to_left <= to_up) & (to_left <= to_corner)
    return np.where(take_left, left, up_or_corner).astype(np.uint8)
