"""A check of image files by what they carry: PNG's checksums, JPEG's segments and end."""

from ingest.images.jpeg_segments import SIGNATURE, jpeg_fault
from pipeline.cache.content import Content
from pipeline.cache.png_check import png_fault


def image_fault(content: Content) -> str:
    """The fault of a PNG's chunks or a JPEG's segments; empty where there is none.

    A file that begins as another kind is not judged: sources may hold what they like.
    """
    if content.piece(0)[: len(SIGNATURE)] == SIGNATURE:
        return jpeg_fault(content.piece, content.size)
    return png_fault(content)
