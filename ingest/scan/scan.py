"""A scan: every file of a source listed, every label counted, all of it registered."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from catalog.errors import FramesiftError
from catalog.frames import frames as catalog_frames
from catalog.frames.frames import SourceNames
from catalog.records.scans import recorded_problems, set_class_list
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.records.tag_definitions import define_class_tags
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from catalog.values import File, Problem
from ingest.labels.class_list import ClassList
from ingest.layouts.layout import Layout
from ingest.scan import scan_record
from ingest.scan.count_unit import UnitSource
from ingest.scan.engine import Counted, CountTask, Engine
from ingest.scan.find_duplicates import mark_duplicates
from ingest.scan.listing_diff import ScannedFile, compare
from ingest.scan.portions import Portion, Portions, usable
from ingest.scan.removal_guard import MOST_REMOVED, RemovalGuard
from ingest.scan.scan_commits import ScanCommits
from ingest.scan.scan_counts import Progress, ScanCounts
from ingest.scan.scan_lock import scan_lock
from ingest.scan.segment_tables import SegmentTables
from ingest.scan.source_layout import (
    check_still_fits,
    classes_of_source,
    layout_of_source,
    scanned_layout,
)
from ingest.scan.thread_engine import ThreadEngine
from ingest.sources.exclude import Excluded
from ingest.sources.partial import FolderSelection
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import SourceOptions

_RECORD_EVERY_S = 2.0
_NOTHING = ScanCounts()
_FEW_FOLDERS = 50  # of so many, the standing problems are asked for one by one


def _skip_none(_key: str) -> bool:
    return False


RecallFiles = Callable[[SourceFiles, Sequence[File], Callable[[int], None]], Mapping[str, str]]
"""Has an archive bring back files, and waits; calls back with how many are still to come.

The cause, by key, of those that it did not.
"""


@dataclass(frozen=True)
class ScanResult:
    """A finished scan: its number and counts."""

    scan: int
    counts: ScanCounts


@dataclass(frozen=True)
class ScanOptions:
    """Options of a scan."""

    class_list: Path | None = None
    """A class list to use instead of the source's own."""
    full: bool = False
    """Count every label again; a class list that has changed does the same."""
    check_images: bool = True
    """Open each camera image to see that it fits its label. Without, only labels are opened."""
    index_folder: Path | None = None
    selection: FolderSelection | None = None
    """Folders to look at, unless the class list or the layout has changed; None for all."""
    recall: RecallFiles | None = None
    """Has an archive bring back the labels that are to be counted; None leaves them to be read
    where they lie.
    """
    max_removed: float = MOST_REMOVED
    """Share of the source's catalogued files that may leave the catalog (0 to 1); where more are
    gone none does. Up to ALWAYS_REMOVED files may go in any case.
    """


