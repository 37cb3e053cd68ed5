"""Camera images, PNG or JPEG, as arrays and pictures.

Which of them a file is its content says, whatever its name ends in. JPEGs are decoded by
libjpeg-turbo (simplejpeg) alone, which refuses what Pillow shows as a picture with wrong parts.
"""

import simplejpeg
from PIL import Image

from catalog.errors import BadFile
from ingest.images import jpeg_segments
from ingest.images.jpeg_segments import Piece, check_segments, read_jpeg_header
from ingest.labels import label_image, png_chunks
from ingest.labels.label_image import UInt8
from ingest.labels.other_content import kind_of_content

DECODER = f"simplejpeg {simplejpeg.__version__}"
"""Another one may give other pixels."""

MEDIA_TYPES = {"image/png": "PNG", "image/jpeg": "JPEG"}
"""Media types of camera images, and their names for people."""

BEGIN_BYTES = 8
"""What `media_type` needs of a file."""

_TOLD_BYTES = 4096
"""What tells the kind of other content."""


def media_type(begin: bytes) -> str | None:
    """The media type of a camera image, by its first bytes; None where it is none."""
    if begin.startswith(png_chunks.SIGNATURE):
        return "image/png"
    return "image/jpeg" if begin.startswith(jpeg_segments.SIGNATURE) else None


def is_jpeg(begin: bytes | memoryview) -> bool:
    """Whether a file with this beginning is a JPEG.

    Raises:
        BadFile: It is no camera image.
    """
    begin = bytes(begin[:_TOLD_BYTES])
    kind = media_type(begin)
    if kind is None:
        raise BadFile(
            f"is neither a PNG nor a JPEG image but {kind_of_content(begin)}"
            if begin
            else "is empty (0 bytes), expected a PNG or JPEG image"
        )
    return kind == "image/jpeg"


def image_size(piece: Piece, size: int) -> tuple[int, int]:
    """(W, H) of an image as its header says [pixels].

    Args:
        size: Of the file [bytes].

    Raises:
        BadFile: Neither PNG nor JPEG, or its header is cut short, damaged or not read.
    """
    begin = piece(0)
    if is_jpeg(begin):
        jpeg = read_jpeg_header(lambda at: piece(at) if at else begin, size)
        return jpeg.width, jpeg.height
    png = png_chunks.read_header(bytes(begin[: png_chunks.HEADER_BYTES]))
    return png.width, png.height


def whole_image_size(content: bytes) -> tuple[int, int]:
    """As `image_size`, of an image whose chunks or segments are all there.

    Raises:
        BadFile: They are not, or damaged.
    """
    if is_jpeg(content):
        check_segments(*_held(content))
    else:
        png_chunks.take_apart(content)
    return image_size(*_held(content))


def decode_image(content: bytes) -> UInt8:
    """A camera image as (H, W, 3) uint8 [RGB]; an alpha channel is dropped.

    Of 16-bit samples the high byte is kept, and no colour profile or gamma is applied.

    Raises:
        BadFile: Neither PNG nor JPEG, cut short, damaged, or of a kind that is not read.
    """
    if not is_jpeg(content):
        return label_image.decode_image(content)
    check_segments(*_held(content))
    read_jpeg_header(*_held(content))
    try:
        pixels: UInt8 = simplejpeg.decode_jpeg(content, "RGB")
    except ValueError as error:
        raise BadFile(f"JPEG is damaged: {' '.join(str(error).split())}") from error
    return pixels


def open_image(content: bytes) -> Image.Image:
    """The same in mode RGB; raises as `decode_image`."""
    if is_jpeg(content):
        return Image.fromarray(decode_image(content))
    return label_image.open_png(content)


def _held(content: bytes) -> tuple[Piece, int]:
    view = memoryview(content)
    return lambda at: view[at:], len(content)
