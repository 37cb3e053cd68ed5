"""Reading entries of a cache again: whether each has the content that it came with."""

import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.cache.aligned_buffer import LARGEST_BYTES, Buffers
from pipeline.cache.md5.lanes import Md5Lanes
from pipeline.cache.png_check import png_fault

READ_AT_ONCE = 20
"""Threads that read entries: their files' checksums are computed together."""


class Verifier:
    """Reads entries again, from many threads at once."""

    def __init__(self) -> None:
        self._buffers, self._lanes = Buffers(), Md5Lanes()

    def fault_of(
        self, path: Path, size: int, recorded: set[str], digest: str | None = None
    ) -> tuple[str, str]:
        """The fault of an entry, and its checksum; empty where there is none.

        Args:
            path: The entry.
            size: That it must have [bytes].
            recorded: The checksums that it may have; without any, what it carries itself decides.
            digest: Of its content, "sha256:<hex>", where the dataset says it.

        Raises:
            OSError: It is there and cannot be read.
        """
        try:
            present = path.stat().st_size
            if present != size:
                return f"has {present:,} bytes, not {size:,}", ""
            with self._read(path, size) as (content, md5):
                checksum = f"md5:{md5}"
                if digest and digest != f"sha256:{hashlib.sha256(content).hexdigest()}":
                    return "has another digest than the dataset says", checksum
                if recorded and checksum not in recorded:
                    return "has another content than it came with", checksum
                return ("" if recorded or digest else png_fault(content)), checksum
        except FileNotFoundError:
            return "is gone", ""

    @contextmanager
    def _read(self, path: Path, size: int) -> Iterator[tuple[memoryview, str]]:
        with path.open("rb", buffering=0) as file:
            if size <= LARGEST_BYTES:
                with self._buffers.buffer(size) as buffer:
                    with self._lanes.coming():
                        while length := os.readv(
                            file.fileno(), [buffer.memory[buffer.size : size]]
                        ):
                            buffer.size += length
                    yield buffer.view, self._lanes.md5(buffer)
                return
            md5 = hashlib.file_digest(file, _md5).hexdigest()
            with (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as content,
            ):
                yield content, md5


def _md5() -> "hashlib._Hash":
    return hashlib.md5(usedforsecurity=False)
