"""A check of PNG files by the checksums that they carry."""

import deflate

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_AROUND_BYTES = 12
"""Length, name and CRC of a chunk."""


def png_fault(content: memoryview) -> str:
    """The fault of a PNG file's chunks; empty where there is none, or where it is no PNG.

    A file that begins as another kind is not judged: sources may hold what they like.

    Args:
        content: The file's.

    Source: https://www.w3.org/TR/png-3/#5Chunk-layout
    """
    if content[: len(SIGNATURE)] != SIGNATURE:
        return ""
    at = len(SIGNATURE)
    while at + _AROUND_BYTES <= len(content):
        length = int.from_bytes(content[at : at + 4])
        end = at + _AROUND_BYTES + length
        if end > len(content):
            break
        name = bytes(content[at + 4 : at + 8])
        # libdeflate's: 0.02 s of CPU a GB, zlib's 0.16.
        if deflate.crc32(content[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end]):
            return f"its PNG chunk {name.decode('latin-1')!r} at byte {at:,} has another CRC"
        if name == b"IEND":
            return ""
        at = end
    return "its PNG chunks end before IEND"
