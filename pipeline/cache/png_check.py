"""Whether a PNG file is whole, by the checksums that it carries."""

import mmap
import zlib
from pathlib import Path

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_AROUND_BYTES = 12
"""Length, name and CRC of a chunk."""


def png_fault(path: Path) -> str:
    """What is wrong with a PNG file's chunks; empty where nothing is, or where it is no PNG.

    A file that begins as another kind is not judged: sources may hold what they like.

    Args:
        path: The file.

    Raises:
        OSError: It cannot be read.

    Source: https://www.w3.org/TR/png-3/#5Chunk-layout
    """
    if path.stat().st_size < len(SIGNATURE):
        return ""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[: len(SIGNATURE)] != SIGNATURE:
            return ""
        with memoryview(content) as view:
            return _fault(view)


def _fault(content: memoryview) -> str:
    at = len(SIGNATURE)
    while at + _AROUND_BYTES <= len(content):
        length = int.from_bytes(content[at : at + 4])
        end = at + _AROUND_BYTES + length
        if end > len(content):
            break
        name = bytes(content[at + 4 : at + 8])
        if zlib.crc32(content[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end]):
            return f"its PNG chunk {name.decode('latin-1')!r} at byte {at:,} has another CRC"
        if name == b"IEND":
            return ""
        at = end
    return "its PNG chunks end before IEND"
