"""Made images on disk, within a bound. Safe for several threads and processes at once."""

import contextlib
import hashlib
import os
import threading
from pathlib import Path

from catalog.errors import StorageError
from catalog.storage.atomic_write import atomic_write, clear_parts
from catalog.storage.eviction import Bounds, entries_in, entries_to_evict
from catalog.storage.private_files import make_private_folder

_DIGEST_BYTES = 32


class ImageCache:
    """Bytes by key. What is damaged or cannot be written counts as not there."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Make nothing yet.

        Args:
            most_bytes: Size they are kept below, but for a sixteenth a process [bytes].
        """
        self._folder, self._most_bytes = folder, most_bytes
        self._written = most_bytes  # so that the first write looks at what was left here
        self._trimming = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The picture that was put there, or None."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            os.utime(path)  # the least recently used go first
        except OSError:
            return None
        body = content[_DIGEST_BYTES:]
        return body if _digest(body) == content[:_DIGEST_BYTES] else None

    def put(self, key: str, body: bytes) -> None:
        """Keep bytes; a full disk keeps none."""
        path = self._path(key)
        with contextlib.suppress(OSError, StorageError):
            make_private_folder(path.parent)
            # Not waiting for the disk: the digest tells what a power cut left half.
            atomic_write(path, _digest(body) + body, mode=0o600, fsync=False, clear=False)
            self._trim_after(len(body))

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / key[2:]

    def _trim_after(self, written: int) -> None:
        """Look at the whole folder whenever a sixteenth of the bound was written."""
        with self._trimming:
            self._written += written
            if self._written < self._most_bytes // 16:
                return
            self._written = 0
            self._trim()

    def _trim(self) -> None:
        clear_parts(self._folder.glob("*/*.part"))
        images = entries_in(self._folder.glob("*/*"))
        for image in entries_to_evict(images, Bounds(size=self._most_bytes)):
            with contextlib.suppress(OSError):
                image.path.unlink()


def _digest(body: bytes) -> bytes:
    # A file may be cut by a power failure after it was renamed.
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
