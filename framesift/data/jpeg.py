"""JPEG files as arrays, through simplejpeg; a damaged file is an error, never a wrong picture."""

import struct

from framesift.data.png import UInt8
from framesift.forms.optional import imported

SIGNATURE = b"\xff\xd8\xff"

MAX_PIXELS = 2**25
"""Images that claim more are refused before they are decoded, as by the rest of Framesift."""

_SOS, _APP1 = 0xDA, 0xE1
_ALONE = (0x01, *range(0xD0, 0xD8))
"""Markers without a segment."""
_FRAMES = range(0xC0, 0xD0)
_NO_FRAMES = (0xC4, 0xC8, 0xCC)
_READ_FRAMES = (0xC0, 0xC1, 0xC2)
"""Baseline, extended sequential, progressive."""

_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112


def decode_jpeg(jpeg: bytes) -> UInt8:
    """A JPEG as (H, W, 3) uint8 [RGB]; no colour profile is applied.

    Raises:
        ValueError: It is damaged, of a kind that is not read, or to be turned by its EXIF.
        MissingPackage: There is no simplejpeg.
    """
    simplejpeg = imported("simplejpeg")
    _check_header(jpeg)
    pixels: UInt8 = simplejpeg.decode_jpeg(jpeg, "RGB")
    return pixels


def _check_header(jpeg: bytes) -> None:
    at, orientation, frame = 2, None, None
    try:
        while (marker := _marker(jpeg, at)) != _SOS:
            if marker == 0xFF or marker in _ALONE:
                at += 1 if marker == 0xFF else 2
                continue
            (length,) = struct.unpack_from(">H", jpeg, at + 2)
            body = jpeg[at + 4 : at + 2 + length]
            if marker == _APP1 and orientation is None and body.startswith(_EXIF):
                orientation = _orientation(body[len(_EXIF) :])
            elif marker in _FRAMES and marker not in _NO_FRAMES and frame is None:
                frame = marker, *struct.unpack_from(">BHHB", body)
            at += 2 + length
    except (struct.error, IndexError) as error:
        raise ValueError("JPEG is truncated before its pixels") from error
    kind, precision, height, width, components = frame or (None, 0, 0, 0, 0)
    if not 0 < width * height <= MAX_PIXELS:
        raise ValueError(f"JPEG claims {width}x{height} pixels; 1 to {MAX_PIXELS:,} are read")
    if kind not in _READ_FRAMES or precision != 8 or components not in (1, 3):
        raise ValueError(
            f"JPEG has {precision} bits and {components} components, or is lossless; baseline and "
            "progressive ones of 8 bits are read, grey or coloured"
        )
    if orientation not in (None, 1):
        raise ValueError(
            f"JPEG is to be turned or mirrored (EXIF orientation {orientation}), and its label is "
            "not"
        )


def _marker(jpeg: bytes, at: int) -> int:
    if jpeg[at] != 0xFF:
        raise ValueError(f"JPEG is damaged: no segment begins at byte {at:,}")
    return jpeg[at + 1]


def _orientation(tiff: bytes) -> int:
    """The orientation in EXIF data; 1 where it gives none that means something."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    try:
        if order is None or struct.unpack_from(f"{order}H", tiff, 2) != (42,):
            return 1
        (at,) = struct.unpack_from(f"{order}I", tiff, 4)
        (entries,) = struct.unpack_from(f"{order}H", tiff, at)
        for entry in range(at + 2, at + 2 + 12 * entries, 12):
            tag, kind, _ = struct.unpack_from(f"{order}HHI", tiff, entry)
            if tag == _ORIENTATION:
                form = {3: "H", 4: "I"}.get(kind, "B")
                (value,) = struct.unpack_from(f"{order}{form}", tiff, entry + 8)
                return value if value in range(1, 9) else 1
    except struct.error:
        return 1
    return 1
