"""PNG files as arrays, through Pillow; a damaged file is an error, never a wrong picture."""

import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framesift.errors import BadFile
from framesift.forms.optional import imported

UInt8 = npt.NDArray[np.uint8]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Samples of a pixel by PNG's colour type."""


def read_rgb(path: str) -> UInt8:
    """A PNG file as (H, W, 3) uint8 [RGB].

    An alpha channel is dropped, gamma is never applied; of 16-bit samples the high byte is kept.

    Raises:
        BadFile: It is missing, no PNG, truncated or damaged.
        MissingPackage: There is no Pillow.
    """
    return decode_rgb(path, content_of(path))


def decode_rgb(path: str, png: bytes) -> UInt8:
    """The same of a file's content; raises as `read_rgb`."""
    return _decode(path, png, _rgb)


def read_values(path: str, channel: int | None) -> npt.NDArray[Any]:
    """The samples of a PNG file that are class ids, (H, W) uint8 or uint16.

    Args:
        channel: Of an RGB or RGBA image; None for grey levels or palette indices.

    Raises:
        BadFile: It is missing, no PNG, truncated or damaged, or has no such samples.
        MissingPackage: There is no Pillow.
    """

    def values(image: Any, _module: Any) -> npt.NDArray[Any]:
        pixels = np.asarray(image)
        if channel is not None:
            if image.mode not in ("RGB", "RGBA") or channel >= pixels.shape[-1]:
                raise ValueError(f"PNG has mode {image.mode}, and no channel {channel}")
            return pixels[..., channel]
        if image.mode == "LA":
            return pixels[..., 0]
        if image.mode not in ("1", "L", "P") and not image.mode.startswith("I"):
            raise ValueError(f"PNG has mode {image.mode}; expected grey or palette samples")
        depth = image.png_bits  # Pillow spreads narrow grey samples over 0 to 255
        if image.mode == "L" and depth in (2, 4):
            pixels = pixels // np.uint8(255 // ((1 << depth) - 1))
        return pixels.astype(np.uint16 if image.mode.startswith("I") else np.uint8)

    return _decode(path, content_of(path), values)


def size_of(path: str) -> tuple[int, int]:
    """Height and width of a PNG file [pixels], by its first bytes.

    Raises:
        BadFile: It is missing, or no PNG.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(24)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    if not head.startswith(_SIGNATURE) or len(head) < 24:
        raise BadFile(f"{path}: is no PNG")
    return int.from_bytes(head[20:24], "big"), int.from_bytes(head[16:20], "big")


def content_of(path: str) -> bytes:
    """A file's content.

    Raises:
        BadFile: It is missing.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error


def _decode(
    path: str, png: bytes, pixels_of: Callable[[Any, Any], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    image_module = imported("PIL.Image")
    try:
        pixels = _check_chunks(png)
        with image_module.open(io.BytesIO(png), formats=["PNG"]) as image:
            # load() first: convert() of a lazy image would hide a truncated file's error.
            image.load()
            image.png_bits = png[24]
            decoded = pixels_of(image, image_module)
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise BadFile(f"{path}: {reason}") from error
    except (ValueError, SyntaxError, IndexError, zlib.error) as error:
        raise BadFile(f"{path}: {' '.join(str(error).split())}") from error
    if not decoded[-1].any():
        _check_rows(path, png, pixels)
    return decoded


def _rgb(image: Any, image_module: Any) -> UInt8:
    if image.mode.startswith("I"):
        # Pillow cuts 16-bit grey off at 255 where it keeps the high byte of 16-bit colour.
        image = image_module.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return np.asarray(image.convert("RGB"))


def _check_chunks(png: bytes) -> bytes:
    """The compressed pixels of a PNG whose chunks are all whole: Pillow does not look at each.

    Raises:
        ValueError: It is no PNG, or a chunk is cut off or damaged.
    """
    if not png.startswith(_SIGNATURE):
        raise ValueError("is no PNG")
    start, view, pixels, kind = len(_SIGNATURE), memoryview(png), [], b""
    while kind != b"IEND":
        length, kind = int.from_bytes(png[start : start + 4], "big"), png[start + 4 : start + 8]
        end = start + 8 + length
        if len(png) < end + 4:
            raise ValueError("PNG is truncated")
        if zlib.crc32(view[start + 4 : end]) != int.from_bytes(png[end : end + 4], "big"):
            raise ValueError(f"PNG is damaged: checksum of its chunk {kind!r}")
        if kind == b"IDAT":
            pixels.append(view[start + 8 : end])
        start = end + 4
    return b"".join(pixels)


def _check_rows(path: str, png: bytes, pixels: bytes) -> None:
    """Refuse a stream that ends properly but too early: Pillow leaves the missing rows zero."""
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    depth, colour_type, interlaced = png[24], png[25], png[28]
    row_bytes = 1 + (width * _CHANNELS.get(colour_type, 1) * depth + 7) // 8
    inflated = zlib.decompressobj().decompress(pixels)
    if not interlaced and len(inflated) < row_bytes * height:
        missing = row_bytes * height - len(inflated)
        raise BadFile(f"{path}: PNG is truncated: {missing:,} bytes of its pixels are missing")
