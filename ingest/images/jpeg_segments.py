"""A JPEG's segments: what its header says, and whether the file is whole. A leaf.

    SOI  APP1 (Exif) APPn DQT SOFn DHT  SOS <compressed pixels>  [DHT SOS <...>] ...  EOI

JPEG has no checksums: what is told here is a file that ends too early or has other bytes where a
segment or a marker must stand. Other damage of compressed pixels shows when they are decoded.

Source: ITU-T T.81, annex B; Exif 2.32, sections 4.5 and 4.6.
"""

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from catalog.errors import BadFile
from ingest.labels.other_content import kind_of_content
from ingest.labels.png_chunks import MAX_PIXELS

SIGNATURE = b"\xff\xd8\xff"
"""First bytes of every JPEG."""

EOI = b"\xff\xd9"
"""The marker at the end of an image."""

MAX_SCANS, MAX_SEGMENTS = 500, 5_000
"""JPEGs of more are refused: a scan may take as long as a whole image. Progressive ones have 10."""

SEGMENT_BYTES = 2 + 0xFFFF
"""No segment is longer."""

Piece = Callable[[int], bytes | memoryview]
"""Some of a file from a byte on: a segment's bytes and more, or less where the file ends.

The first piece may be shorter.
"""

_SOI, _EOI, _SOS, _APP1 = 0xD8, 0xD9, 0xDA, 0xE1
_ALONE = (0x01, *range(0xD0, _SOI))
"""Markers without a segment."""
_NOT_FRAMES = (0xC4, 0xC8, 0xCC)
"""DHT, JPG and DAC, among the numbers of frame headers."""
_READ_FRAMES = (0xC0, 0xC1, 0xC2)
"""Baseline, extended sequential, progressive."""
_OTHER_FRAMES = {0xC3: "lossless", **dict.fromkeys((0xC9, 0xCA, 0xCB), "arithmetically coded")}
"""Processes that no decoder at hand reads; all others are hierarchical."""

