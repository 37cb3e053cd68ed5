"""Label and camera PNG files as arrays."""

import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from catalog.errors import BadFile
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.encoding import Encoding
from ingest.labels.inflate import crc32, inflate
from ingest.labels.png_chunks import PngChunks, take_apart
from ingest.labels.segments import Segments, class_of_colour, turned

UInt8 = npt.NDArray[np.uint8]


def open_png(png: bytes) -> Image.Image:
    """The fully decoded image in mode RGB; an alpha channel is dropped, gamma is never applied.

    Of 16-bit samples the high byte is kept.

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    return _to_rgb(_opened(take_apart(png)))


def _opened(chunks: PngChunks) -> Image.Image:
    """The fully decoded image in Pillow's own mode.

    Raises:
        BadFile: Truncated or damaged.
    """
    header = chunks.header
    try:
        with Image.open(io.BytesIO(chunks.bare()), formats=["PNG"]) as image:
            # load() first: convert() of a lazy image would hide a truncated file's error.
            image.load()
            _check_rows(image, chunks)
            if header.colour_type == 3:
                _check_indices(image, len(chunks.palette or b"") // 3)
            return image.copy()
    except UnidentifiedImageError as error:
        raise BadFile(
            f"PNG header is invalid: {header.bit_depth} bits of colour type {header.colour_type}"
        ) from error
    except (OSError, SyntaxError, ValueError, struct.error, zlib.error) as error:
        raise BadFile(f"PNG is truncated or damaged: {_one_line(error)}") from error


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I"):
        # Pillow cuts 16-bit grey off at 255 where it keeps the high byte of 16-bit colour.
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    # To RGB from RGBA keeps the colour of transparent pixels, as wanted.
    return image.convert("RGB")


def _check_rows(image: Image.Image, chunks: PngChunks) -> None:
    """Refuse a stream that ends properly but too early: Pillow leaves the missing rows zero."""
    last_row = image.crop((0, image.height - 1, image.width, image.height))
    if not chunks.header.interlaced and any(last_row.tobytes()):
        return
    inflate = zlib.decompressobj()
    missing = chunks.header.inflated_bytes
    rest = chunks.pixels
    while missing > 0:
        piece = inflate.decompress(rest, 1 << 20)
        rest = inflate.unconsumed_tail
        if not piece:
            raise BadFile(f"PNG is truncated: {missing:,} bytes of its pixels are missing")
        missing -= len(piece)


def _check_indices(image: Image.Image, colours: int) -> None:
    largest = int(np.asarray(image).max())
    if largest >= colours:
        raise BadFile(f"PNG is damaged: uses colour {largest} of a palette of {colours}")


def decode_image(png: bytes) -> UInt8:
    """A camera PNG as (H, W, 3) uint8 [RGB]: what `open_png` gives, in half its time."""
    chunks = take_apart(png, crc32)
    header = chunks.header
    raw = _rgb_rows(chunks)
    if raw is not None:
        from ingest.labels import rgb_rows

        pixels = np.empty((header.height, header.width, 3), np.uint8)
        if rgb_rows.rgb_of_rows(raw, pixels) == header.height:
            return pixels
    return np.asarray(open_png(png))


def decode_label(png: bytes, class_list: ClassList, segments: str | None = None) -> UInt8:
    """A label PNG as (H, W) uint8 [class id]; UNKNOWN_CLASS (255) where no key fits.

    Args:
        segments: Of a panoptic label (ingest.labels.segments).

    Raises:
        BadFile: No such PNG as the class list's encoding has, truncated or damaged; or a panoptic
            one without its segments.
    """
    return decode_ids(png, class_list.encoding, class_list.lookup_table, segments)


def decode_ids(png: bytes, encoding: Encoding, table: UInt8, segments: str | None = None) -> UInt8:
    """A label PNG as (H, W) uint8; raises as `decode_label`.

    Args:
        table: (encoding.values,) uint8 of each value of a pixel; of a panoptic label by category.
        segments: Of a panoptic label.
    """
    if not encoding.is_panoptic:
        return _decoded(png, encoding, table)
    with class_of_colour(known_segments(segments), table, UNKNOWN_CLASS) as of_colour:
        return _decoded(png, encoding, of_colour)


def known_segments(text: str | None) -> Segments:
    """The segments of a panoptic label.

    Raises:
        BadFile: Nobody knows them, or they are damaged.
    """
    if text is None:
        raise BadFile("is a panoptic label whose segments are not known")
    return Segments.of_text(text)


def _decoded(png: bytes, encoding: Encoding, table: UInt8) -> UInt8:
    chunks = take_apart(png, crc32)
    header = chunks.header
    if encoding.is_panoptic:
        check_samples(chunks, encoding)
    elif not encoding.is_colour:
        raw = _byte_rows(chunks, encoding)
        if raw is not None:
            from ingest.labels import sample_kernel

            ids: UInt8 = np.empty((header.height, header.width), np.uint8)
            values = 256 if chunks.palette is None else len(chunks.palette) // 3
            if sample_kernel.class_ids(raw, table, values, ids) == header.height:
                return ids
        of_values: UInt8 = table[decode_values(chunks, encoding)]
        return of_values
    raw = _rgb_rows(chunks)
    if raw is not None:
        from ingest.labels import rgb_rows

        ids = np.empty((header.height, header.width), np.uint8)
        if rgb_rows.class_ids_of_rows(raw, table, ids) == header.height:
            return ids
    rgb = np.asarray(open_png(png))
    packed = rgb[..., 0].astype(np.uint32) << 16
    packed |= rgb[..., 1].astype(np.uint32) << 8
    packed |= rgb[..., 2]
    classes: UInt8 = table[packed]
    return classes


def decode_values(chunks: PngChunks, encoding: Encoding) -> npt.NDArray[np.unsignedinteger[Any]]:
    """(H, W) uint8 or uint16, the value of each pixel that the encoding takes its key from.

    Raises:
        BadFile: The image has no such samples, or is truncated or damaged.
    """
    check_samples(chunks, encoding)
    image = _opened(chunks)
    if encoding.channel is not None:
        return np.asarray(image)[..., encoding.channel]
    if image.mode == "LA":
        return np.asarray(image)[..., 0]
    if image.mode == "1":
        return np.asarray(image).astype(np.uint8)
    values = np.asarray(image)
    if chunks.header.colour_type == 0 and chunks.header.bit_depth in (2, 4):
        # Pillow spreads narrow grey samples over 0 to 255.
        return values // np.uint8(255 // ((1 << chunks.header.bit_depth) - 1))
    return values.astype(np.uint16) if chunks.header.bit_depth == 16 else values


def decode_keys(
    png: bytes, encoding: Encoding, segments: str | None = None
) -> npt.NDArray[np.int64]:
    """(H, W) int64, the key of each pixel of a label: a colour 0xRRGGBB, or a number.

    Of a panoptic label it is the category, VOID, or minus the id that is no segment.

    Args:
        segments: Of a panoptic label.

    Raises:
        BadFile: It has no such samples, is no PNG, or is truncated or damaged; or a panoptic one
            without its segments.
    """
    if encoding.is_colour or encoding.is_panoptic:
        if encoding.is_panoptic:
            check_samples(take_apart(png), encoding)
        rgb = decode_image(png).astype(np.int64)
        colours = rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2]
        return colours if encoding.is_colour else known_segments(segments).keys(turned(colours))
    return encoding.keys(decode_values(take_apart(png), encoding).astype(np.int64))


_KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey and alpha", 6: "RGBA"}


def check_samples(chunks: PngChunks, encoding: Encoding) -> None:
    """Refuse an image whose samples cannot be what the encoding reads.

    Raises:
        BadFile: It is one.
    """
    header = chunks.header
    expected = ""
    if encoding.is_panoptic:
        if header.bit_depth != 8 or header.colour_type not in (2, 6):
            expected = "8 bits of RGB or RGBA"
    elif encoding.channel is not None:
        samples = {2: 3, 6: 4}.get(header.colour_type, 0)
        if header.bit_depth != 8 or encoding.channel >= samples:
            expected = f"8 bits of RGB{'A' if encoding.channel == 3 else ' or RGBA'}"
    elif not encoding.is_colour and (
        header.colour_type not in (0, 3, 4) or (header.colour_type, header.bit_depth) == (4, 16)
    ):
        expected = "grey or palette samples, which are class ids"
    if expected:
        raise BadFile(
            f"PNG has {header.bit_depth} bits of {_KINDS[header.colour_type]}; the layout's "
            f"encoding {encoding.text} needs {expected}"
        )


def _rgb_rows(chunks: PngChunks) -> UInt8 | None:
    """Inflated 8-bit RGB rows, in this thread's buffer; None for other images and damaged ones.

    `open_png` alone judges damage.
    """
    if chunks.header.colour_type != 2:
        return None
    return _inflated(chunks)


def _byte_rows(chunks: PngChunks, encoding: Encoding) -> UInt8 | None:
    """Inflated rows of 8-bit grey samples or indices of a palette; None likewise."""
    if encoding.channel is not None or chunks.header.colour_type not in (0, 3):
        return None
    return _inflated(chunks)


def _inflated(chunks: PngChunks) -> UInt8 | None:
    header = chunks.header
    if header.bit_depth != 8 or header.interlaced:
        return None
    try:
        return inflate(chunks.pixels, header.inflated_bytes)
    except BadFile:
        return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
