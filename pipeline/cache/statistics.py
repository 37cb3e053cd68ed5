"""Counts of a cache's stagings and evictions by source, for all processes that share it.

    CACHE/.statistics/<id>.json          counts of one that runs, written every `_WRITTEN_EVERY_S`
    CACHE/.statistics/<id>.ended.json    the same once it has ended: the next one adds it to its own
    CACHE/.statistics/<id>.taken.json    the same while one adds it, which names it in `taken` then

The sum over all files is what was done since the cache was made, so counts only rise. A process
that is killed loses a few seconds of them; its file stays. Without locks: to rename a file is to
take it.
"""

import json
import threading
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded

FOLDER = ".statistics"
BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the times that files took to come [s]; longer ones count beyond."""

_ENDED, _TAKEN = ".ended.json", ".taken.json"
_WRITTEN_EVERY_S = 2.0
_MOST_BYTES = 1 << 24
_TRIES = 10
"""Looks at a folder in which files are being added to others."""


@dataclass
class SourceCounts:
    """Counts of one source's files."""

    hits: int = 0
    """Files of stagings that were in the cache."""
    misses: int = 0
    """Files of stagings that were not."""
    fetched_files: int = 0
    fetched_bytes: int = 0
    failed_files: int = 0
    evicted_files: int = 0
    evicted_bytes: int = 0
    seconds: float = 0.0
    """Time that the fetched files took, several at once [s]."""
    within: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    """How many of them took at most each of `BOUNDS_S`, and no less than the one before; the last
    number is of those that took longer.
    """

    def add(self, other: "SourceCounts") -> None:
        """Add another's."""
        self.hits, self.misses = self.hits + other.hits, self.misses + other.misses
        self.fetched_files += other.fetched_files
        self.fetched_bytes += other.fetched_bytes
        self.failed_files += other.failed_files
        self.evicted_files += other.evicted_files
        self.evicted_bytes += other.evicted_bytes
        self.seconds += other.seconds
        self.within = [ours + more for ours, more in zip(self.within, other.within, strict=True)]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "SourceCounts":
        """The counts of a file; 0 for what it does not have."""
        counts = cls()
        for each in fields(cls):
            value = data.get(each.name, getattr(counts, each.name))
            if isinstance(value, list):
                if len(value) != len(BOUNDS_S) + 1:
                    raise ValueError("other bounds")
                value = [int(number) for number in value]
            else:
                value = float(value) if each.type is float else int(value)
            setattr(counts, each.name, value)
        return counts


class Counting:
    """Counts of one staging or eviction. May be used by many threads at once.

    That they cannot be written stops nobody: what is counted is told by what comes of it.
    """

    def __init__(self, cache: Path) -> None:
        """Count nothing yet, but what those that have ended did."""
        self._path = cache / FOLDER / f"{uuid.uuid4().hex}.json"
        self._lock, self._written_s = threading.Lock(), time.monotonic()
        self._sources: dict[str, SourceCounts] = {}
        with suppress(OSError, StorageError):
            self._merge_ended()

    def count(self, source: str, counts: SourceCounts) -> None:
        """Add counts of a source, "cluster:datasource"."""
        with self._lock:
            self._sources.setdefault(source, SourceCounts()).add(counts)
            if time.monotonic() - self._written_s >= _WRITTEN_EVERY_S:
                self._write()

    def fetched(self, source: str, size: int, seconds: float) -> None:
        """Count a file that has come.

        Args:
            source: "cluster:datasource".
            size: Of the file [bytes].
            seconds: From the first request to its name in the cache [s].
        """
        counts = SourceCounts(fetched_files=1, fetched_bytes=size, seconds=seconds)
        counts.within[bisect_left(BOUNDS_S, seconds)] = 1
        self.count(source, counts)

    def close(self) -> None:
        """End."""
        with self._lock:
            if not self._sources:
                return
            self._write()
            with suppress(OSError):
                self._path.rename(self._path.with_suffix(_ENDED))

    def _merge_ended(self) -> None:
        """Add what those did that have ended, and remove their files."""
        merged: list[Path] = []
        for ended in self._path.parent.glob(f"*{_ENDED}"):
            own = ended.with_name(f"{uuid.uuid4().hex}{_TAKEN}")
            try:
                ended.rename(own)
            except FileNotFoundError:
                continue  # another one took it
            counts_file = _read(own)
            for leftover in counts_file.merged:  # its writer was killed before it could remove them
                own.with_name(leftover).unlink(missing_ok=True)
            for source, counts in counts_file.sources.items():
                self._sources.setdefault(source, SourceCounts()).add(counts)
            merged.append(own)
        if merged:
            self._write([path.name for path in merged])
            for path in merged:
                path.unlink(missing_ok=True)

    def _write(self, merged: list[str] | None = None) -> None:
        counts_file = {
            "taken": merged or [],
            "sources": {source: asdict(counts) for source, counts in self._sources.items()},
        }
        self._written_s = time.monotonic()
        try:
            self._path.parent.mkdir(exist_ok=True)
            atomic_write(self._path, json.dumps(counts_file), fsync=False, clear=False)
        except (OSError, StorageError):
            if merged:
                raise


_open: dict[Path, tuple[Counting, int]] = {}
_opening = threading.Lock()
"""Those of this process, by their caches, with how many use each."""


@contextmanager
def counting(cache: Path) -> Iterator[Counting]:
    """The counts of a cache in this process, for the block; a block within it shares them."""
    with _opening:
        own, users = _open.get(cache) or (Counting(cache), 0)
        _open[cache] = own, users + 1
    try:
        yield own
    finally:
        with _opening:
            own, users = _open.pop(cache)
            if users > 1:
                _open[cache] = own, users - 1
            else:
                own.close()


def cache_statistics(cache: Path) -> dict[str, SourceCounts]:
    """Counts of a cache by source, since it was made."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):  # being added to another: look again
            return _sum(cache / FOLDER)
    return {}


@dataclass(frozen=True)
class _CountsFile:
    sources: Mapping[str, SourceCounts]
    merged: tuple[str, ...]


def _sum(folder: Path) -> dict[str, SourceCounts]:
    files = {path.name: _read(path) for path in folder.glob("*.json")}
    merged = {name for counts_file in files.values() for name in counts_file.merged}
    sources: dict[str, SourceCounts] = {}
    for name, counts_file in files.items():
        if name not in merged:
            for source, counts in counts_file.sources.items():
                sources.setdefault(source, SourceCounts()).add(counts)
    return sources


def _read(path: Path) -> _CountsFile:
    """The counts in a file; none where it is damaged."""
    try:
        data = parsed_json(read_bounded(path, _MOST_BYTES))
        sources = {str(name): SourceCounts.from_json(one) for name, one in data["sources"].items()}
        return _CountsFile(sources, tuple(Path(str(name)).name for name in data["taken"]))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadFile):
        return _CountsFile({}, ())
