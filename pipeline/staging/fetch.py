"""Fetching a plan's files into the cache: each aside, checked, and then renamed."""

import hashlib
import os
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from pathlib import Path

from catalog.errors import BadFile, FramesiftError, OtherVersion, StorageError, UnreadableFile
from catalog.storage.file_version import shown
from ingest.sources.opened_file import OpenedFile, open_file
from pipeline.cache.checksums import Checksums
from pipeline.cache.png_check import png_fault
from pipeline.cache.stager import Stager
from pipeline.staging.plan import OpenSource, StagingPlan, WantedFile
from pipeline.staging.progress import Progress

ATTEMPTS = 3
"""How often a file is fetched whose source fails; each has its client's own retries before it."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_RESUMED_BYTES = 64 * 2**20
"""A larger file goes on where its transfer broke off; a smaller one begins again [bytes]."""

_LOOK_AGAIN_S = 0.2
"""How soon it is looked again for a file that another staging fetches [s]."""

_FAILURES_IN_A_ROW = 8
"""Files of one source that may fail by their source, one after another, before staging ends."""


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be staged.

    Attributes:
        place: Where it should have come from.
        reason: Why, and what to do.
        of_source: Whether its source fails, and not this file alone.
    """

    place: str
    reason: str
    of_source: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Fetched:
    """What was fetched.

    Attributes:
        files: Files that this staging fetched; others that were missing came by another one.
        bytes: Their size [bytes].
        failed: Those that could not be had.
    """

    files: int
    bytes: int
    failed: list[FailedFile]


class _Outcome(Enum):
    FETCHED = auto()
    CAME = auto()
    ELSEWHERE = auto()


def fetch_files(
    plan: StagingPlan,
    stager: Stager,
    checksums: Checksums,
    sources: OpenSource,
    *,
    workers: int = 4,
    progress: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[FailedFile], None] = lambda _: None,
) -> Fetched:
    """Fetch every missing file of the plan, several at once; what another staging fetches comes.

    Args:
        plan: What to fetch.
        stager: This staging's place in the cache.
        checksums: Where what has come is recorded.
        sources: Opens the sources.
        workers: Files fetched at once.
        progress: Told whenever a file has come.
        failed: Told of each file that cannot be had; the others go on.

    Raises:
        NotFound, InvalidInput, BadFile: A source cannot be opened.
        StorageError: Nor can it, or it fails for one file after another, or the cache cannot be
            written; what has come before stays.
    """
    return _Fetch(plan, stager, checksums, sources).run(workers, progress, failed)


