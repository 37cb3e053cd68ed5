"""Reading entries of a cache again: whether each has the content that it came with."""

import errno
import hashlib
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import deflate

from pipeline.cache.aligned_buffer import LARGEST_BYTES, Buffers
from pipeline.cache.checksums import MD5, crc32_text
from pipeline.cache.md5.lanes import Md5Lanes
from pipeline.cache.png_check import png_fault

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
        """The fault of an entry, or else its checksum; empty where there is none.

        Args:
            path: The entry.
            size: That it must have [bytes].
            recorded: The checksums that it may have; without any, what it carries itself decides.
            digest: Of its content, "sha256:<hex>", where the dataset says it.

        Raises:
            OSError: It is there, its content is not lost, and it cannot be read.
        """
        try:
            present = path.stat().st_size
            if present != size:
                return f"has {present:,} bytes, not {size:,}", ""
            with self._read(path, size) as content:
                if digest and digest != f"sha256:{hashlib.sha256(content.view).hexdigest()}":
                    return "has another digest than the dataset says", ""
                if recorded and not self._has_one_of(content, recorded):
                    return "has another content than it came with", ""
                fault = "" if recorded or digest else png_fault(content.view)
                return fault, crc32_text(deflate.crc32(content.view))
        except FileNotFoundError:
            return "is gone", ""
        except OSError as error:
            if error.errno not in _LOST:
                raise
            return f"cannot be read: {error.strerror}", ""

    def _has_one_of(self, content: "_Content", recorded: set[str]) -> bool:
        if crc32_text(deflate.crc32(content.view)) in recorded:
            return True
        with_md5 = any(checksum.startswith(MD5) for checksum in recorded)
        return with_md5 and f"{MD5}{content.md5()}" in recorded

    @contextmanager
    def _read(self, path: Path, size: int) -> Iterator["_Content"]:
        with path.open("rb", buffering=0) as file:
            if size <= LARGEST_BYTES:
                with self._buffers.buffer(size) as buffer:
                    with self._lanes.coming():
                        while length := os.readv(
                            file.fileno(), [buffer.memory[buffer.size : size]]
                        ):
                            buffer.size += length
                    yield _Content(buffer.view, lambda: self._lanes.md5(buffer))
                return
            with (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as content,
            ):
                yield _Content(
                    content, lambda: hashlib.md5(content, usedforsecurity=False).hexdigest()
                )


@dataclass(frozen=True)
class _Content:
    """The bytes of an entry, and the function for its MD5."""

    view: memoryview
    md5: Callable[[], str]
