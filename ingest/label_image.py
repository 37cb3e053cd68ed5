"""Label and camera PNG files as arrays."""

import io
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import BadFile
from ingest.palette import Palette

MAX_PIXELS = 100_000_000
"""Images that claim more pixels are refused before a byte is inflated (decompression bombs)."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER_BYTES = 33
"""Signature and IHDR chunk: what `read_header` needs of a file."""


@dataclass(frozen=True)
class PngHeader:
    """Width and height [pixels], bit depth and colour type, as the IHDR chunk states them."""

    width: int
    height: int
    bit_depth: int
    colour_type: int


def read_header(png: bytes) -> PngHeader:
    """The header of a PNG, from its first 33 bytes.

    Raises:
        BadFile: Not a PNG, cut short, empty or absurdly large.
    """
    if not png:
        raise BadFile("is empty (0 bytes), expected a PNG image")
    if not png.startswith(_SIGNATURE):
        raise BadFile(f"is not a PNG image: begins with {png[:8]!r}")
    if len(png) < HEADER_BYTES or png[12:16] != b"IHDR":
        raise BadFile(f"PNG is truncated: its header is incomplete after {len(png)} bytes")
    width, height, bit_depth, colour_type = struct.unpack(">IIBB", png[16:26])
    if not width or not height:
        raise BadFile(f"PNG header is invalid: {width}x{height} pixels")
    if width * height > MAX_PIXELS:
        raise BadFile(f"PNG claims {width}x{height} pixels; at most {MAX_PIXELS:,} are read")
    return PngHeader(width, height, bit_depth, colour_type)


def open_png(png: bytes) -> Image.Image:
    """The fully decoded image in mode RGB; an alpha channel is dropped, gamma is never applied.

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    read_header(png)
    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            # load() first: convert() of a lazy image would hide a truncated file's error.
            image.load()
            # To RGB from RGBA keeps the colour of transparent pixels, as wanted.
            return image if image.mode == "RGB" else image.convert("RGB")
    except (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError) as error:
        raise BadFile(f"PNG is truncated or damaged: {_one_line(error)}") from error


def decode_image(png: bytes) -> npt.NDArray[np.uint8]:
    """A camera PNG as (H, W, 3) uint8 [RGB].

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    return np.asarray(open_png(png))


def decode_label(png: bytes, palette: Palette) -> npt.NDArray[np.uint8]:
    """A label PNG as (H, W) uint8 [class id]; UNKNOWN_CLASS (255) where the colour is not listed.

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    rgb = decode_image(png)
    packed = rgb[..., 0].astype(np.uint32) << 16
    packed |= rgb[..., 1].astype(np.uint32) << 8
    packed |= rgb[..., 2]
    classes: npt.NDArray[np.uint8] = palette.lookup_table[packed]
    return classes


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
