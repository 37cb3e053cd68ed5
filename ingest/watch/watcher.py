"""A watcher: changes are heard of, gathered, scanned, committed, and only then acknowledged.

    events -> places that changed -> a batch -> folders -> a scan of these -> commit -> acknowledge

Events are subscribed to first, then the whole source is listed, then batches follow. So a watcher
that was killed, or lost its events, misses nothing: whatever goes wrong, it begins like this again.
"""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from catalog.errors import CatalogBusy, CatalogDamaged, FramesiftError, InvalidInput, NotFound
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.store import CatalogStore
from ingest.scan import scan_record
from ingest.scan.engine import Engine
from ingest.scan.scan import Scan, ScanOptions
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.scan_lock import watch_lock
from ingest.watch.batch import WHOLE, Batch, belongs_to, folders_to_scan
from ingest.watch.events import Events, NoEvents

_LONGEST_WAIT_S = 60.0  # events answer sooner where a signal could not wake them
_BUSY_AGAIN_S = 1.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0


@dataclass(frozen=True)
class Batched:
    """Counts of one batch."""

    folders: int
    """Folders and single keys that were looked at; the whole source counts as one."""
    is_whole_source: bool
    counts: ScanCounts
    seconds: float
    """From the first change that was noticed to its commit [s]."""


@dataclass(frozen=True)
class WatchOptions:
    """Options of a watch."""

    scan: ScanOptions
    relist_s: float = 300.0
    """The whole source is listed so long after the last time [s]; never when 0."""


class _Stopped(Exception):
    """The watcher is to end while it lists the whole source."""


class Watcher:
    """Keeps the catalog of one source up to date until it is stopped."""

    def __init__(
        self,
        store: CatalogStore,
        records: RecordStore,
        source: Source,
        options: WatchOptions,
        engine: Engine,
        *,
        events: Callable[[], AbstractContextManager[Events]],
        stop: threading.Event,
        report: Callable[[Batched], None],
        warn: Callable[[str], None],
    ) -> None:
        """Prepare to watch.

        Args:
            events: Opens the source's events; opened again after they failed.
            warn: Called with a line on what failed and will be retried.
        """
        self.store, self.records, self.source, self.options = store, records, source, options
        self.engine, self._events, self._stop = engine, events, stop
        self._report, self._warn = report, warn
        self._number: int | None = None
        self._counts = ScanCounts()
        self._pause = _FIRST_PAUSE_S
        self._started = self._reported_busy = False

    def run(self) -> None:
        """Watch until ``stop`` is set; the batch at hand is finished, a listing of all is not.

        What cannot work from the start is raised. Later on a source, queue or catalog that fails
        is said, and tried again after a pause that grows to a minute.
        """
        try:
            while not self._stop.is_set():
                try:
                    self._watch()
                except (NotFound, CatalogDamaged):
                    raise
                except FramesiftError as error:
                    if not self._started:
                        raise
                    self._warn(f"{error}; again in {self._pause:g} s")
                    self._stop.wait(self._pause)
                    self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        except _Stopped:
            self._finish("done")
        except NotFound:
            raise  # the source is gone, and the records of its scans with it
        except BaseException as error:
            self._finish("failed", str(error) or type(error).__name__)
            raise
        else:
            self._finish("done")

    def _watch(self) -> None:
        with watch_lock(self.store, self.source) as still_held, self._events() as events:
            if isinstance(events, NoEvents) and not self.options.relist_s:
                raise InvalidInput(
                    f"nothing tells of changes of source {self.source.name}, and it is not to be "
                    "listed again: give --relist SECONDS, or --events"
                )
            if self._number is None:
                self._number = scan_record.begin(self.records, self.source, scan_record.WATCH)
            batch = Batch()
            batch.add([WHOLE], time.monotonic())
            listed = time.monotonic()
            while not self._stop.is_set():
                now = time.monotonic()
                relist = listed + self.options.relist_s if self.options.relist_s else float("inf")
                if now >= relist:
                    batch.add([WHOLE], now)
                if now < batch.due:
                    wait = min(batch.due - now, relist - now, _LONGEST_WAIT_S)
                    self._take_in(events, batch, wait)
                    continue
                still_held()
                if not self._scanned(batch, events):
                    self._wait_busy(events, batch)
                    continue
                events.acknowledge()
                if batch.is_whole_source:
                    listed = time.monotonic()
                batch, self._pause, self._reported_busy = Batch(), _FIRST_PAUSE_S, False

    def _take_in(self, events: Events, batch: Batch, wait: float) -> None:
        changes = events.poll(wait)
        if changes is None:
            return
        batch.add(changes.paths, time.monotonic(), changes.since)
        if not batch.paths:
            events.acknowledge()  # nothing of it waits for the catalog

    def _wait_busy(self, events: Events, batch: Batch) -> None:
        until = time.monotonic() + _BUSY_AGAIN_S
        while not self._stop.is_set() and (wait := until - time.monotonic()) > 0:
            if batch.full:
                self._stop.wait(wait)
            else:
                self._take_in(events, batch, min(wait, _LONGEST_WAIT_S))

    def _scanned(self, batch: Batch, events: Events) -> bool:
        """Scan what a batch names; False where another process holds the source or the catalog."""
        folders: list[str] = []
        counts, is_whole_source = ScanCounts(), batch.is_whole_source

        def check(_counts: ScanCounts) -> None:
            if is_whole_source and self._stop.is_set():
                raise _Stopped

        try:
            with Scan.started(
                self.store, self.records, self.source, self.options.scan, self._number, self._counts
            ) as scan:
                self._started, counts = True, scan.counts
                is_whole_source = is_whole_source or scan.rereads_all
                folders = folders_to_scan(batch.paths, scan.layout)
                skip = belongs_to(events.unfinished(), scan.layout)
                scan.run(self.engine, folders, check, skip)
        except CatalogBusy as error:
            if not self._reported_busy:
                self._warn(f"{error}; the changes wait")
            self._reported_busy = True
            return False
        finally:
            self._counts += counts
        seconds = time.monotonic() - batch.since
        if self._number is not None:
            scan_record.update(self.records, self._number, self._counts)
        self._report(Batched(len(folders), is_whole_source, counts, seconds))
        return True

    def _finish(self, state: str, error: str = "") -> None:
        if self._number is not None:
            scan_record.finish(self.records, self._number, state, self._counts, error)
