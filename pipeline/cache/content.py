"""Contents of a cache's files: in memory, or read again by pieces where they are large.

Large files are not mapped: SIGBUS ends a process that reads what another one has just cut off, or
what the disk has lost.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from typing import Protocol

import deflate

PIECE_BYTES = 2**20
"""Memory for the pieces of a large file [bytes]."""


class Content(Protocol):
    """The content of a file."""

    @property
    def size(self) -> int:
        """Its size [bytes]."""
        ...

    def piece(self, begin: int) -> memoryview:
        """Some of it from a byte on, at least what its memory holds; valid until the next one.

        Raises:
            OSError: It cannot be read, or is there no more.
        """
        ...


class HeldContent:
    """Content in memory."""

    def __init__(self, view: memoryview) -> None:
        self._view = view

    @property
    def size(self) -> int:
        """Its size [bytes]."""
        return len(self._view)

    def piece(self, begin: int) -> memoryview:
        """All of it from a byte on."""
        return self._view[begin:]


class FileContent:
    """The content of an open file."""

    def __init__(self, file: int, size: int, memory: memoryview) -> None:
        """Read nothing yet."""
        self._file, self._size, self._memory = file, size, memory

    @property
    def size(self) -> int:
        """Its size [bytes]."""
        return self._size

    def piece(self, begin: int) -> memoryview:
        """Some of it from a byte on: to its end, or as much as the memory holds.

        Raises:
            OSError: It cannot be read, or is there no more.
        """
        memory, at = self._memory[: self._size - begin], 0
        while at < len(memory):
            length = os.preadv(self._file, [memory[at:]], begin + at)
            if not length:
                raise cut_off(begin + at)
            at += length
        return memory


def cut_off(size: int) -> OSError:
    """The error of a file that has become shorter since it was opened: ``size`` bytes are left."""
    return OSError(errno.EIO, f"it ends at byte {size:,}")


def pieces(content: Content, begin: int, end: int) -> Iterator[memoryview]:
    """The bytes from ``begin`` up to ``end``; each piece is valid until the next one."""
    while begin < end:
        piece = content.piece(begin)[: end - begin]
        yield piece
        begin += len(piece)


def crc32_of(content: Content, begin: int, end: int) -> int:
    """The CRC-32 of the bytes from ``begin`` up to ``end``."""
    crc32 = 0
    for piece in pieces(content, begin, end):
        crc32 = deflate.crc32(piece, crc32)
    return crc32


def crc32_and_sha256(content: Content) -> tuple[int, str]:
    """Both of a content, which is read once."""
    crc32, sha256 = 0, hashlib.sha256()
    for piece in pieces(content, 0, content.size):
        crc32 = deflate.crc32(piece, crc32)
        sha256.update(piece)
    return crc32, sha256.hexdigest()


def md5_of(content: Content) -> str:
    """The MD5 of a content, in hex."""
    md5 = hashlib.md5(usedforsecurity=False)
    for piece in pieces(content, 0, content.size):
        md5.update(piece)
    return md5.hexdigest()
