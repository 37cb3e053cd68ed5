"""Made images on disk, within a bound. Safe for several threads and processes at once."""

import contextlib
import fcntl
import hashlib
import os
import tempfile
import threading
from pathlib import Path

_DIGEST_BYTES = 32


class ImageCache:
    """Bytes by key. What is damaged or cannot be written counts as not there."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Make nothing yet.

        Args:
            folder: Where the files lie.
            most_bytes: Size they are kept below, but for a sixteenth a process [bytes].
        """
        self._folder, self._most_bytes = folder, most_bytes
        self._written = most_bytes  # so that the first write looks at what was left here
        self._trimming = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """What was put there, or None.

        Args:
            key: Hexadecimal digits.
        """
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
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part", delete=False) as part:
                try:
                    fcntl.flock(part, fcntl.LOCK_EX)  # so that nobody takes it for a leftover
                    part.write(_digest(body) + body)
                    part.flush()
                    Path(part.name).replace(path)
                except OSError:
                    Path(part.name).unlink(missing_ok=True)
                    raise
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
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                if path.suffix == ".part" and _is_left(path):
                    path.unlink()
                else:
                    found.append((status.st_mtime, status.st_size, path))
        held = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if held <= self._most_bytes:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                held -= size


def _is_left(part: Path) -> bool:
    """Whether the process that wrote it was killed: the kernel has freed its lock."""
    with part.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _digest(body: bytes) -> bytes:
    # A file may be cut by a power failure after it was renamed.
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
