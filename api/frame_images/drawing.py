"""Images made of a frame's files: resized, encoded again, the label blended over the image."""

import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import BadFile, InvalidInput
from ingest.images.camera_image import image_size, open_image
from ingest.labels.class_list import UNKNOWN_CLASS, ClassList
from ingest.labels.encoding import Encoding
from ingest.labels.label_image import decode_label, decode_values, open_png
from ingest.labels.png_chunks import read_header, take_apart
from pipeline.prepared.decoded_frames import nearest
from pipeline.runs.size import Size
from pipeline.runs.small_predictions import small_sizes

Format = Literal["png", "jpeg", "webp"]

MAX_PIXELS = 2**24
"""Images of more pixels are not drawn; one takes 12 bytes a pixel while it is."""

MAX_BYTES = 64 * 2**20
"""Files of more bytes are not drawn."""

DIFFERENT = "#ff00c8"
"""Marks pixels that a prediction has otherwise than the label: no class of A2D2 looks like it."""

_INDEX = Encoding("index")
_T = TypeVar("_T")
UInt8 = npt.NDArray[np.uint8]

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


def decoded_image(content: bytes, key: str) -> Image.Image:
    """A camera image, in mode RGB.

    Raises:
        BadFile: Neither PNG nor JPEG, damaged, or of more than MAX_PIXELS pixels.
    """

    def size_of(content: bytes) -> tuple[int, int]:
        view = memoryview(content)
        return image_size(lambda begin: view[begin:], len(content))

    return _decoded(content, key, open_image, size_of)


def decoded_png(png: bytes, key: str) -> Image.Image:
    """A label or prediction in its own colours, in mode RGB.

    Raises:
        BadFile: No PNG, damaged, or of more than MAX_PIXELS pixels.
    """
    return _decoded(png, key, open_png)


def decoded_label(
    png: bytes, key: str, class_list: ClassList, segments: str | None = None
) -> Image.Image:
    """A label's picture, in mode RGB, class ids as their classes' colours.

    Pixels of no class are black; raises as `decoded_png`.

    Args:
        segments: Of a panoptic label.
    """
    if class_list.encoding.is_colour:
        return decoded_png(png, key)
    colours = np.zeros((UNKNOWN_CLASS + 1, 3), np.uint8)
    colours[: len(class_list)] = class_list.class_colours
    return Image.fromarray(colours[decoded_ids(png, key, class_list, segments)])


def decoded_ids(png: bytes, key: str, class_list: ClassList, segments: str | None = None) -> UInt8:
    """A label (H, W) uint8 [class id]; raises as `decoded_png`.

    Args:
        segments: Of a panoptic label.
    """
    return _decoded(png, key, lambda content: decode_label(content, class_list, segments))


def decoded_prediction(png: bytes, key: str) -> UInt8:
    """A prediction's picture (H, W) uint8 [the model's class id]; raises as `decoded_png`."""
    values = _decoded(png, key, lambda content: decode_values(take_apart(content), _INDEX))
    return values.astype(np.uint8)


def decoded_by(decode: Callable[[bytes], UInt8], png: bytes, key: str) -> UInt8:
    """The (H, W) uint8 class ids that a function decodes of a PNG; raises as `decoded_png`."""
    return _decoded(png, key, decode)


def _png_size(png: bytes) -> tuple[int, int]:
    header = read_header(png)
    return header.width, header.height


def _decoded(
    content: bytes,
    key: str,
    decode: Callable[[bytes], _T],
    size_of: Callable[[bytes], tuple[int, int]] = _png_size,
) -> _T:
    try:
        width, height = size_of(content)
        if width * height <= MAX_PIXELS:
            return decode(content)
    except BadFile as error:
        raise BadFile(error.reason, key) from error
    raise BadFile(f"has {width}x{height} pixels; at most {MAX_PIXELS:,} are drawn", key)


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
    drawn: "npt.NDArray[np.bool_] | None",
    look: Look,
    key: str,
    *,
    is_small: bool = False,
) -> bytes:
    """A label over its camera image, encoded.

    Args:
        label: The label, of the same size, or a small copy of a prediction.
        alpha: How much of the label shows, 0 to 1.
        drawn: (height, width), which pixels of the label are drawn; all when None.
        key: The image's, for the message.
        is_small: Whether the label may be a small copy, which is enlarged.

    Raises:
        BadFile: The sizes differ.
    """
    if image.size != label.size and not (is_small and _is_copy_of(image.size, label.size)):
        raise BadFile(
            "is {}x{} pixels and its label {}x{}: they do not lie over each other".format(
                *image.size, *label.size
            ),
            key,
        )
    below = _smooth(image, look)
    above = label.resize(below.size, Image.Resampling.NEAREST)
    blended = Image.blend(below, above, alpha)
    if drawn is not None:
        mask = Image.fromarray(drawn.astype(np.uint8) * 255)
        mask = mask.resize(below.size, Image.Resampling.NEAREST)
        blended = Image.composite(blended, below, mask)
    return _encoded(blended, look)


def draw_differences(
    image: Image.Image,
    label: UInt8,
    prediction: UInt8,
    class_of_label: Sequence[int | None],
    only: Collection[int] | None,
    look: Look,
    key: str,
    taken_for: Collection[int] | None = None,
    *,
    is_small: bool = False,
) -> bytes:
    """A camera image, its pixels of DIFFERENT where a prediction has another class than the label.

    Args:
        label: (height, width) [class id of the label].
        prediction: (height, width) [the model's class id].
        class_of_label: The model's class of each class of the label; None where it has none, and
            pixels are not compared.
        only: Only where the label has one of these class ids; everywhere when None.
        key: The prediction's, for the message.
        taken_for: Only where the prediction has one of these class ids; everywhere when None.
        is_small: Whether the prediction may be a small copy; the label is compared where that
            was taken, so that no outline becomes an error.

    Raises:
        BadFile: The sizes differ.
    """
    small = prediction.shape[1], prediction.shape[0]
    is_copy = is_small and _is_copy_of(image.size, small)
    if image.size != label.shape[::-1] or not (small == image.size or is_copy):
        raise BadFile(
            "is {}x{} pixels, its image {}x{} and its label {}x{}: they do not lie over each "
            "other".format(*prediction.shape[::-1], *image.size, *label.shape[::-1]),
            key,
        )
    below = _smooth(image, look)
    if is_copy:
        truth, predicted = nearest(label, Size(*prediction.shape)), prediction
    else:
        truth, predicted = (
            np.asarray(_nearest(Image.fromarray(ids), look)) for ids in (label, prediction)
        )
    expected = np.full(UNKNOWN_CLASS + 1, UNKNOWN_CLASS, np.uint8)
    expected[: len(class_of_label)] = [
        UNKNOWN_CLASS if class_id is None else class_id for class_id in class_of_label
    ]
    mask = (expected[truth] != predicted) & (expected[truth] != UNKNOWN_CLASS)
    mask &= predicted != UNKNOWN_CLASS
    if only is not None:
        mask &= np.isin(truth, [*only])
    if taken_for is not None:
        mask &= np.isin(predicted, [*taken_for])
    above = Image.new("RGB", below.size, DIFFERENT)
    marked = Image.fromarray(np.uint8(mask) * 255).resize(below.size, Image.Resampling.NEAREST)
    return _encoded(Image.composite(above, below, marked), look)


def _is_copy_of(size: tuple[int, int], small: tuple[int, int]) -> bool:
    """Return whether a picture is as wide and high as a small copy of one of the first size."""
    return small in [(one.width_px, one.height_px) for one in small_sizes(*size[::-1])]


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
