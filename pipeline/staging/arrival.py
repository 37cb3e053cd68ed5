"""A file that is coming into the cache: in memory up to 16 MB, in a file of its staging above."""

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import deflate

from catalog.errors import BadFile, StorageError
from ingest.sources.opened_file import OpenedFile
from pipeline.cache.aligned_buffer import ALIGNED_BYTES, LARGEST_BYTES, AlignedBuffer, Buffers
from pipeline.cache.checksums import MD5, crc32_text
from pipeline.cache.content import PIECE_BYTES, FileContent, HeldContent, crc32_and_sha256
from pipeline.cache.image_fault import image_fault
from pipeline.cache.md5.lanes import Md5Lanes

_RENAMES = 100
"""Names that are tried to be given while others remove empty folders."""


class CacheFails(Exception):
    """The cache fails, and no source."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Content(Protocol):
    """Received content of a file."""

    @property
    def size(self) -> int:
        """So much [bytes]."""

    def restart(self) -> None:
        """Forget what has come."""

    def take(self, opened: OpenedFile) -> None:
        """Take what comes next, to the end."""

    def md5(self) -> str:
        """The MD5 of what has come, in hex; where its source can check one."""

    def crc32(self) -> int:
        """The CRC-32 of what has come; where its source can check no MD5."""

    def sha256(self) -> str:
        """The SHA-256 of what has come, in hex."""

    def image_fault(self) -> str:
        """The fault that pipeline.cache.image_fault tells."""

    def write(self) -> None:
        """Have it on the disk as the part.

        Raises:
            OSError: The cache refuses.
        """


class Arrival:
    """Transfer of one file into the cache.

    Attributes:
        seconds: How long its transfers took so far [s].
    """

    def __init__(self, content: _Content, temporary_path: Path, size: int) -> None:
        self._content, self._temporary_path, self._expected = content, temporary_path, size
        self._damaged = ""
        self._checksum = ""
        self.seconds = 0.0

    @property
    def size(self) -> int:
        """Size of the part that has come [bytes]."""
        return self._content.size

    def restart(self) -> None:
        """Forget what has come."""
        self._content.restart()

    @contextmanager
    def transferring(self) -> Iterator[None]:
        """Measure a transfer."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began

    def take(self, opened: OpenedFile) -> None:
        """Take what comes next, to the end.

        Raises:
            StorageError: It ends early, or does not end.
        """
        self._content.take(opened)
        if self.size != self._expected:
            raise StorageError(f"{self.size:,} of its {self._expected:,} bytes came")

    def digest(self) -> str:
        """SHA-256 of the content that has come, "sha256:<hex>"."""
        return f"sha256:{self._content.sha256()}"

    def check(self, expected: str | None, check_md5: Callable[[str], None] | None) -> None:
        """Hold what has come against the digest and MD5 that are known, and the sums in it.

        Raises:
            StorageError: They do not fit; the way here may have damaged it.
            BadFile: They do not fit, and the same came before.
        """
        if check_md5 is None:
            self._checksum = crc32_text(self._content.crc32())
        else:
            md5 = self._content.md5()
            self._checksum = f"{MD5}{md5}"
            check_md5(md5)
        fault = self._content.image_fault()
        if expected is not None and expected != (digest := self.digest()):
            fault = f"its content has {digest}, the dataset's {expected}"
        if fault and self._checksum == self._damaged:
            raise BadFile(f"is damaged: {fault}; put the whole file there")
        if fault:
            self._damaged = self._checksum
            raise StorageError(f"came damaged: {fault}")

    @property
    def checksum(self) -> str:
        """The checksum of the content that was checked, as pipeline.cache.checksums records it."""
        return self._checksum

    def commit(self, target: Path) -> None:
        """Give it its name, once it is on the disk."""
        self._content.write()
        for _ in range(_RENAMES):
            with suppress(FileNotFoundError):
                self._temporary_path.rename(target)
                return
            # An eviction elsewhere may remove an empty folder between the two.
            with suppress(FileNotFoundError):
                target.parent.mkdir(parents=True, exist_ok=True)
        self._temporary_path.rename(target)