def scan_source(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    options: ScanOptions | None = None,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> ScanResult:
    """Catalog every file of a source and count the pixels of every label.

    A later scan reads only what is new or has changed. Bad files are recorded and skipped, and
    tried again when they change. Commits every BATCH_FRAMES frames: when it is killed, what was
    committed stays, and the next scan goes on from there and ends in the same state.

    Args:
        engine: Where labels are counted; two threads when None.
        progress: Called after every file listed and every portion, with the counts so far.
    """
    options = options or ScanOptions()
    with Scan.started(store, records, source, options) as scan:
        if options.selection is None or scan.rereads_all:
            scan.run(engine or ThreadEngine(2), progress=progress)
        else:
            portion = options.selection.with_partners(scan.layout.folders_around)
            scan.run(engine or ThreadEngine(2), portion.folders, progress, portion.leaves_out)
    return ScanResult(scan.number, scan.counts)


class Scan:
    """A started scan: the source is locked and open, its classes are tags."""

    def __init__(
        self,
        store: CatalogStore,
        records: RecordStore,
        source: Source,
        options: ScanOptions,
        files: SourceFiles,
        number: int,
        layout: Layout,
        class_list: ClassList,
        before: ScanCounts,
        segments: SegmentTables,
        segment_files: Sequence[ScannedFile],
        *,
        rereads_all: bool,
    ) -> None:
        """Used by ``started``."""
        self.store, self.records, self.source, self.options = store, records, source, options
        self.files, self.number, self.layout, self.class_list = files, number, layout, class_list
        self.before, self.rereads_all = before, rereads_all
        self._segments, self._segment_files = segments, segment_files
        self.names = source_names(source, files)
        self.counts = ScanCounts()
        self.committed = False
        self._began = time.monotonic()
        self._recorded = self._began

    @classmethod
    @contextmanager
    def started(
        cls,
        store: CatalogStore,
        records: RecordStore,
        source: Source,
        options: ScanOptions,
        number: int | None = None,
        before: ScanCounts = _NOTHING,
    ) -> Iterator["Scan"]:
        """A scan for the block; recorded as done at its end, as failed when it raises.

        Args:
            number: A scan's record to use instead of a new one; its end is then the caller's.
            before: What that record has counted already.
        """
        # Two scans of one source would each take the other's files for gone.
        with scan_lock(store, source):
            files = open_recorded(source, options.index_folder)
            current = scan_record.current_source(records, source)
            layout = layout_of_source(records, current, files)
            check_still_fits(current, files, layout)
            class_list = classes_of_source(records, source, files, layout, options.class_list)
            add_class_tags(store, class_list.tags)
            define_class_tags(records, dict(zip(class_list.tags, class_list.classes, strict=True)))
            counted_with = ClassList.from_json(current.class_list) if current.class_list else None
            changed = counted_with is not None and (
                counted_with.meaning != class_list.meaning
                or scanned_layout(current).naming != layout.naming
            )
            segments = SegmentTables(files, layout)
            segment_files = _compared(store, segments, source_names(source, files))
            # Labels of one that is new were never counted.
            other_segments = any(file.change in ("changed", "removed") for file in segment_files)
            if changed or other_segments:
                options = replace(options, full=True)
            if not changed and (
                counted_with != class_list or current.scanned_layout != layout.document
            ):
                set_class_list(records, source.id, class_list.to_json(), layout.document)
            own_record = number is None
            if number is None:
                number = scan_record.begin(records, source)
            scan = cls(
                store, records, source, options, files, number, layout, class_list, before,
                segments, segment_files, rereads_all=changed or other_segments,
            )  # fmt: skip
            try:
                yield scan
            except BaseException as error:
                if own_record:
                    scan_record.finish(records, number, "failed", scan.counts, _reason(error))
                raise
            if changed and scan.committed:
                # Only now, so that a scan that is killed before is followed by another full one.
                set_class_list(records, source.id, class_list.to_json(), layout.document)
            if own_record:
                scan_record.finish(records, number, "done", scan.counts)

    def run(
        self,
        engine: Engine,
        folders: Sequence[str] = ("",),
        progress: Progress | None = None,
        skip: Callable[[str], bool] = _skip_none,
    ) -> None:
        """Count everything that is new or has changed, drop what was removed, and commit.

        Args:
            folders: Look only at these folders (each ends in a slash) and single keys, in order,
                none below another; at everything where the class list or the layout has changed.
            skip: Files to leave as the catalog has them, such as those still being written.
        """
        with self.portions(engine.frames_each, folders, progress, skip) as portions:
            self.commit(engine.count(self.task(), portions), progress)

    def commit(self, counted: Iterable[Counted], progress: Progress | None = None) -> None:
        """Commit portions that were counted."""
        commits = ScanCommits(
            self.store,
            self.records,
            self.names,
            self.class_list,
            self.layout,
            source_id=self.source.id,
            scan=self.number,
            counts=self.counts,
        )
        for item in counted:
            commits.add(item)
            self._report(progress)
        commits.commit()
        pair = self.names.cluster, self.names.datasource
        opened = {pair: self.files}
        if mark_duplicates(self.store, self.records, opened, self.number, every=self.options.full):
            self.counts.commits += 1
        self.committed = True
        self._report(progress)

    @contextmanager
    def portions(
        self,
        frames_each: int,
        folders: Sequence[str],
        progress: Progress | None,
        skip: Callable[[str], bool] = _skip_none,
    ) -> Iterator[Iterator[Portion]]:
        """The portions to do, for the block; see run."""
        folders = ("",) if self.rereads_all else tuple(folders)
        below = folders if len(folders) <= _FEW_FOLDERS else ("",)
        excluded = Excluded(SourceOptions.from_json(self.source.options).exclude)
        guard = RemovalGuard(
            self.options.max_removed, self._catalogued, self.source.name, meant=excluded
        )
        portions = Portions(
            self.counts,
            self.layout,
            frames_each=frames_each,
            files_each=4 * frames_each,
            listed=partial(self._report, progress),
            known_problems=[
                problem
                for problem in recorded_problems(
                    self.records, source_id=self.source.id, below=below
                )
                if any(_is_below(problem.key, folder) for folder in folders)
                and not skip(problem.key)
            ],
            full=self.options.full,
            check_images=self.options.check_images,
            recall=partial(self._recall, progress),
            guard=guard,
            written_last=[file for file in self._segment_files if file.change != "removed"],
        )
        with ExitStack() as stack:
            cursor = stack.enter_context(self.store.reading_files())
            if folders == ("",):
                portions.listing_problems += self.files.problems()
                expected = catalog_frames.count_files(cursor, self.names)
                stack.enter_context(self._expecting(expected))

            def compared(folder: str) -> Iterator[ScannedFile]:
                unlisted: list[str] = []

                def unreadable(key: str, reason: str) -> None:
                    unlisted.append(key)
                    portions.listing_problems.append(_unlisted(key, reason))

                listed = self.files.list(folder, unreadable)
                listed = usable(listed, self.names, portions.listing_problems)
                known = catalog_frames.known_files(cursor, self.names, folder)
                return compare(
                    (file for file in listed if not skip(file.key)),
                    (file for file in known if not skip(file.key)),
                    self.layout.parse,
                    lambda key: any(_is_below(key, below) for below in unlisted),
                )

            yield portions.cut(chain.from_iterable(map(compared, folders)))
        guard.check()

    def _recall(self, progress: Progress | None, labels: Sequence[File]) -> Mapping[str, str]:
        if self.options.recall is None:
            return {}

        def waiting(files: int) -> None:
            self.counts.recalling = files
            self._report(progress)

        causes = self.options.recall(self.files, labels, waiting)
        waiting(0)
        return causes

    def _catalogued(self) -> int:
        with self.store.reading() as cursor:
            return catalog_frames.count_files(cursor, self.names)

    @contextmanager
    def _expecting(self, catalogued: int) -> Iterator[None]:
        """Estimate how many files there are: as many as last time, or by a listing of its own."""
        if catalogued:
            self.counts.expected_files = catalogued
            yield
            return
        stop = threading.Event()

        def list_ahead() -> None:
            listed = 0
            try:
                for _ in self.files.list("", lambda _key, _reason: None):
                    listed += 1
                    if stop.is_set():
                        return
            except FramesiftError:  # the scan's own listing meets it, too
                return
            self.counts.expected_files = listed

        thread = threading.Thread(target=list_ahead, name="expected-files", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def task(self) -> CountTask:
        """The task that an engine needs to count this scan's portions."""
        source = UnitSource(
            self.source.uri, SourceOptions.from_json(self.source.options), self.class_list
        )
        return CountTask(
            source, self.files, self.class_list, self.options.check_images, self._segments
        )

    def _report(self, progress: Progress | None) -> None:
        now = time.monotonic()
        self.counts.seconds = now - self._began
        if now - self._recorded > _RECORD_EVERY_S:
            self._recorded = now
            scan_record.update(self.records, self.number, self.before + self.counts)
        if progress is not None:
            progress(self.counts)


def source_names(source: Source, files: SourceFiles) -> SourceNames:
    """The names of a source's files in the catalog."""
    return SourceNames(source.platform, source.cluster, source.datasource, files.root, source.site)


def _compared(
    store: CatalogStore, segments: SegmentTables, names: SourceNames
) -> list[ScannedFile]:
    """The files that name the labels' segments, compared with the catalogued ones."""
    if segments.below is None:
        return []
    with store.reading_files() as cursor:
        return segments.compared(catalog_frames.known_files(cursor, names, segments.below))


def _unlisted(key: str, reason: str) -> Problem:
    printable = key.encode(errors="backslashreplace").decode()
    return Problem(
        "unreadable",
        printable,
        f"cannot be listed: {reason}; what is catalogued of it stays; give permission, or add the "
        "source with --exclude",
    )


def _is_below(key: str, folder: str) -> bool:
    return key == folder or (key.startswith(folder) and folder[-1:] in ("", "/"))


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, FramesiftError) else f"{type(error).__name__}: {error}"
