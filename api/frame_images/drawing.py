"""Images made of a frame's files: resized, encoded again, the label blended over the image."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import BadFile, InvalidInput
from ingest.labels.label_image import open_png
from ingest.labels.png_chunks import read_header

Format = Literal["png", "jpeg", "webp"]

MAX_PIXELS = 2**24
"""Images of more pixels are not drawn; one takes 12 bytes a pixel while it is."""

MAX_BYTES = 64 * 2**20
"""Files of more bytes are not drawn."""

DIFFERENT = "#ff00c8"
"""Marks pixels that a prediction has otherwise than the label: no class of A2D2 looks like it."""

_LONGEST_SIDE = {"png": 2**24, "jpeg": 65_500, "webp": 16_383}
_QUALITY = 85


@dataclass(frozen=True)
class Look:
    """The format and size of an image that is sent.

    Attributes:
        format: How it is encoded.
        width, height: It is made smaller to fit into these, and keeps its shape [pixels]; None
            limits nothing.
        quality: 1 to 100, of JPEG and WebP.
    """

    format: Format
    width: int | None = None
    height: int | None = None
    quality: int | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            InvalidInput: A quality for PNG, which loses nothing.
        """
        if self.quality is not None and self.format == "png":
            raise InvalidInput("quality: PNG has none; leave it out, or ask for jpeg or webp")


def decoded(png: bytes, key: str) -> Image.Image:
    """The image of a file, in mode RGB.

    Raises:
        BadFile: No PNG, damaged, or of more than MAX_PIXELS pixels.
    """
    try:
        header = read_header(png)
        if header.width * header.height <= MAX_PIXELS:
            return open_png(png)
    except BadFile as error:
        raise BadFile(error.reason, key) from error
    raise BadFile(
        f"has {header.width}x{header.height} pixels; at most {MAX_PIXELS:,} are drawn", key
    )


def draw_image(image: Image.Image, look: Look) -> bytes:
    """A camera image, encoded."""
    return _encoded(_smooth(image, look), look)


def draw_label(label: Image.Image, look: Look) -> bytes:
    """A label, encoded: every colour is one that it had.

    Raises:
        InvalidInput: JPEG, which mixes colours, or a quality.
    """
    if look.format == "jpeg" or look.quality is not None:
        raise InvalidInput(
            "a label's colours are its classes, so it loses nothing: ask for png or webp, without "
            "quality"
        )
    return _encoded(_nearest(label, look), look, lossless=True)


def draw_overlay(
    image: Image.Image,
    label: Image.Image,
    alpha: float,
    colours: Sequence[int] | None,
    look: Look,
    key: str,
) -> bytes:
    """A label over its camera image, encoded.

    Args:
        label: The label, of the same size.
        alpha: How much of the label shows, 0 to 1.
        colours: Colours 0xRRGGBB of the label that are drawn; all when None.
        key: The image's, for the message.

    Raises:
        BadFile: The sizes differ.
    """
    if image.size != label.size:
        raise BadFile(
            "is {}x{} pixels and its label {}x{}: they do not lie over each other".format(
                *image.size, *label.size
            ),
            key,
        )
    below, above = _smooth(image, look), _nearest(label, look)
    blended = Image.blend(below, above, alpha)
    if colours is not None:
        mask = np.isin(_packed(above), np.array(colours, dtype=np.uint32))
        blended = Image.composite(blended, below, Image.fromarray(mask.astype(np.uint8) * 255))
    return _encoded(blended, look)


def draw_differences(
    image: Image.Image,
    label: Image.Image,
    prediction: Image.Image,
    classes: Mapping[int, int | None],
    colours: Sequence[int] | None,
    look: Look,
    key: str,
) -> bytes:
    """A camera image, its pixels of DIFFERENT where a prediction has another class than the label.

    Args:
        label: The label, of the same size.
        prediction: The prediction in the label's colours, of the same size.
        classes: Class of each colour 0xRRGGBB; None, and colours that are not there: not compared.
        colours: Only where the label has one of these; everywhere when None.
        key: The prediction's, for the message.

    Raises:
        BadFile: The sizes differ.
    """
    if not image.size == label.size == prediction.size:
        raise BadFile(
            "is {}x{} pixels, its image {}x{} and its label {}x{}: they do not lie over each "
            "other".format(*prediction.size, *image.size, *label.size),
            key,
        )
    below = _smooth(image, look)
    label = _nearest(label, look)
    truth, predicted = _ids(label, classes), _ids(_nearest(prediction, look), classes)
    mask = (truth != predicted) & (truth >= 0) & (predicted >= 0)
    if colours is not None:
        mask &= np.isin(_packed(label), np.array(colours, dtype=np.uint32))
    above = Image.new("RGB", below.size, DIFFERENT)
    return _encoded(Image.composite(above, below, Image.fromarray(np.uint8(mask) * 255)), look)


def _ids(label: Image.Image, classes: Mapping[int, int | None]) -> npt.NDArray[np.int16]:
    """(height, width) int16 [class] of a label; -1 where it is not compared."""
    compared = sorted((colour, n) for colour, n in classes.items() if n is not None)
    known = np.array([colour for colour, _ in compared], np.uint32)
    ids = np.array([n for _, n in compared], np.int16)
    packed = _packed(label)
    indices = np.minimum(np.searchsorted(known, packed), len(known) - 1)
    return np.where(known[indices] == packed, ids[indices], np.int16(-1))


def _packed(label: Image.Image) -> npt.NDArray[np.uint32]:
    """(height, width) uint32 [0xRRGGBB]."""
    rgb = np.asarray(label).astype(np.uint32)
    return np.asarray(rgb[..., 0] << 16 | rgb[..., 1] << 8 | rgb[..., 2], np.uint32)


def _smooth(image: Image.Image, look: Look) -> Image.Image:
    size = _fitted(image, look)
    if size == image.size:
        return image
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _nearest(label: Image.Image, look: Look) -> Image.Image:
    return label.resize(_fitted(label, look), Image.Resampling.NEAREST)


def _fitted(image: Image.Image, look: Look) -> tuple[int, int]:
    across = (look.width or image.width) / image.width
    down = (look.height or image.height) / image.height
    scale = min(1.0, across, down)
    return max(1, round(image.width * scale)), max(1, round(image.height * scale))


def _encoded(image: Image.Image, look: Look, *, lossless: bool = False) -> bytes:
    longest = _LONGEST_SIDE[look.format]
    if max(image.size) > longest:
        raise InvalidInput(
            f"format {look.format}: holds at most {longest:,} pixels a side, and this would be "
            f"{image.width}x{image.height}; give a width or height, or ask for png"
        )
    content = io.BytesIO()
    quality = _QUALITY if look.quality is None else look.quality
    if look.format == "png":
        image.save(content, "PNG", compress_level=3)
    elif look.format == "jpeg":
        image.save(content, "JPEG", quality=quality)
    else:
        image.save(content, "WEBP", quality=quality, lossless=lossless, exact=lossless, method=2)
    return content.getvalue()
