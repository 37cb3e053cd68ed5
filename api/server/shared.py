"""State that the processes of one server share beside records and files of the home."""

import mmap
import os
from pathlib import Path

_BYTES = 16


class Changes:
    """Tells processes that rights changed, so that they forget what they remember of them."""

    def __init__(self, folder: Path | None = None) -> None:
        """Changes of this process alone, or of all that have the same folder."""
        if folder is None:
            self._mark = mmap.mmap(-1, _BYTES)
            return
        descriptor = os.open(folder / "changes", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, _BYTES)
            self._mark = mmap.mmap(descriptor, _BYTES)
        finally:
            os.close(descriptor)

    @property
    def mark(self) -> bytes:
        """Another one after each change."""
        return self._mark[:]

    def add(self) -> None:
        """There is one more."""
        self._mark[:] = os.urandom(_BYTES)
