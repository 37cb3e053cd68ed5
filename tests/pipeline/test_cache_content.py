"""Contents of a cache's files that are read by pieces."""

import os
import random
import zlib
from pathlib import Path

import pytest

from pipeline.cache import verify
from pipeline.cache.checksums import crc32_text
from pipeline.cache.content import FileContent, HeldContent, crc32_of, md5_of
from pipeline.cache.png_check import SIGNATURE, png_fault
from pipeline.cache.verify import Verifier


def test_pieces_of_a_file_judge_as_the_whole_in_memory(tmp_path: Path) -> None:
    """PNGs whose chunks lie in one piece, across two and over many; whole, cut off and damaged."""
    draw = random.Random(7)
    sizes = (13, 0, 1, 40, 3, 200, 0, 90)
    chunks = [b"IDAT" + draw.randbytes(size) for size in sizes] + [b"IEND"]
    png = SIGNATURE + b"".join(
        (len(chunk) - 4).to_bytes(4) + chunk + zlib.crc32(chunk).to_bytes(4) for chunk in chunks
    )
    contents = [png, png + b"more", b"", b"no PNG, and longer than a piece of sixteen bytes"]
    contents += [png[: draw.randrange(len(png))] for _ in range(60)]
    for at in range(len(png)):
        contents.append(png[:at] + bytes([png[at] ^ 4]) + png[at + 1 :])
    faults = set()
    for content in contents:
        path = tmp_path / "file"
        path.write_bytes(content)
        held = HeldContent(memoryview(content))
        with path.open("rb") as file:
            for piece in (8, 16, 33, 4096):
                memory = memoryview(bytearray(piece))
                read = FileContent(file.fileno(), len(content), memory)
                assert png_fault(read) == png_fault(held)
                assert crc32_of(read, 3, len(content)) == zlib.crc32(content[3:])
                assert md5_of(read) == md5_of(held)
        faults.add(png_fault(held))
    assert {"", "its PNG chunks end before IEND"} < faults


@pytest.mark.parametrize("is_large", [True, False])
def test_a_file_that_is_cut_off_while_it_is_verified(
    is_large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fault is told; a mapped file would end the process by SIGBUS."""
    path, content = tmp_path / "entry", bytes(range(256)) * 40
    path.write_bytes(content)
    if is_large:
        monkeypatch.setattr(verify, "LARGEST_BYTES", 4_000)
        monkeypatch.setattr(verify, "PIECE_BYTES", 4_000)
    assert Verifier().fault_of(path, len(content), {crc32_text(zlib.crc32(content))})[0] == ""
    read = {name: getattr(os, name) for name in ("preadv", "readv")}
    for name in read:

        def cut(file: int, *more: object, name: str = name) -> int:
            os.truncate(path, 100)
            length: int = read[name](file, *more)
            return length

        monkeypatch.setattr(os, name, cut)
    fault, checksum = Verifier().fault_of(path, len(content), set())
    assert (fault, checksum) == ("cannot be read: it ends at byte 100", "")
