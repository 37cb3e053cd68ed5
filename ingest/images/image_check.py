"""A scan's look at a camera image: its size and its end, in two or three reads of a few kB."""

from catalog.errors import ArchivedFile, BadFile, UnreadableFile
from catalog.values import File
from ingest.images.camera_image import is_jpeg, whole_image_size
from ingest.images.jpeg_segments import EOI, SEGMENT_BYTES, read_jpeg_header
from ingest.labels.png_chunks import HEADER_BYTES, read_header
from ingest.sources.listed_read import use_listed
from ingest.sources.source_files import FileReader

_TAIL_BYTES = 4096
_JPEG_HEAD_BYTES = 4096
"""Of a file whose name says JPEG: more than its header has without EXIF data or a profile."""
_JPEG_NAMES = (".jpg", ".jpeg")


def check_image(source: FileReader, image: File, label: File, size: tuple[int, int]) -> int:
    """Look at the header and the end of a camera image, and where they are bad at all of it.

    No checksum proves a part, and bytes behind the end, as a copy's padding, may be many.

    Args:
        size: (W, H) of its label [pixels].

    Returns:
        How much was read [bytes].

    Raises:
        BadFile: Its size is not the label's, or it is cut short, damaged or of a kind not read.
        UnreadableFile: It cannot be read.
    """
    ranges = _Ranges(source, image)
    try:
        if ranges.size_of_whole() == size:
            return ranges.bytes
    except ArchivedFile:
        return ranges.bytes  # not every listing tells of archives
    except UnreadableFile:
        raise
    except BadFile:
        pass  # judged below
    image_px, content = use_listed(source, image, whole_image_size)
    if image_px != size:
        raise BadFile(
            f"label is {size[0]}x{size[1]} pixels, its camera image {image_px[0]}x{image_px[1]}",
            label.key,
        )
    return ranges.bytes + len(content)


class _Ranges:
    """Parts of a listed image."""

    def __init__(self, source: FileReader, image: File) -> None:
        self._source, self._image = source, image
        self._first = b""
        self.bytes = 0
        """Read so far."""

    def size_of_whole(self) -> tuple[int, int] | None:
        """(W, H) as the header says [pixels]; None where the image has no end."""
        is_named_jpeg = self._image.key.lower().endswith(_JPEG_NAMES)
        self._first = self._read(0, _JPEG_HEAD_BYTES if is_named_jpeg else HEADER_BYTES)
        if not is_jpeg(self._first):
            png = read_header(self._first[:HEADER_BYTES])
            return (png.width, png.height) if b"IEND" in self._tail()[1] else None
        jpeg = read_jpeg_header(self._piece, self._image.size)
        begin, tail = self._tail()
        # A thumbnail in the header ends so, too; compressed pixels hold no such bytes.
        is_whole = EOI in tail[max(0, jpeg.end - begin) :]
        return (jpeg.width, jpeg.height) if is_whole else None

    def _tail(self) -> tuple[int, bytes]:
        begin = max(0, self._image.size - _TAIL_BYTES)
        return begin, self._read(begin, _TAIL_BYTES)

    def _piece(self, begin: int) -> bytes:
        return self._read(begin, SEGMENT_BYTES) if begin else self._first

    def _read(self, begin: int, length: int) -> bytes:
        content = self._source.read_range(self._image.key, begin, length)
        self.bytes += len(content)
        return content
