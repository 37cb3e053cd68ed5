"""Reading entries of a cache again: whether each has the content that it came with."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.cache.aligned_buffer import LARGEST_BYTES, Buffers
from pipeline.cache.checksums import CRC32, MD5, crc32_text
from pipeline.cache.content import (
    PIECE_BYTES,
    Content,
    FileContent,
    HeldContent,
    crc32_and_sha256,
    crc32_of,
    cut_off,
    md5_of,
)
from pipeline.cache.image_fault import image_fault
from pipeline.cache.md5.lanes import Md5Lanes

READ_AT_ONCE = 20
"""Threads that read entries: their files' checksums are computed together."""

_LOST = (errno.EIO, errno.EBADMSG, errno.EUCLEAN)
"""Errors of a disk or file system that has lost a file's content."""


class Verifier:
    """Reads entries again, from many threads at once."""

    def __init__(self) -> None:
        self._buffers, self._lanes = Buffers(), Md5Lanes()

    def fault_of(
        self, path: Path, size: int, recorded: set[str], digest: str | None = None
    ) -> tuple[str, str]:
        """The fault of an entry, or else its CRC-32; empty where there is none, or none was needed.

        Args:
            size: That it must have [bytes].
            recorded: The checksums that it may have; without any, what it carries itself decides.
            digest: Of its content, "sha256:<hex>", where the dataset says it.
        """
        try:
            present = path.stat().st_size
            if present != size:
                return f"has {present:,} bytes, not {size:,}", ""
            with self._read(path, size) as (content, md5):
                checksum = ""
                if digest:
                    crc32, sha256 = crc32_and_sha256(content)
                    if digest != f"sha256:{sha256}":
                        return "has another digest than the dataset says", ""
                    checksum = crc32_text(crc32)
                elif not recorded or any(one.startswith(CRC32) for one in recorded):
                    checksum = crc32_text(crc32_of(content, 0, size))
                if recorded and checksum not in recorded and f"{MD5}{md5()}" not in recorded:
                    return "has another content than it came with", ""
                return "" if recorded or digest else image_fault(content), checksum
        except FileNotFoundError:
            return "is gone", ""
        except OSError as error:
            if error.errno not in _LOST:
                raise
            return f"cannot be read: {error.strerror}", ""

    @contextmanager
    def _read(self, path: Path, size: int) -> Iterator[tuple[Content, Callable[[], str]]]:
        """An entry's content, and what computes its MD5."""
        with path.open("rb", buffering=0) as file:
            if size <= LARGEST_BYTES:
                with self._buffers.buffer(size) as buffer:
                    with self._lanes.coming():
                        while length := os.readv(
                            file.fileno(), [buffer.memory[buffer.size : size]]
                        ):
                            buffer.size += length
                    if buffer.size < size:
                        raise cut_off(buffer.size)
                    yield HeldContent(buffer.view), lambda: self._lanes.md5(buffer)
                return
            with self._buffers.buffer(PIECE_BYTES) as buffer:
                content = FileContent(file.fileno(), size, buffer.memory)
                yield content, lambda: md5_of(content)