class _CacheFails(Exception):
    """The cache, and no source, refuses."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class _Fetch:
    def __init__(
        self, plan: StagingPlan, stager: Stager, checksums: Checksums, sources: OpenSource
    ) -> None:
        self._plan, self._stager, self._sources = plan, stager, sources
        self._checksums = checksums
        self._numbers = count()
        self._stop = threading.Event()
        self._items = deque(plan.missing)
        self._waited: set[WantedFile] = set()
        self._failures: list[FailedFile] = []
        self._in_a_row: Counter[str] = Counter()
        self._done = _Done(plan)

    def run(
        self,
        workers: int,
        progress: Callable[[Progress], None],
        failed: Callable[[FailedFile], None],
    ) -> Fetched:
        for name in {item.source for item in self._items}:
            self._sources(name)
        progress(self._done.progress())
        pending: dict[Future[FailedFile | _Outcome], WantedFile] = {}
        with ThreadPoolExecutor(workers, thread_name_prefix="stage") as pool:
            try:
                while self._items or pending:
                    while self._items and len(pending) < 4 * workers:
                        item = self._items.popleft()
                        pending[pool.submit(self._fetch, item)] = item
                    ended, _ = wait(pending, return_when=FIRST_COMPLETED)
                    for future in ended:
                        self._take(pending.pop(future), future.result(), failed)
                    progress(self._done.progress(len(self._failures)))
            finally:
                self._stop.set()
                for future in pending:
                    future.cancel()
        return Fetched(self._done.fetched_files, self._done.fetched_bytes, self._failures)

    def _take(
        self, item: WantedFile, outcome: FailedFile | _Outcome, failed: Callable[[FailedFile], None]
    ) -> None:
        if isinstance(outcome, FailedFile):
            self._failures.append(outcome)
            failed(outcome)
            self._count(item, outcome)
        elif outcome is _Outcome.ELSEWHERE:
            self._waited.add(item)
            self._items.append(item)
        else:
            self._done.add(item, fetched=outcome is _Outcome.FETCHED)
            self._in_a_row[item.source] = 0

    def _count(self, item: WantedFile, failure: FailedFile) -> None:
        """End the staging when a source fails for one file after another."""
        if failure.of_source:
            self._in_a_row[item.source] += 1
        if self._in_a_row[item.source] >= _FAILURES_IN_A_ROW:
            raise StorageError(
                f"source {item.source}: fails for one file after another, the last is {failure} "
                "(what has come stays in the cache: stage again once that is mended)",
                failure.place,
            )

    def _fetch(self, item: WantedFile) -> FailedFile | _Outcome:
        """Have a file in the cache, or say why not, or that another staging fetches it just now."""
        if item in self._waited:
            self._stop.wait(_LOOK_AGAIN_S)
        try:
            return self._unless_claimed(item)
        except _CacheFails as fails:
            target = self._plan.target(item)
            raise StorageError(
                f"{target}: {fails.error.strerror} (fetching {self._plan.place(item)})", str(target)
            ) from fails.error
        except FramesiftError as error:
            of_source = isinstance(error, StorageError)
            return FailedFile(self._plan.place(item), _reason(error, item), of_source)

    def _unless_claimed(self, item: WantedFile) -> _Outcome:
        entry = self._plan.entry(item)
        try:
            if not self._stager.claim(entry):
                return _Outcome.ELSEWHERE
        except OSError as error:
            raise _CacheFails(error) from error
        try:
            if self._plan.is_there(item):
                return _Outcome.CAME
            self._until_it_comes(item)
        finally:
            self._stager.release(entry)
        return _Outcome.FETCHED

    def _until_it_comes(self, item: WantedFile) -> None:
        arrival = _Arrival(self._stager.folder / f"{next(self._numbers)}.part")
        try:
            for attempt in count(1):
                try:
                    self._attempt(item, arrival)
                    break
                except StorageError:
                    if attempt >= ATTEMPTS or self._stop.is_set():
                        raise
                # Full jitter: many workers and hosts shall not come back together.
                longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt)
                self._stop.wait(random.uniform(0, longest))  # noqa: S311 (no secret)
            try:
                self._checksums.record(self._plan.entry(item), arrival.sha256(), item.size)
                arrival.keep(self._plan.target(item))
            except OSError as error:
                raise _CacheFails(error) from error
        finally:
            arrival.end()

    def _attempt(self, item: WantedFile, arrival: "_Arrival") -> None:
        if not _RESUMED_BYTES <= arrival.size < item.size:
            arrival.restart()
        files = self._sources(item.source)
        try:
            with open_file(files, item.key, item.version, arrival.size) as opened:
                _check_size(opened, item)
                for piece in opened.pieces:
                    arrival.write(piece)
        except OtherVersion:
            # Whatever its time says: the same content is the same file.
            if item.digest is None:
                raise
            arrival.restart()
            with open_file(files, item.key) as opened:
                for piece in opened.pieces:
                    arrival.write(piece)
            if arrival.digest() != item.digest:
                raise
        if arrival.size != item.size:
            raise StorageError(f"{arrival.size:,} of its {item.size:,} bytes came")
        arrival.check(item.digest)


class _Done:
    """What is in the cache by now."""

    def __init__(self, plan: StagingPlan) -> None:
        self._plan, self._began = plan, time.monotonic()
        self._files = plan.files - len(plan.missing)
        self._there = plan.bytes - plan.missing_bytes
        self.fetched_files = self.fetched_bytes = 0

    def add(self, item: WantedFile, *, fetched: bool) -> None:
        """Count one that has come, fetched here or by another staging."""
        self._files += 1
        self._there += item.size
        if fetched:
            self.fetched_files += 1
            self.fetched_bytes += item.size

    def progress(self, failed: int = 0) -> Progress:
        """How far the staging is."""
        return Progress(
            self._files,
            self._plan.files,
            self._there,
            self._plan.bytes,
            self.fetched_bytes,
            failed,
            time.monotonic() - self._began,
        )


class _Arrival:
    """A file that is coming into the cache.

    Attributes:
        size: What has come of it [bytes].
    """

    def __init__(self, part: Path) -> None:
        self._part = part
        self.size = 0
        self._damaged = ""
        self._sha256 = hashlib.sha256()
        try:
            self._file = part.open("wb")
        except OSError as error:
            raise _CacheFails(error) from error

    def restart(self) -> None:
        """Forget what has come."""
        self.size, self._sha256 = 0, hashlib.sha256()
        try:
            self._file.seek(0)
            self._file.truncate()
        except OSError as error:
            raise _CacheFails(error) from error

    def write(self, piece: bytes) -> None:
        """Take what comes next."""
        self._sha256.update(piece)
        self.size += len(piece)
        try:
            self._file.write(piece)
        except OSError as error:
            raise _CacheFails(error) from error

    def digest(self) -> str:
        """Of what has come, "sha256:<hex>"."""
        return f"sha256:{self.sha256()}"

    def sha256(self) -> str:
        """Of what has come, in hex."""
        return self._sha256.hexdigest()

    def check(self, wanted: str | None) -> None:
        """Hold what has come against the digest that is known, and the checksums that it carries.

        Raises:
            StorageError: They do not fit; the way here may have damaged it.
            BadFile: They do not fit, and the same came before.
        """
        digest = self.digest()
        try:
            self._file.flush()
            fault = png_fault(self._part)
        except OSError as error:
            raise _CacheFails(error) from error
        if wanted not in (None, digest):
            fault = f"its content has {digest}, the dataset's {wanted}"
        if fault and digest == self._damaged:
            raise BadFile(f"is damaged: {fault}; put the whole file there")
        if fault:
            self._damaged = digest
            raise StorageError(f"came damaged: {fault}")

    def keep(self, target: Path) -> None:
        """Give it its name, once it is on the disk.

        Raises:
            OSError: The cache refuses.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        self._file.flush()
        os.fsync(self._file.fileno())  # a power cut must not leave a name without its bytes
        self._part.replace(target)

    def end(self) -> None:
        """Close it, and remove what did not get its name."""
        with suppress(OSError):  # what could not be written was said before
            self._file.close()
        self._part.unlink(missing_ok=True)


def _check_size(opened: OpenedFile, item: WantedFile) -> None:
    if opened.size != item.size:
        there = shown(opened.size, opened.version)
        raise OtherVersion(f"another version is there: {there}", item.key)


def _reason(error: FramesiftError, item: WantedFile) -> str:
    """Why a file could not be staged, and what to do; without the file's name."""
    reason = error.reason if isinstance(error, BadFile) else str(error)
    if isinstance(error, StorageError):
        reason = reason.removeprefix(f"{error.path}: ")
    if isinstance(error, OtherVersion):
        return (
            f"has changed since the dataset was made: {reason}; the dataset's has "
            f"{shown(item.size, item.version)}. Put that one back, or make a dataset of what is "
            "there now: framesift ingest, then framesift dataset create"
        )
    if isinstance(error, UnreadableFile):
        return (
            f"{reason}; is the source mounted? If the file is gone, make a dataset of what is "
            "there now: framesift ingest, then framesift dataset create"
        )
    return reason