@contextmanager
def arriving(
    temporary_path: Path, size: int, buffers: Buffers, lanes: Md5Lanes
) -> Iterator[Arrival]:
    """A transfer for the block, which keeps the file; where it fails, what was received is removed.

    Args:
        temporary_path: For what comes of it.
        size: That it must have [bytes].
    """
    try:
        if size <= LARGEST_BYTES:
            with buffers.buffer(size) as buffer:
                yield Arrival(_InMemory(temporary_path, buffer, size, lanes), temporary_path, size)
        else:
            with _InFile(temporary_path, buffers) as content:
                yield Arrival(content, temporary_path, size)
    except BaseException:
        with suppress(OSError):  # a cache that refuses is told of by what could not be written
            temporary_path.unlink()
        raise


class _InMemory:
    def __init__(
        self, temporary_path: Path, buffer: AlignedBuffer, expected: int, lanes: Md5Lanes
    ) -> None:
        self._temporary_path, self._buffer, self._lanes = temporary_path, buffer, lanes
        self._place = buffer.memory[:expected]

    @property
    def size(self) -> int:
        return self._buffer.size

    def restart(self) -> None:
        self._buffer.size = 0

    def take(self, opened: OpenedFile) -> None:
        if opened.read_into is not None:
            self._buffer.size = opened.read_into(self._place)
            return
        for piece in opened.pieces:
            begin, end = self.size, self.size + len(piece)
            if end > len(self._place):
                raise StorageError(f"more than its {len(self._place):,} bytes came")
            self._place[begin:end] = piece
            self._buffer.size = end

    def md5(self) -> str:
        return self._lanes.md5(self._buffer)

    def crc32(self) -> int:
        return deflate.crc32(self._buffer.view)

    def sha256(self) -> str:
        return hashlib.sha256(self._buffer.view).hexdigest()

    def image_fault(self) -> str:
        return image_fault(HeldContent(self._buffer.view))

    def write(self) -> None:
        try:
            # Past the page cache: copying a GB into it takes 0.2 s of CPU, and it pushes out what
            # jobs read.
            self._write(os.O_DIRECT)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot
                raise
            self._write(0)

    def _write(self, direct: int) -> None:
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC
        file = os.open(self._temporary_path, flags | direct, 0o666)
        try:
            padded_bytes = -(-self.size // ALIGNED_BYTES) * ALIGNED_BYTES
            remaining = self._buffer.memory[: padded_bytes if direct else self.size]
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
            os.ftruncate(file, self.size)
            os.fsync(file)  # a power cut must not leave a name without its bytes
        finally:
            os.close(file)


class _InFile:
    def __init__(self, temporary_path: Path, buffers: Buffers) -> None:
        self._temporary_path, self._buffers = temporary_path, buffers
        self._size, self._md5, self._crc32 = 0, hashlib.md5(usedforsecurity=False), 0
        try:
            self._file = temporary_path.open("w+b")
        except OSError as error:
            raise CacheFails(error) from error

    @property
    def size(self) -> int:
        return self._size

    def __enter__(self) -> "_InFile":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what could not be written was said before
            self._file.close()

    def restart(self) -> None:
        self._size, self._md5, self._crc32 = 0, hashlib.md5(usedforsecurity=False), 0
        try:
            self._file.seek(0)
            self._file.truncate()
        except OSError as error:
            raise CacheFails(error) from error

    def take(self, opened: OpenedFile) -> None:
        for piece in opened.pieces:
            if opened.check_md5 is None:
                self._crc32 = deflate.crc32(piece, self._crc32)
            else:
                self._md5.update(piece)
            self._size += len(piece)
            try:
                self._file.write(piece)
            except OSError as error:
                raise CacheFails(error) from error

    def md5(self) -> str:
        return self._md5.hexdigest()

    def crc32(self) -> int:
        return self._crc32

    def sha256(self) -> str:
        with self._read() as content:
            return crc32_and_sha256(content)[1]

    def image_fault(self) -> str:
        with self._read() as content:
            return image_fault(content)

    @contextmanager
    def _read(self) -> Iterator[FileContent]:
        try:
            self._file.flush()
            with self._buffers.buffer(PIECE_BYTES) as buffer:
                yield FileContent(self._file.fileno(), self._size, buffer.memory)
        except OSError as error:
            raise CacheFails(error) from error

    def write(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
