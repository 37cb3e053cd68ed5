"""Images and labels at full size as bytes: LZ4, without loss.

Of an image each row is stored as its differences from the row above, which halves what LZ4 makes of
it: of four A2D2 images of 7.0 MB each LZ4 alone makes 6.7 MB, and 4.3 of the differences (their PNG
files have 3.1). Its level 2 takes 53 ms of CPU to compress one, and 4 to decompress it.

Source: LZ4 frame format 1.6.4, as Arrow writes it; other programs read it.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.labels.rgb_rows import sum_rows

UInt8 = npt.NDArray[np.uint8]

_LZ4 = pa.Codec("lz4", compression_level=2)


def most_bytes(height_px: int, width_px: int) -> int:
    """More than a frame takes, whatever it shows: an image, and two arrays of a label."""
    return 5 * height_px * width_px * 257 // 256 + 4096


def packed_image(image: UInt8) -> bytes:
    """The bytes of an image (H, W, 3) uint8."""
    differences = image.copy()
    differences[1:] -= image[:-1]
    return _compressed(differences)


def packed_label(label: UInt8) -> bytes:
    """The bytes of a label (H, W) uint8."""
    return _compressed(np.ascontiguousarray(label))


def image_of(packed: UInt8, size_px: tuple[int, int]) -> UInt8:
    """The image (H, W, 3) uint8 of such bytes; they must be whole."""
    height_px, width_px = size_px
    rows = _decompressed(packed, height_px, 3 * width_px)
    sum_rows(rows)
    return rows.reshape(height_px, width_px, 3)


def label_of(packed: UInt8, size_px: tuple[int, int]) -> UInt8:
    """The label (H, W) uint8 of such bytes; they must be whole."""
    return _decompressed(packed, *size_px)


def _compressed(array: UInt8) -> bytes:
    packed: bytes = _LZ4.compress(array, asbytes=True)
    return packed


def _decompressed(packed: UInt8, rows: int, row_bytes: int) -> UInt8:
    content = _LZ4.decompress(packed, rows * row_bytes)
    return np.frombuffer(content, np.uint8).reshape(rows, row_bytes)
