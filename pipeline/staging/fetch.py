"""Fetches a plan's files into the cache: each to a temporary path, checked, and then renamed."""

import errno
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import count
from pathlib import Path

from catalog.errors import BadFile, FramesiftError, OtherVersion, StorageError, UnreadableFile
from catalog.storage.file_version import version_text
from ingest.sources.opened_file import OpenedFile, open_file
from ingest.sources.source_files import SourceFiles
from pipeline.cache.aligned_buffer import Buffers
from pipeline.cache.checksums import Checksums
from pipeline.cache.md5.lanes import Md5Lanes
from pipeline.cache.running import REPORT_EVERY_S
from pipeline.cache.stager import Stager
from pipeline.cache.statistics import Counting, SourceCounts, counting
from pipeline.staging.abandoning_pool import AbandoningPool
from pipeline.staging.arrival import Arrival, CacheFails, arriving
from pipeline.staging.plan import OTHER_NAME, OpenSource, StagingPlan, WantedFile
from pipeline.staging.progress import Progress
from pipeline.staging.rate_limit import UNLIMITED, RateLimit

ATTEMPTS = 3
"""Tries of a file whose source fails; each try has its client's own retries within."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_RESUMED_BYTES = 64 * 2**20
"""A larger file goes on where its transfer broke off; a smaller one begins again [bytes]."""

_LOOK_AGAIN_S = 0.2
"""Interval between two looks for a file that another staging fetches [s]."""

_CHECKED_AT_ONCE = 36
"""Threads whose files have come: they wait until there are some for the lanes, or write."""

_WRITTEN_AT_ONCE = 8
"""Files of those that are written at once: the lanes let go of 32 together, and a disk that has all
of them to write keeps what else reads there, such as a store of this machine, waiting."""

_ENDS_WITHIN_S = 5.0
"""Longest wait of a staging that ends early for its running transfers [s]."""

_FAILURES_IN_A_ROW = 8
"""Files of one source that may fail by their source, one after another, before staging ends."""

_NO_NAMES = (errno.ENAMETOOLONG, errno.EILSEQ)
"""Errors of a file system over a name that it cannot have: most have 255 bytes between slashes."""


@dataclass(frozen=True)
class FailedFile:
    """A file that could not be staged."""

    origin: str
    """Where it should have come from."""
    reason: str
    of_source: bool = False
    """Whether its source fails, and not this file alone."""

    def __str__(self) -> str:
        return f"{self.origin}: {self.reason}"


@dataclass(frozen=True)
class Fetched:
    """The files that were fetched."""

    files: int
    """Files that this staging fetched; others that were missing came by another one."""
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
    limits: Callable[[str], RateLimit] = lambda _: UNLIMITED,
    workers: int = 4,
    progress: Callable[[Progress], None] = lambda _: None,
    failed: Callable[[FailedFile], None] = lambda _: None,
) -> Fetched:
    """Fetch every missing file of the plan, several at once; what another staging fetches comes.

    Args:
        workers: Files transferred at once.
        failed: Called for each file that cannot be had; the others go on.
    """
    with counting(stager.cache) as counts:
        fetch = _Fetch(plan, stager, checksums, sources, limits, counts, workers)
        return fetch.run(progress, failed)


class _Fetch:
    def __init__(
        self,
        plan: StagingPlan,
        stager: Stager,
        checksums: Checksums,
        sources: OpenSource,
        limits: Callable[[str], RateLimit],
        counts: Counting,
        workers: int,
    ) -> None:
        self._plan, self._stager = plan, stager
        self._sources, self._limits = sources, limits
        self._checksums, self._counts = checksums, counts
        self._transfers = threading.Semaphore(workers)
        self._writes = threading.Semaphore(_WRITTEN_AT_ONCE)
        self._threads = workers + _CHECKED_AT_ONCE
        self._buffers, self._lanes = Buffers(), Md5Lanes()
        self._numbers = count()
        self._stop = threading.Event()
        self._items = deque(plan.missing)
        self._waited: set[WantedFile] = set()
        self._failures: list[FailedFile] = []
        self._failed_bytes = 0
        self._in_a_row: Counter[str] = Counter()
        self._tally = _Tally(plan)

    def run(
        self, progress: Callable[[Progress], None], failed: Callable[[FailedFile], None]
    ) -> Fetched:
        for name in {item.source for item in self._items}:
            self._sources(name)
        progress(self._tally.progress())
        pool = AbandoningPool(self._fetch, self._threads, "stage")
        try:
            while self._items or pool.pending:
                while self._items and pool.pending < 2 * self._threads:
                    pool.submit(self._items.popleft())
                # Progress is reported while a large file comes, too.
                if ended := pool.result(REPORT_EVERY_S):
                    self._take(*ended, failed)
                progress(self._tally.progress(len(self._failures), self._failed_bytes))
        finally:
            self._stop.set()
            pool.end(_ENDS_WITHIN_S)
        return Fetched(self._tally.fetched_files, self._tally.fetched_bytes, self._failures)

    def _take(
        self, item: WantedFile, outcome: FailedFile | _Outcome, failed: Callable[[FailedFile], None]
    ) -> None:
        if isinstance(outcome, FailedFile):
            self._failures.append(outcome)
            self._failed_bytes += item.size
            self._counts.count(self._plan.label(item.source), SourceCounts(failed_files=1))
            failed(outcome)
            self._count(item, outcome)
        elif outcome is _Outcome.ELSEWHERE:
            self._waited.add(item)
            self._items.append(item)
        else:
            self._tally.add(item, fetched=outcome is _Outcome.FETCHED)
            self._in_a_row[item.source] = 0

    def _count(self, item: WantedFile, failure: FailedFile) -> None:
        """End the staging when a source fails for one file after another."""
        if failure.of_source:
            self._in_a_row[item.source] += 1
        if self._in_a_row[item.source] >= _FAILURES_IN_A_ROW:
            raise StorageError(
                f"source {item.source}: fails for one file after another, the last is {failure} "
                "(what has come stays in the cache: stage again once that is mended)",
                failure.origin,
            )

    def _fetch(self, item: WantedFile) -> FailedFile | _Outcome:
        """Have a file in the cache, or say why not, or that another staging fetches it just now."""
        if item in self._waited:
            self._stop.wait(_LOOK_AGAIN_S)
        try:
            return self._unless_claimed(item)
        except CacheFails as fails:
            if fails.error.errno in _NO_NAMES:
                reason = f"the cache cannot hold its name: {fails.error.strerror}; {OTHER_NAME}"
                return FailedFile(self._plan.origin(item), reason)
            target = self._plan.target(item)
            raise StorageError(
                f"{target}: {fails.error.strerror} (fetching {self._plan.origin(item)})",
                str(target),
            ) from fails.error
        except FramesiftError as error:
            of_source = isinstance(error, StorageError)
            return FailedFile(self._plan.origin(item), _reason(error, item), of_source)

    def _unless_claimed(self, item: WantedFile) -> _Outcome:
        entry = self._plan.entry(item)
        try:
            if not self._stager.claim(entry):
                return _Outcome.ELSEWHERE
        except OSError as error:
            raise CacheFails(error) from error
        try:
            target = self._plan.target(item)
            if self._plan.lies_at(target, item):
                return _Outcome.CAME
            seconds = self._until_it_comes(item, entry, target)
            self._counts.fetched(self._plan.label(item.source), item.size, seconds)
        finally:
            self._stager.release(entry)
        return _Outcome.FETCHED

    def _until_it_comes(self, item: WantedFile, entry: str, target: Path) -> float:
        """Fetch a file into the cache; how long its transfers took [s]."""
        temporary_path = self._stager.folder / f"{next(self._numbers)}.part"
        with arriving(temporary_path, item.size, self._buffers, self._lanes) as arrival:
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
            self._go_on()  # this thread may have been left behind
            try:
                self._checksums.record(entry, arrival.checksum, item.size)
                with self._writes:
                    arrival.commit(target)
            except OSError as error:
                raise CacheFails(error) from error
            return arrival.seconds

    def _attempt(self, item: WantedFile, arrival: Arrival) -> None:
        if not _RESUMED_BYTES <= arrival.size < item.size:
            arrival.restart()
        try:
            opened = self._transfer(item, item.version, arrival)
        except OtherVersion:
            # Whatever its time says: the same content is the same file.
            if item.digest is None:
                raise
            arrival.restart()
            opened = self._transfer(item, None, arrival)
            if arrival.digest() != item.digest:
                raise
        arrival.check(item.digest, opened.check_md5)

    def _transfer(self, item: WantedFile, version: str | None, arrival: Arrival) -> OpenedFile:
        files, limit = self._sources(item.source), self._limits(item.source)
        coming = item.size - arrival.size
        # Before its turn: files of other sources may come meanwhile.
        self._pause(limit.open(coming))
        with (
            self._transfers,
            self._lanes.coming(),
            arrival.transferring(),
            self._opened(files, item, version, arrival.size) as opened,
        ):
            _check_size(opened, item)
            arrival.take(limit.metered(opened, coming, self._pause))
        return opened

    @contextmanager
    def _opened(
        self, files: SourceFiles, item: WantedFile, version: str | None, start: int
    ) -> Iterator[OpenedFile]:
        """A file whose download stops when the staging ends."""
        self._go_on()
        with open_file(files, item.key, version, start) as opened:
            yield replace(opened, pieces=self._until_stopped(opened.pieces))

    def _until_stopped(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._go_on()
            yield piece

    def _go_on(self) -> None:
        """Go on only while the staging does.

        Raises:
            StorageError: It has ended.
        """
        if self._stop.is_set():
            raise StorageError("the staging has ended")

    def _pause(self, seconds: float) -> None:
        """Wait, at most until the staging ends."""
        if seconds:
            self._stop.wait(seconds)
        self._go_on()


class _Tally:
    """Tally of the files that are in the cache."""

    def __init__(self, plan: StagingPlan) -> None:
        self._plan, self._began = plan, time.monotonic()
        self._files = plan.files - len(plan.missing)
        self._present = self._files
        self._there = plan.bytes - plan.missing_bytes
        self.fetched_files = self.fetched_bytes = 0

    def add(self, item: WantedFile, *, fetched: bool) -> None:
        """Count one that has come, fetched here or by another staging."""
        self._files += 1
        self._there += item.size
        if fetched:
            self.fetched_files += 1
            self.fetched_bytes += item.size

    def progress(self, failed: int = 0, failed_bytes: int = 0) -> Progress:
        """Progress of the staging."""
        return Progress(
            self._files,
            self._plan.files,
            self._there,
            self._plan.bytes,
            self.fetched_bytes,
            failed,
            time.monotonic() - self._began,
            self._present,
            failed_bytes=failed_bytes,
        )


def _check_size(opened: OpenedFile, item: WantedFile) -> None:
    if opened.size != item.size:
        there = version_text(opened.size, opened.version)
        raise OtherVersion(f"another version is there: {there}", item.key)


def _reason(error: FramesiftError, item: WantedFile) -> str:
    """Why a file could not be staged, and what to do; without the file's name."""
    reason = error.reason if isinstance(error, BadFile) else str(error)
    if isinstance(error, StorageError):
        reason = reason.removeprefix(f"{error.path}: ")
    if isinstance(error, OtherVersion):
        return (
            f"has changed since the dataset was made: {reason}; the dataset's has "
            f"{version_text(item.size, item.version)}. Put that one back, or make a dataset of "
            "what is there now: framesift ingest, then framesift dataset create"
        )
    if isinstance(error, UnreadableFile):
        return (
            f"{reason}; is the source mounted? If the file is gone, make a dataset of what is "
            "there now: framesift ingest, then framesift dataset create"
        )
    return reason
