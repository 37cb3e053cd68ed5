"""Fetches what a job reads while it reads it: ahead of its readers, in their order.

What the cache has room for stays. A split that is larger goes through it as a window: what comes
next is fetched as room is made, and what all readers have read and need latest goes first, by the
order that they will read in (pipeline.staging.reading_order). Which entries are there decides
nothing but speed: a reader that meets a missing one says so, and it is fetched before all else.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from catalog.errors import CacheFull, FramesiftError, StagingCancelled
from pipeline.cache.checksums import Checksums
from pipeline.cache.reading import ALL, Readers, Reading
from pipeline.cache.stager import Stager
from pipeline.staging.fetch import FailedFile, fetch_files
from pipeline.staging.plan import OpenSource, StagingPlan, WantedFile
from pipeline.staging.progress import Progress
from pipeline.staging.rate_limit import UNLIMITED, RateLimit
from pipeline.staging.reading_order import NEVER, Positions, ReadingOrder

_AT_ONCE = 32
"""Frames fetched in one go: what a reader waits for comes after those at most."""

_MOST_FRAMES = 128
"""Frames whose space is reserved in one go: it may take a look at the whole cache."""

_FULL_FOR_S = 5.0
"""Shortest time for which a cache counts as full, unless its window frees files [s]."""

_REST = 10.0
"""Times that a look for room took which there was not, until the next one."""

_LOOKED_AT = 2_048
"""Positions that are looked at before readers are looked after again."""

_LOOK_S = 0.05
"""Interval between two looks at the readers' progress [s]."""

_COUNTED_S = 1.0
"""Interval at which progress is reported while no file arrives [s]."""

_NOT_OF_JOB = (
    "is none of the files that the job's staging fetches; name the split that has it (--split), or "
    "leave --split out"
)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
"""Pauses before files are fetched ahead again, after their source failed [s]."""


class Space(Protocol):
    """Reservation of cache space, as pipeline.cache.reservation has it."""

    def extend(self, size: int, files: int) -> None:
        """Reserve so much more [bytes].

        Raises:
            CacheFull: What could go does not suffice.
        """
        ...

    def arrived(self, size: int, files: int) -> None:
        """Release so much of it: it lies in the cache by now, or is not coming."""
        ...

    def evict(self, entries: Iterable[str]) -> int:
        """Remove entries, by their paths below the cache; those that others hold stay.

        Returns:
            What is free now [bytes].
        """
        ...


@dataclass(frozen=True)
class ConcurrentCallbacks:
    """Callbacks of a concurrent staging."""

    ready: Callable[[], None]
    """Called once readers may begin."""
    progress: Callable[[Progress], None]
    """Called with how much of the split lies in the cache."""
    failed: Callable[[FailedFile], None]
    """Called for each file that cannot be had; readers that need it get the error, too."""
    notice: Callable[[str], None]
    """Called with a line for people."""


@dataclass(frozen=True)
class _Frames:
    """Frames whose space is reserved."""

    position: int
    """Where the first of them is read."""
    rows: tuple[int, ...]
    """Of the split."""
    items: tuple[WantedFile, ...]
    """What is missing of them."""

    @property
    def bytes(self) -> int:
        """Their size [bytes]."""
        return sum(item.size for item in self.items)


