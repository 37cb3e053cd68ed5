"""Reading from a cache while a staging fetches into it: how readers and that staging talk.

    CACHE/.parts/<staging>/beat             touched while the staging lives (pipeline.cache.stager)
    CACHE/.parts/<staging>/readers/N.json   how far reader N is, and what it waits for (Reading)
    CACHE/.parts/<staging>/readers/N-PROCESS.json   the same of a process that reads for reader N
    CACHE/.parts/<staging>/rows-HASH        int64: which frames of the manifest they read
    CACHE/.parts/<staging>/failed.jsonl     what readers wait for, and cannot be had

A leaf of the standard library: training and users' programs (framesift.data) read through it. A
reader opens files as ever. One that is not there it waits for, as long as the staging lives; it
holds no key and asks no source.
"""

import hashlib
import json
import os
import threading
import time
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from catalog.errors import BadFile, StorageError
from catalog.storage.atomic_write import atomic_write
from pipeline.cache.beat import Watch

BEAT, READERS, FAILED = "beat", "readers", "failed.jsonl"

_TOLD_EVERY_S = 0.1
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.005, 0.2
_WATCHED_EVERY_S = 1.0

ALL = 2**62
"""Progress of a reader that has ended: it needs no further file."""


@dataclass(frozen=True)
class Reading:
    """Progress of a reader."""

    reader: int
    """Its number among the job's."""
    readers: int
    batch_size: int
    """Examples of a reader in a step."""
    begin: int
    """Examples that the whole job had read before it began."""
    end: int | None
    """Examples that it will have read at its end; None where that is not known."""
    read: int = 0
    """Of its own, how many it has read, one after the other."""
    waits: tuple[str, ...] = ()
    """Paths below the cache of what it waits for."""
    seed: int | None = None
    """Of the order of its examples; None for the order that the staging was told."""
    rows: str = ""
    """Name of the file with the frames that it reads; empty for all of the staging's split."""
    process: str = ""
    """Process that reads for the reader, as a DataLoader's do; empty for the reader itself."""

    @property
    def order(self) -> tuple[int, int, int, int | None, int | None, str]:
        """Its order, which all readers of a job have in common."""
        return self.readers, self.batch_size, self.begin, self.end, self.seed, self.rows


@dataclass(frozen=True)
class StagingLocation:
    """Location of a staging that readers read through."""

    folder: str
    """Its own one in the cache."""
    manifest: str
    """The manifest with the paths of what it fetches."""