_IN_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""A marker that ends compressed pixels: no stuffed byte, restart or filling."""

_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112


@dataclass(frozen=True)
class JpegHeader:
    """The segments before the compressed pixels."""

    width: int
    """Of the image as it is stored [pixels]."""
    height: int
    components: int
    """1 of a grey image, 3 of a coloured one."""
    end: int
    """Place of the first scan: what comes before may hold a thumbnail, a whole JPEG of its own."""


def read_jpeg_header(piece: Piece, size: int) -> JpegHeader:
    """The header of a JPEG that can be read.

    Args:
        size: Of the file [bytes].

    Raises:
        BadFile: No JPEG, cut short, of a process that is not read, or to be turned by its EXIF.
    """
    frame: tuple[int, bytes] | None = None
    orientation: int | None = None
    reader = _Reader(piece, size)
    for marker, begin, length in _segments(reader):
        if marker == _EOI:
            break
        if marker == _SOS:
            if frame is None:
                break
            width, height, components = _frame(*frame)
            _check_orientation(orientation or 1)
            return JpegHeader(width, height, components, begin)
        if marker == _APP1 and orientation is None:
            orientation = _orientation(bytes(reader.bytes_at(begin + 4, length - 2)))
        elif 0xC0 <= marker <= 0xCF and marker not in _NOT_FRAMES and frame is None:
            frame = marker, bytes(reader.bytes_at(begin + 4, min(length - 2, 6)))
    raise BadFile("JPEG is damaged: it has no image before its end")


def jpeg_fault(piece: Piece, size: int) -> str:
    """The fault of a JPEG's segments; empty where there is none.

    Bytes behind its end are passed over. Of a kind that is not read, such as a lossless one, it is
    told as well whether it is whole.

    Args:
        size: Of the file [bytes].
    """
    try:
        check_segments(piece, size)
    except BadFile as error:
        return error.reason
    return ""


def check_segments(piece: Piece, size: int) -> None:
    """Walk over all segments of a JPEG to its end.

    Raises:
        BadFile: It is cut short, has other bytes where a segment must begin, or too many scans.
    """
    scans = 0
    for marker, _, _ in _segments(_Reader(piece, size)):
        scans += marker == _SOS
        if scans > MAX_SCANS:
            raise BadFile(f"JPEG has more than {MAX_SCANS} scans; no camera or program writes it")
        if marker == _EOI:
            if scans:
                return
            break
    raise BadFile("JPEG is damaged: it has no image before its end")


class _Reader:
    """Bytes of a file at any place, by pieces."""

    def __init__(self, piece: Piece, size: int) -> None:
        self._piece, self.size = piece, size
        self._begin, self._held = 0, memoryview(piece(0))

    def bytes_at(self, begin: int, length: int) -> memoryview:
        """Some bytes; fewer where the file ends."""
        return self.held_from(begin, length)[:length]

    def held_from(self, begin: int, length: int = 2) -> memoryview:
        """At least ``length`` bytes; fewer where the file ends."""
        end = min(begin + length, self.size)
        if begin >= end:
            return memoryview(b"")
        if begin < self._begin or end > self._begin + len(self._held):
            self._begin, self._held = begin, memoryview(self._piece(begin))
        return self._held[begin - self._begin :]


def _segments(reader: _Reader) -> Iterator[tuple[int, int, int]]:
    """Each segment: its marker, its place, and its length without the marker; EOI is the last.

    Raises:
        BadFile: The file ends before EOI, or a segment does not begin where it must.
    """
    begin = bytes(reader.bytes_at(0, 512))
    if not begin.startswith(SIGNATURE):
        if not reader.size:
            raise BadFile("is empty (0 bytes), expected a JPEG image")
        raise BadFile(f"is not a JPEG image but {kind_of_content(begin)}")
    at = 2
    for _ in range(MAX_SEGMENTS):
        at, marker = _marker(reader, at)
        if marker in _ALONE:
            at += 2
            continue
        if marker == _EOI:
            yield marker, at, 0
            return
        if marker == _SOI:
            raise _damaged(at)
        length = int.from_bytes(reader.bytes_at(at + 2, 2))
        if at + 2 + max(length, 2) > reader.size:
            raise _cut_off(reader)
        if length < 2:
            raise _damaged(at)
        yield marker, at, length
        at += 2 + length
        if marker == _SOS:
            at = _scan_end(reader, at)
    raise BadFile(f"JPEG has more than {MAX_SEGMENTS:,} segments; no camera or program writes it")


def _marker(reader: _Reader, at: int) -> tuple[int, int]:
    """The place and number of the marker at a byte, before which may be filling (0xFF)."""
    while True:
        two = bytes(reader.bytes_at(at, 2))
        if len(two) < 2:
            raise _cut_off(reader)
        if two[0] != 0xFF or two[1] == 0:
            raise _damaged(at)
        if two[1] != 0xFF:
            return at, two[1]
        at += 1


def _scan_end(reader: _Reader, at: int) -> int:
    """The place of the marker that ends the compressed pixels from a byte on."""
    while True:
        window = reader.held_from(at)
        match = _IN_SCAN.search(window)
        if match is not None:
            return at + match.start()
        if len(window) < 2 or at + len(window) >= reader.size:
            raise _cut_off(reader)
        at += len(window) - 1  # the last byte may begin a marker


def _cut_off(reader: _Reader) -> BadFile:
    return BadFile(f"JPEG is truncated: ends after {reader.size:,} bytes before its end marker")


def _damaged(at: int) -> BadFile:
    return BadFile(f"JPEG is damaged: no segment begins at byte {at:,}, where one must")


def _frame(marker: int, header: bytes) -> tuple[int, int, int]:
    """Width, height and components of a frame header that can be read."""
    if marker not in _READ_FRAMES:
        what = _OTHER_FRAMES.get(marker, "hierarchical")
        raise BadFile(f"JPEG is {what}; baseline and progressive ones are read")
    if len(header) < 6:
        raise BadFile("JPEG is damaged: its frame header is too short")
    precision, height, width, components = struct.unpack(">BHHB", header)
    if precision != 8:
        raise BadFile(f"JPEG has {precision} bits a sample; those of 8 are read")
    if not width or not height:
        raise BadFile(f"JPEG header is invalid: {width}x{height} pixels")
    if width * height > MAX_PIXELS:
        raise BadFile(f"JPEG claims {width}x{height} pixels; at most {MAX_PIXELS:,} are read")
    if components not in (1, 3):
        cmyk = " (CMYK), whose colours are those of an ink" if components == 4 else ""
        raise BadFile(
            f"JPEG has {components} components{cmyk}; grey and RGB or YCbCr ones are read"
        )
    return width, height, components


def _check_orientation(orientation: int) -> None:
    if orientation != 1:
        raise BadFile(
            f"JPEG is to be turned or mirrored (EXIF orientation {orientation}), and its label is "
            "not: store its pixels as they shall lie, or remove the orientation where the label "
            "fits them as they are"
        )


def _orientation(body: bytes) -> int | None:
    """The orientation in an APP1 segment; None in one that is not EXIF's, 1 where none is given.

    Numbers that mean nothing are 1, as viewers take them.
    """
    if not body.startswith(_EXIF):
        return None
    tiff = body[len(_EXIF) :]
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