class ConcurrentFetch:
    """Keeps a cache ahead of a job's readers."""

    def __init__(
        self,
        plan: StagingPlan,
        frames: Sequence[Sequence[WantedFile]],
        order: ReadingOrder,
        stager: Stager,
        checksums: Checksums,
        sources: OpenSource,
        space: Space,
        callbacks: ConcurrentCallbacks,
        *,
        limits: Callable[[str], RateLimit] = lambda _: UNLIMITED,
        workers: int = 4,
        manifest_rows: Positions | None = None,
    ) -> None:
        """Fetch nothing yet.

        Args:
            frames: Files of each of its frames.
            manifest_rows: Row of the manifest of each of them, ascending; None for all its rows.
        """
        self._manifest_rows = manifest_rows
        self._plan, self._frames, self._order = plan, frames, order
        self._stager, self._checksums, self._sources = stager, checksums, sources
        self._space, self._callbacks = space, callbacks
        self._limits, self._workers = limits, workers
        self._readers = Readers(stager.folder)
        self._read, self._waits = [0] * order.readers, set[str]()
        self._told: tuple[object, ...] = ()
        self._low = self._head = order.begin
        missing = set(plan.missing)
        self._held = np.array([missing.isdisjoint(files) for files in frames], bool)
        self._entries: dict[str, WantedFile] = {}
        self._failed: dict[WantedFile, FailedFile] = {}
        self._said_failed: set[str] = set()
        self._coming: deque[_Frames] = deque()
        self._full: CacheFull | None = None
        self._full_s, self._full_for_s = 0.0, _FULL_FOR_S
        self._reported_full, self._most_frames = False, _MOST_FRAMES
        self._pause_s = _FIRST_PAUSE_S
        self._there = plan.files - len(plan.missing), plan.bytes - plan.missing_bytes
        self._fetched_bytes, self._present = 0, self._there[0]
        self._counted_s = 0.0
        self._seconds = 0.0

    def run(self, stop: threading.Event, start_after: float) -> None:
        """Fetch until stopped.

        Args:
            stop: Set when the job has ended.
            start_after: Share of the split, 0 to 1, that must be there before readers may begin;
                what the cache has room for suffices.
        """
        ready = start_after <= 0
        self._count(0, 0)
        if ready:
            self._callbacks.ready()
        while not stop.is_set():
            self._look()
            if self._fetch_awaited():
                continue
            try:
                went_on = self._fetch_ahead()
            except FramesiftError as error:
                if not ready or isinstance(error, StagingCancelled):
                    raise
                # Nobody waits for these yet: the source may be well again by then.
                self._callbacks.notice(f"{error}; tried again in {self._pause_s:.0f} s")
                self._pause(stop)
                continue
            share = (self._next - self._order.begin) / len(self._frames)
            if not ready and (share >= start_after or not went_on):
                ready = True
                self._callbacks.ready()
            if not went_on:
                stop.wait(_LOOK_S)
            if time.monotonic() - self._counted_s >= _COUNTED_S:
                self._count(0, 0)  # in which it hears whether it was cancelled

    @property
    def _next(self) -> int:
        """The first position that has not been fetched."""
        return self._coming[0].position if self._coming else self._head

    def _pause(self, stop: threading.Event) -> None:
        """Wait until what failed may be tried again, and serve readers meanwhile."""
        waited = 0.0
        while waited < self._pause_s and not stop.wait(_LOOK_S):
            waited += _LOOK_S
            self._look()
            self._fetch_awaited()
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)

    def _look(self) -> None:
        """Learn how far the readers are."""
        readings = self._readers.look()
        self._waits = {entry for reading in readings for entry in reading.waits}
        own = [reading for reading in readings if not reading.process]
        if not own:
            return
        first = own[0]
        if first.order != self._told:
            self._told = first.order
            self._begin_at(first)
        processes: dict[int, list[int]] = {}
        for reading in readings:
            if reading.process and reading.order == self._told:
                processes.setdefault(reading.reader, []).append(reading.read)
        for reading in own:
            if reading.reader < len(self._read) and reading.order == self._told:
                # Fewer are those of a process that read for it before it began anew.
                reads = processes.get(reading.reader, ())
                reads = [read for read in reads if read >= reading.read]
                self._read[reading.reader] = min(reads, default=reading.read)
        here = self._order.here
        low = min(
            self._order.position(reader, read)
            for reader, read in enumerate(self._read)
            if here is None or reader in here
        )
        self._low = min(low, self._order.last)
        self._head = max(self._head, self._low)

    def _begin_at(self, reading: Reading) -> None:
        """Go on where the readers say that they do, as a job does that was resumed."""
        rows = self._rows_of_split(reading.rows) if reading.rows else None
        if reading.rows and rows is None:  # it reads what is not fetched, and is told so
            return
        self._order = replace(
            self._order,
            begin=reading.begin,
            end=reading.end,
            batch_size=reading.batch_size,
            readers=reading.readers,
            seed=self._order.seed if reading.seed is None else reading.seed,
            frames=len(self._frames if rows is None else rows),
            rows=rows,
            _epochs={},
        )
        self._let_go()
        self._read = [0] * reading.readers
        self._low = self._head = reading.begin

    def _rows_of_split(self, name: str) -> Positions | None:
        """The rows of the split that readers read; None where some are of none of its frames."""
        try:
            rows = np.frombuffer(self._readers.rows(name), np.int64)
        except OSError:
            return None
        of_split = self._manifest_rows
        if of_split is None:
            of_split = np.arange(len(self._frames))
        positions = np.minimum(np.searchsorted(of_split, rows), len(of_split) - 1)
        return positions if len(rows) and (of_split[positions] == rows).all() else None

    def _let_go(self) -> None:
        """Release the space that was reserved for what has not come."""
        for frames in self._coming:
            self._space.arrived(frames.bytes, len(frames.items))
        self._coming.clear()

    def _fetch_awaited(self) -> bool:
        """Fetch what readers wait for; False where they wait for nothing that is missing."""
        awaited = []
        for entry in self._waits - self._said_failed:
            item = self._item(entry)
            if item is None:
                self._readers.fail(entry, entry, _NOT_OF_JOB)
                self._said_failed.add(entry)
            elif not self._plan.is_there(item):
                awaited.append(item)
        if not awaited:
            return False
        problem: FramesiftError | None = None
        try:
            self._reserve_now(awaited)
            try:
                self._fetch(awaited)
            finally:
                self._space.arrived(sum(item.size for item in awaited), len(awaited))
        except StagingCancelled:
            raise
        except FramesiftError as error:
            problem = error
        for item in awaited:
            failure = self._failed.get(item)
            if self._plan.is_there(item) or not (failure or problem):
                continue
            reason = failure.reason if failure else str(problem)
            self._readers.fail(self._plan.entry(item), self._plan.origin(item), reason)
            self._said_failed.add(self._plan.entry(item))
        return True

    def _item(self, entry: str) -> WantedFile | None:
        if not self._entries:
            self._entries = {
                self._plan.entry(item): item for files in self._frames for item in files
            }
        return self._entries.get(entry)

    def _fetch_ahead(self) -> bool:
        """Fetch what is read next; False where all of it is there, or there is no room."""
        if min(self._read) >= ALL:
            return False
        if not self._coming and not self._reserve_ahead():
            return False
        if not self._coming:
            return True  # what was looked at is there already
        frames = self._coming.popleft()
        try:
            self._fetch(frames.items)
        except FramesiftError:
            self._let_go()
            self._head = min(self._head, frames.position)
            raise
        finally:
            self._space.arrived(frames.bytes, len(frames.items))
        for row in frames.rows:
            self._held[row] = all(self._plan.is_there(file) for file in self._frames[row])
        self._pause_s = _FIRST_PAUSE_S
        return True

    def _reserve_ahead(self) -> bool:
        """Reserve space for what is read next; False where all of it is there, or there is none."""
        # A whole epoch ahead is all there is; what others have evicted meanwhile comes once more.
        limit = min(self._order.last, self._low + self._order.frames, self._head + _LOOKED_AT)
        began = head = self._head
        coming = list[tuple[int, int, list[WantedFile]]]()
        most = _MOST_FRAMES if self._is_full else self._most_frames
        while head < limit and len(coming) < most:
            position, head = head, head + 1
            if not self._order.is_here(position) or self._is_read(position):
                continue
            row = self._order.row(position)
            missing = [file for file in self._frames[row] if not self._plan.is_there(file)]
            missing = [file for file in missing if file not in self._failed]
            if missing:
                coming.append((position, row, missing))
            else:
                self._held[row] = True
        self._head = head
        while coming:
            items = [item for _, _, missing in coming for item in missing]
            try:
                self._reserve(items, coming[-1][0], is_last=len(coming) == 1)
                break
            except CacheFull as full:
                self._report_full(full)
                # Fewer may have room; what they leave out comes next.
                half = len(coming) // 2
                self._head, coming = min(self._head, coming[half][0]), coming[:half]
                self._most_frames = max(1, half)
        for start in range(0, len(coming), _AT_ONCE):
            batch = coming[start : start + _AT_ONCE]
            items = [item for _, _, missing in batch for item in missing]
            rows = tuple(row for _, row, _ in batch)
            self._coming.append(_Frames(batch[0][0], rows, tuple(items)))
        return bool(coming) or self._head > began

    def _is_read(self, position: int) -> bool:
        reader, index = self._order.turn(position)
        return index < self._read[reader]

    def _report_full(self, full: CacheFull) -> None:
        """Report once that the cache is smaller than the split."""
        if not self._reported_full:
            self._reported_full = True
            self._callbacks.notice(
                f"the cache holds a part of the split at a time ({full}): what was read makes "
                "room for what comes next"
            )

    @property
    def _is_full(self) -> bool:
        """True where the cache had no room for a single frame a moment ago."""
        return self._full is not None and time.monotonic() - self._full_s < self._full_for_s

    def _reserve(self, items: Sequence[WantedFile], position: int, *, is_last: bool) -> None:
        """Reserve space for what is read next: free space, and then that of what is read later.

        Args:
            position: Where the last of them is read.
            is_last: Whether fewer will not be asked for.

        Raises:
            CacheFull: There is none.
        """
        need = sum(item.size for item in items)
        if not self._is_full:
            began = time.monotonic()
            try:
                self._space.extend(need, len(items))
            except CacheFull as full:
                if not is_last:
                    raise
                self._full, self._full_s = full, time.monotonic()
                self._full_for_s = max(_FULL_FOR_S, _REST * (self._full_s - began))
            else:
                self._most_frames = min(_MOST_FRAMES, 2 * self._most_frames)
                return
        # One in, one out: to look for room takes a look at the whole cache.
        going = self._latest(need, len(items), position)
        if going is None:
            assert self._full is not None
            raise self._full
        self._evict(going)
        self._space.extend(need, len(items))

    def _reserve_now(self, items: Sequence[WantedFile]) -> None:
        """Reserve space for what readers wait for, whatever is evicted for it."""
        need, is_known = sum(item.size for item in items), False
        while True:
            try:
                self._space.extend(need, len(items))
            except CacheFull:
                going = self._latest(need, len(items), None)
                if going is None and is_known:
                    raise
                if going is None:  # another job on the same frames may have brought some
                    is_known = True
                    self._held[:] = [
                        all(self._plan.is_there(file) for file in files) for files in self._frames
                    ]
                self._evict(going or [])
            else:
                return

    def _latest(self, need: int, files: int, position: int | None) -> list[int] | None:
        """Rows whose files may go, those that are read latest first; None where too few may."""
        rows = np.flatnonzero(self._held)
        positions = self._order.next_readings(rows, self._low, self._read)
        going, freed, count = list[int](), 0, 0
        for index in np.argsort(-positions, kind="stable"):
            if freed >= need and count >= files:
                return going
            if position is not None and positions[index] <= position:
                return None
            row = int(rows[index])
            entries = {self._plan.entry(file) for file in self._frames[row]}
            if entries.isdisjoint(self._waits):
                going.append(row)
                freed += sum(file.size for file in self._frames[row])
                count += len(self._frames[row])
        # A reader that waits is served by whatever goes.
        return going if (freed >= need and count >= files) or (position is None and going) else None

    def _evict(self, rows: Sequence[int]) -> None:
        """Remove files of frames; those that were fetched ahead come again in their turn."""
        readings = self._order.next_readings(np.array(rows, np.int64), self._low, self._read)
        self._head = min(self._head, int(readings.min(initial=NEVER)))
        files = [file for row in rows for file in self._frames[row] if self._plan.is_there(file)]
        self._space.evict([self._plan.entry(file) for file in files])
        self._held[list(rows)] = False
        evicted = [file for file in files if not self._plan.is_there(file)]
        self._count(-len(evicted), -sum(file.size for file in evicted))

    def _fetch(self, items: Sequence[WantedFile]) -> None:
        """Fetch files; those that cannot be had are noted."""
        plan = replace(self._plan, missing=tuple(dict.fromkeys(items)))
        failures: dict[str, FailedFile] = {}

        def failed(failure: FailedFile) -> None:
            failures[failure.origin] = failure
            self._callbacks.failed(failure)

        began_s = time.monotonic()
        fetched = fetch_files(
            plan,
            self._stager,
            self._checksums,
            self._sources,
            limits=self._limits,
            workers=self._workers,
            failed=failed,
        )
        self._seconds += time.monotonic() - began_s
        self._fetched_bytes += fetched.bytes
        arrived = [item for item in plan.missing if self._plan.origin(item) not in failures]
        for item in plan.missing:
            failure = failures.get(self._plan.origin(item))
            if failure:
                self._failed[item] = failure
            else:
                self._failed.pop(item, None)
        self._count(len(arrived), sum(item.size for item in arrived))

    def _count(self, files: int, size: int) -> None:
        self._there = self._there[0] + files, self._there[1] + size
        self._counted_s = time.monotonic()
        self._callbacks.progress(
            Progress(
                self._there[0],
                self._plan.files,
                self._there[1],
                self._plan.bytes,
                self._fetched_bytes,
                len(self._failed),
                self._seconds,
                self._present,
                failed_bytes=sum(item.size for item in self._failed),
            )
        )
