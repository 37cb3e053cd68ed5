"""A JPEG's header and wholeness, by what stands at its segments."""

import pytest

from catalog.errors import BadFile
from ingest.images.jpeg_segments import (
    MAX_SCANS,
    MAX_SEGMENTS,
    SEGMENT_BYTES,
    Piece,
    jpeg_fault,
    read_jpeg_header,
)
from tests.drawn_jpegs import (
    BASELINE,
    GOOD,
    HEIGHT,
    REFUSED,
    THUMBNAIL,
    WIDTH,
    jpeg_of,
    segment,
    with_segments,
)


def pieces_of(content: bytes, first: int = 1 << 30, each: int = 1 << 30) -> Piece:
    """Pieces of such lengths."""
    return lambda begin: content[begin : begin + (each if begin else first)]


def fault_of(content: bytes) -> str:
    """The fault, the same by whatever pieces."""
    faults = {
        jpeg_fault(pieces_of(content, first, each), len(content))
        for first, each in ((1 << 30, 1 << 30), (4096, SEGMENT_BYTES), (33, 70_000), (33, 64))
    }
    assert len(faults) == 1, faults
    return faults.pop()


@pytest.mark.parametrize("form", GOOD)
def test_headers_of_every_form(form: str) -> None:
    """Size, components and the first scan's place; all at once, and by ranges as a scan reads."""
    jpeg = GOOD[form]
    components = 1 if "grey" in form else 3
    place = jpeg.index(
        b"\xff\xda", jpeg.index(THUMBNAIL) + len(THUMBNAIL) if THUMBNAIL in jpeg else 0
    )
    for first, each in ((1 << 30, 1 << 30), (4096, SEGMENT_BYTES), (33, SEGMENT_BYTES)):
        header = read_jpeg_header(pieces_of(jpeg, first, each), len(jpeg))
        assert (header.width, header.height) == (WIDTH, HEIGHT)
        assert (header.components, header.end) == (components, place)
    assert jpeg_fault(pieces_of(jpeg), len(jpeg)) == ""


def test_a_header_takes_few_reads() -> None:
    """One without EXIF data, two with 64 kB of it, one more for each such segment."""
    reads = []
    for form in ("baseline", "64 kB of EXIF", "a profile of 130 kB"):
        begun: list[int] = []
        piece = pieces_of(GOOD[form], 4096, SEGMENT_BYTES)

        def counted(begin: int, begun: list[int] = begun, piece: Piece = piece) -> bytes:
            begun.append(begin)
            return bytes(piece(begin))

        read_jpeg_header(counted, len(GOOD[form]))
        reads.append(len(begun))
    assert reads == [1, 2, 3]


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_read(words: str) -> None:
    """By a sentence that says why, whatever the byte order of its EXIF data."""
    jpeg = REFUSED[words]
    with pytest.raises(BadFile) as error:
        read_jpeg_header(pieces_of(jpeg), len(jpeg))
    assert words in error.value.reason
    assert error.value.reason.startswith("JPEG ")


@pytest.mark.parametrize(
    "form", ["baseline", "progressive", "restart markers", "thumbnail", "filling before a marker"]
)
def test_cut_anywhere(form: str) -> None:
    """Each cut of a JPEG is told, that behind a thumbnail's end and the last byte's as well."""
    jpeg = GOOD[form]
    for size in range(len(jpeg)):
        fault = jpeg_fault(pieces_of(jpeg[:size]), size)
        assert "\n" not in fault
        assert "truncated" in fault if size > 4 else fault
    for size in (0, 2, 700, len(jpeg) - 1):
        assert fault_of(jpeg[:size])
    assert fault_of(jpeg) == ""
    assert fault_of(jpeg[:-1]).endswith(f"ends after {len(jpeg) - 1:,} bytes before its end marker")


def test_other_bytes_where_a_segment_begins() -> None:
    """Other content, zeros in the header, a second JPEG in the first, an end before any scan."""
    for content, words in (
        (b"", "is empty (0 bytes), expected a JPEG image"),
        (b"\x89PNG\r\n\x1a\n" + bytes(60), "is not a JPEG image but a PNG image"),
        (BASELINE[:20] + bytes(60) + BASELINE[80:], "no segment begins at byte 20, where one must"),
        (BASELINE[:20] + BASELINE, "no segment begins at byte 20, where one must"),
        (BASELINE[:20] + b"\xff\xd9", "has no image before its end"),
        (BASELINE[:20] + b"\xff\xe0\0\1" + BASELINE[20:], "no segment begins at byte 20"),
    ):
        assert words in fault_of(content)


def test_many_scans_and_segments_are_refused() -> None:
    """Each may take as long as a whole image; as many as are allowed pass."""
    scan = BASELINE[BASELINE.index(b"\xff\xda") : -2]
    many = BASELINE[:-2] + scan * (MAX_SCANS - 1)
    assert fault_of(many + b"\xff\xd9") == ""
    assert f"more than {MAX_SCANS} scans" in fault_of(many + scan + b"\xff\xd9")
    comments = [segment(0xFE, b"")] * MAX_SEGMENTS
    assert f"more than {MAX_SEGMENTS:,} segments" in fault_of(with_segments(BASELINE, *comments))
    assert fault_of(with_segments(jpeg_of(), *comments[:4_000])) == ""
