"""The byte layout of the PNG files, parsed here from scratch."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sample_data.png_writer import CAMERA, LABEL_NONE, LABEL_SUB, PngEncoding, encode_png

ROW_BYTES = 1920 * 3 + 1


def chunks(content: bytes) -> list[tuple[bytes, bytes]]:
    """Kind and data of every chunk; checks signature, CRCs and the end."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    chunk_list, at = [], 8
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        assert struct.unpack(">I", content[at + 8 + size : at + 12 + size])[0] == zlib.crc32(
            kind + data
        )
        chunk_list.append((kind, data))
        at += 12 + size
    return chunk_list


def described(file: Path) -> tuple[list[bytes], int, bytes, list[int], int]:
    """Other chunks' kinds, IDAT count, zlib header, filter bytes, largest IDAT of a file."""
    parts = chunks(file.read_bytes())
    idats = [data for kind, data in parts if kind == b"IDAT"]
    raw = zlib.decompress(b"".join(idats))
    assert parts[0][1] == struct.pack(">IIBBBBB", 1920, 1208, 8, 2, 0, 0, 0)
    assert len(raw) == ROW_BYTES * 1208
    kinds = [kind for kind, _ in parts if kind != b"IDAT"]
    return kinds, len(idats), idats[0][:2], list(raw[::ROW_BYTES]), max(map(len, idats))


def test_camera_files_are_laid_out_like_a2d2s(committed: Path) -> None:
    """Camera: IHDR/IDAT/IEND, 64 KiB chunks, default level, row 0 Sub and the rest Paeth."""
    for file in sorted(committed.glob("camera_lidar_semantic/*/camera/*/*.png"))[::6]:
        kinds, _, header, filters, largest = described(file)
        assert kinds == [b"IHDR", b"IEND"]
        assert header == b"\x78\x9c"
        assert filters == [1] + [4] * 1207
        assert largest <= 65_536


def test_labels_come_in_both_encodings(committed: Path) -> None:
    """Labels: all Sub, level 1, 8 KiB chunks; or all None, one chunk, colour chunks; by scene."""
    seen = {}
    for scene in sorted((committed / "camera_lidar_semantic").glob("2*")):
        file = sorted(scene.glob("label/*/*.png"))[0]
        kinds, idats, header, filters, largest = described(file)
        if header == b"\x78\x01":
            assert kinds == [b"IHDR", b"IEND"]
            assert set(filters) == {1}
            assert largest <= 8_192
            seen["sub"] = idats
        else:
            assert header == b"\x78\x5e"
            assert kinds == [b"IHDR", b"sRGB", b"gAMA", b"pHYs", b"IEND"]
            assert set(filters) == {0}
            assert idats == 1
            seen["none"] = idats
    assert set(seen) == {"sub", "none"}
    assert seen["sub"] > 1


@pytest.mark.parametrize("encoding", [CAMERA, LABEL_SUB, LABEL_NONE])
@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 5, 3), (130, 33, 3)])
def test_what_is_written_reads_back(
    tmp_path: Path, encoding: PngEncoding, shape: tuple[int, int, int]
) -> None:
    """Pillow decodes random pictures of odd sizes to exactly the pixels that went in."""
    picture = np.random.default_rng(5).integers(0, 256, size=shape, dtype=np.uint8)
    file = tmp_path / "a.png"
    file.write_bytes(encode_png(picture, encoding))
    assert (np.array(Image.open(file)) == picture).all()


def test_other_arrays_are_refused() -> None:
    """A grey or 16-bit array raises ValueError that names what came and what is expected."""
    with pytest.raises(ValueError, match="expected uint8"):
        encode_png(np.zeros((4, 4), dtype=np.uint8), CAMERA)
