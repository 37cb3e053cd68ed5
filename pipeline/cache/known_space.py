"""Space of a cache, counted again only where something came or went.

Entries are never written in place, so what a folder of them takes changes with the folder's time.
A million entries take five seconds of CPU to count, and their 500 folders' times a hundredth.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from catalog.errors import StorageError
from pipeline.cache.contents import cached_forms, source_folders

_SETTLED_S = 3.0
"""A change within one tick of a file system's clock leaves its folder's time as it was [s]."""


@dataclass
class _Folder:
    """Count of what lies in a folder."""

    mark: tuple[int, int]
    """Its time and number."""
    bytes: int = 0
    """Of the files in it itself."""
    files: int = 0
    folders: list[str] = field(default_factory=list)
    marked_s: float = 0.0
    """When it was first seen with that mark, by this process's clock [s]."""
    is_settled: bool = False
    """Whether a change since it was counted must have changed its mark."""


class KnownSpace:
    """Space of entries and prepared forms in a cache, as it is at each call."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._known: dict[str, _Folder] = {}

    def count(self) -> tuple[int, int]:
        """Bytes and files."""
        size = files = 0
        for form in cached_forms(self._cache):
            size, files = size + form.bytes, files + form.files
        known: dict[str, _Folder] = {}
        waiting = [str(folder) for folder in source_folders(self._cache)]
        while waiting:
            path = waiting.pop()
            folder = self._folder(path)
            if folder is not None:
                known[path] = folder
                size, files = size + folder.bytes, files + folder.files
                waiting += folder.folders
        self._known = known
        return size, files

    def _folder(self, path: str) -> _Folder | None:
        try:
            # Before it is listed: what comes meanwhile changes the mark, and is counted next time.
            status = os.stat(path)  # noqa: PTH116 (of many folders)
            mark, now = (status.st_mtime_ns, status.st_ino), time.monotonic()
            known = self._known.get(path)
            if known is not None and known.mark == mark and known.is_settled:
                return known
            counted = _counted(path, mark)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path}: {error.strerror}", path) from error
        same = known is not None and known.mark == mark
        counted.marked_s = known.marked_s if known is not None and same else now
        counted.is_settled = now - counted.marked_s > _SETTLED_S
        return counted


def _counted(path: str, mark: tuple[int, int]) -> _Folder:
    folder = _Folder(mark)
    with os.scandir(path) as listing:
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                folder.folders.append(entry.path)
                continue
            try:
                folder.bytes += entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
            folder.files += 1
    return folder