class ReadsThrough:
    """Reader of files that a staging fetches meanwhile. Its methods are safe to use from threads.

    Attributes:
        manifest: What is read: a manifest whose files lie, or will lie, on this host.
    """

    def __init__(self, folder: Path | None, manifest: Path) -> None:
        """Report nothing yet.

        Args:
            folder: Of the staging; None where there is none, and every file is there.
        """
        self._folder, self.manifest = folder, manifest
        self._reading: Reading | None = None
        self._lock = threading.Lock()
        self._ahead: set[int] = set()
        self._read = 0
        self._waits: dict[str, int] = {}
        self._watch, self._watched_s, self._is_dead = Watch(), 0.0, False
        self._told_s = 0.0

    @classmethod
    def at(cls, manifest: Path, file: Path | None) -> "ReadsThrough":
        """Reads a manifest, or through a staging that fetches its files meanwhile.

        Args:
            file: In which the staging says where it is (`StagingLocation`); None for no staging.

        Raises:
            BadFile: The file is missing or names no staging.
        """
        if file is None:
            return cls(None, manifest)
        try:
            staging = StagingLocation(**json.loads(file.read_text())["place"])
            return cls(Path(staging.folder), Path(staging.manifest))
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = "expected the file of a staging beside a job; begin the job by framesift train"
            raise BadFile(reason, str(file)) from error

    def begin(self, reading: Reading) -> None:
        """Report to the staging who reads what; processes that read for it begin anew."""
        with self._lock:
            if self._folder is not None and not reading.process:
                for ended in (self._folder / READERS).glob(f"{reading.reader}-*.json"):
                    ended.unlink(missing_ok=True)
            self._reading, self._read = reading, reading.read
            self._ahead.clear()
            self._report()

    def reads(self, reading: Reading) -> None:
        """Report what it reads now: its `read` are the examples that it needs no more."""
        with self._lock:
            frames = self._reading
            self._reading, self._read = reading, reading.read
            is_new = frames is None or frames.order != reading.order
            if is_new or time.monotonic() - self._told_s >= _TOLD_EVERY_S:
                self._report()

    def keep_rows(self, rows: Iterable[int]) -> str:
        """Keep which rows of the manifest are read, in their order; the name for `Reading.rows`.

        Raises:
            StorageError: The staging has ended, or the disk is full.
        """
        content = array("q", rows).tobytes()
        name = f"rows-{hashlib.sha256(content).hexdigest()[:16]}"
        if self._folder is not None and not (self._folder / name).exists():
            atomic_write(self._folder / name, content, fsync=False, clear=False)
        return name

    def has_read(self, index: int) -> None:
        """Count one of its own examples as read, from 0; they may come in any order."""
        if self._folder is None:
            return
        with self._lock:
            self._ahead.add(index)
            while self._read in self._ahead:
                self._ahead.remove(self._read)
                self._read += 1
            if time.monotonic() - self._told_s >= _TOLD_EVERY_S:
                self._report()

    def wait_for(self, path: str) -> bool:
        """Wait until a file is there, which was not; False where no staging fetches it.

        Raises:
            BadFile: It cannot be had, or its staging has ended.
        """
        if self._folder is None:
            return False
        entry = os.path.relpath(path, self._folder.parent.parent)
        with self._waiting(entry):
            pause, told_s = _FIRST_LOOK_S, time.monotonic()
            while not os.path.exists(path):  # noqa: PTH110 (a tenth of the time)
                if failure := _failure(self._folder / FAILED, entry):
                    origin, reason = failure
                    raise BadFile(reason, origin)
                if self._has_ended(self._folder) and not os.path.exists(path):  # noqa: PTH110
                    raise BadFile(
                        "is not in the cache, and the staging that fetches it has ended; start "
                        "the job again: framesift jobs resume",
                        path,
                    )
                time.sleep(pause)
                pause = min(_LONGEST_LOOK_S, 2 * pause)
                if time.monotonic() - told_s >= _WATCHED_EVERY_S:  # its reader has begun anew
                    told_s = time.monotonic()
                    with self._lock:
                        self._report()
        return True

    def close(self) -> None:
        """Report to the staging that nothing more is read."""
        with self._lock:
            self._read = ALL
            self._report()

    def __enter__(self) -> "ReadsThrough":
        """Close at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _waiting(self, entry: str) -> Iterator[None]:
        with self._lock:
            self._waits[entry] = self._waits.get(entry, 0) + 1
            self._report()
        try:
            yield
        finally:
            with self._lock:
                self._waits[entry] -= 1
                if not self._waits[entry]:
                    del self._waits[entry]
                self._report()

    def _report(self) -> None:
        if self._reading is None or self._folder is None:
            return
        record = {**asdict(self._reading), "read": self._read, "waits": list(self._waits)}
        of = f"-{self._reading.process}" if self._reading.process else ""
        path = self._folder / READERS / f"{self._reading.reader}{of}.json"
        with suppress(StorageError):  # the staging has ended, or the disk is full: the next time
            atomic_write(path, json.dumps(record), fsync=False, clear=False)
        self._told_s = time.monotonic()

    def _has_ended(self, folder: Path) -> bool:
        with self._lock:
            if time.monotonic() - self._watched_s >= _WATCHED_EVERY_S:
                self._is_dead = self._watch.is_dead(folder / BEAT)
                self._watched_s = time.monotonic()
            return self._is_dead


def _failure(failed: Path, entry: str) -> tuple[str, str] | None:
    """The origin of a file that cannot be had, and the reason."""
    with suppress(OSError):
        for line in failed.read_bytes().splitlines():
            with suppress(ValueError):  # being written
                of, origin, reason = json.loads(line)
                if of == entry:
                    return origin, reason
    return None


class Readers:
    """Readers of a staging: their progress, and the files that they wait for."""

    def __init__(self, folder: Path) -> None:
        """Make room for them."""
        self._folder = folder
        self._known: dict[str, tuple[tuple[int, int], Reading]] = {}
        (folder / READERS).mkdir(exist_ok=True)

    def look(self) -> list[Reading]:
        """The last progress of each reader and process, by the readers' numbers."""
        with suppress(OSError), os.scandir(self._folder / READERS) as entries:
            listed = [entry for entry in entries if entry.name.endswith(".json")]
            for name in self._known.keys() - {entry.name for entry in listed}:
                del self._known[name]
            for entry in listed:
                with suppress(OSError, ValueError, TypeError):  # is being replaced
                    status = Path(entry.path).stat()
                    mark = status.st_mtime_ns, status.st_ino
                    if entry.name in self._known and self._known[entry.name][0] == mark:
                        continue
                    record = json.loads(Path(entry.path).read_text())
                    reading = Reading(**{**record, "waits": tuple(record["waits"])})
                    self._known[entry.name] = mark, reading
        return sorted((reading for _, reading in self._known.values()), key=lambda one: one.reader)

    def rows(self, name: str) -> "array[int]":
        """The rows of the manifest that `ReadsThrough.keep_rows` kept.

        Raises:
            OSError: They are not there.
        """
        return array("q", (self._folder / name).read_bytes())

    def fail(self, entry: str, origin: str, reason: str) -> None:
        """Report to readers that what they wait for cannot be had."""
        with (self._folder / FAILED).open("a") as file:
            file.write(json.dumps([entry, origin, reason]) + "\n")
