"""JPEGs of drawn pictures in many forms, and what stands around their pixels."""

import io
import struct
from typing import Any

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 53, 38
PIXELS = np.random.default_rng(3).integers(0, 256, (HEIGHT // 2, -(-WIDTH // 2), 3), np.uint8)
PICTURE = Image.fromarray(PIXELS.repeat(2, 0).repeat(2, 1)[:, :WIDTH])


def jpeg_of(picture: Image.Image = PICTURE, **options: Any) -> bytes:
    """A JPEG as Pillow writes it."""
    content = io.BytesIO()
    picture.save(content, "JPEG", **options)
    return content.getvalue()


def segment(marker: int, body: bytes) -> bytes:
    """A segment with its marker and length."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def exif(orientation: int | None, order: str = ">", more: bytes = b"", kind: int = 3) -> bytes:
    """An APP1 segment with EXIF data.

    Args:
        order: Of the bytes, as struct has it.
        more: What stands behind its entries, such as a thumbnail.
        kind: TIFF's type of the orientation: 3 of two bytes, 4 of four.
    """
    entries = [struct.pack(f"{order}HHII", 0x0100, 4, 1, 640)]
    if orientation is not None:
        value = struct.pack(f"{order}{'HI'[kind - 3]}", orientation).ljust(4, b"\0")
        entries.append(struct.pack(f"{order}HHI", 0x0112, kind, 1) + value)
    directory = struct.pack(f"{order}H", len(entries)) + b"".join(entries) + bytes(4)
    head = (b"MM\0*" if order == ">" else b"II*\0") + struct.pack(f"{order}I", 8)
    return segment(0xE1, b"Exif\0\0" + head + directory + more)


def with_segments(jpeg: bytes, *segments: bytes) -> bytes:
    """A JPEG with segments behind its first marker."""
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def patched(jpeg: bytes, at: int, value: int) -> bytes:
    """A JPEG whose frame header has another byte; -1 is the marker's number, 2 the precision."""
    begin = next(n for n in range(len(jpeg)) if jpeg[n] == 0xFF and jpeg[n + 1] in (0xC0, 0xC2))
    place = begin + 2 + at
    return jpeg[:place] + bytes([value]) + jpeg[place + 1 :]


THUMBNAIL = jpeg_of(PICTURE.resize((16, 12)), quality=40)
BASELINE = jpeg_of()

GOOD = {
    "baseline": BASELINE,
    "without loss of colour": jpeg_of(subsampling=0, quality=97),
    "4:2:2": jpeg_of(subsampling=1),
    "progressive": jpeg_of(progressive=True),
    "grey": jpeg_of(PICTURE.convert("L")),
    "progressive grey": jpeg_of(PICTURE.convert("L"), progressive=True),
    "RGB": jpeg_of(keep_rgb=True),
    "restart markers": jpeg_of(restart_marker_blocks=2),
    "not turned": with_segments(BASELINE, exif(1)),
    "not turned, little endian": with_segments(BASELINE, exif(1, "<", kind=4)),
    "EXIF without orientation": with_segments(BASELINE, exif(None)),
    "an orientation that means nothing": with_segments(BASELINE, exif(9), exif(6)),
    "EXIF that is broken": with_segments(BASELINE, segment(0xE1, b"Exif\0\0MM\0*\0\0\xff\xff")),
    "thumbnail": with_segments(BASELINE, exif(1, more=THUMBNAIL)),
    "64 kB of EXIF": with_segments(BASELINE, exif(1, more=bytes(64_000) + THUMBNAIL)),
    "a profile of 130 kB": with_segments(
        BASELINE, *(segment(0xE2, b"ICC_PROFILE\0" + bytes([n, 2]) + bytes(65_000)) for n in (1, 2))
    ),
    "filling before a marker": BASELINE[:2] + b"\xff\xff" + BASELINE[2:],
    "padding": BASELINE + bytes(1_000),
}
"""JPEGs that can be read, all of PICTURE."""

REFUSED = {
    "has 4 components (CMYK)": jpeg_of(PICTURE.convert("CMYK")),
    "has 2 components": patched(BASELINE, 7, 2),
    "has 12 bits": patched(BASELINE, 2, 12),
    "is lossless": patched(BASELINE, -1, 0xC3),
    "is arithmetically coded": patched(BASELINE, -1, 0xC9),
    "is hierarchical": patched(BASELINE, -1, 0xC5),
    "header is invalid: 0x38": patched(patched(BASELINE, 6, 0), 5, 0),
    "claims 65280x65318 pixels": patched(patched(patched(BASELINE, 3, 255), 5, 255), 6, 0),
    **{
        f"(EXIF orientation {n})": with_segments(
            BASELINE, exif(n, "<" if n % 2 else ">", kind=3 + n % 2)
        )
        for n in range(2, 9)
    },
    "no image before its end": BASELINE[:20] + b"\xff\xd9",
}
"""JPEGs that are not read, by some words of why."""
