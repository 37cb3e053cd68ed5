"""A run of an extractor over the catalogued frames of a source."""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

from catalog.errors import BadFile, FramesiftError, InvalidInput, UnreadableFile
from catalog.records.tables import Source
from catalog.store import CatalogStore
from catalog.tags import extractions
from catalog.tags.extractions import CataloguedFrame, Extracted, Extraction
from catalog.tags.families import table_of
from catalog.values import make_fkey
from ingest.extractors.base import Extractor
from ingest.extractors.frame_sources import FrameSources
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import SourceFiles

BATCH_FRAMES = 2_000
"""Frames of one commit. A killed run loses at most so much work, or what BATCH_S took."""

BATCH_S = 30.0
"""Longest time between two commits [s], if a frame was read meanwhile."""

_INTEGER_BITS = {"INTEGER": 31, "BIGINT": 63}


@dataclass
class ExtractCounts:
    """Counts of a run so far."""

    frames: int = 0
    """Labelled frames of the source."""
    without_file: int = 0
    """Those that lack the file that the extractor reads."""
    to_read: int = 0
    """Frames that this run is to read; the others were done before."""
    read: int = 0
    tagged: int = 0
    """Frames read that got at least one value."""
    bad_files: int = 0
    seconds: float = 0.0
    """Time since the run began [s]."""


Progress = Callable[[ExtractCounts], None]


def extraction_of(
    source: Source,
    extractor: Extractor,
    other_sources: Iterable[Source] = (),
    tags: Collection[str] = (),
) -> Extraction:
    """The extraction that an extractor writes for a source.

    Args:
        other_sources: Those of the data set, where the extractor's file is looked for as well.
        tags: Those of its tags that are wanted; all where empty.
    """
    columns = extractor.columns
    selected = {tag: kind for tag, kind in columns.items() if not tags or tag in tags}
    return Extraction(
        cluster=source.cluster,
        datasource=source.datasource,
        family=extractor.family,
        columns=selected,
        reads=extractor.reads,
        version=extractor.version,
        other_sources=tuple((other.cluster, other.datasource) for other in other_sources),
        has_all_columns=len(selected) == len(columns),
    )


def run_extractor(
    store: CatalogStore,
    source: Source,
    extractor: Extractor,
    *,
    full: bool = False,
    workers: int = 2,
    open_files: Callable[[Source], SourceFiles] = open_recorded,
    other_sources: Sequence[Source] = (),
    tags: Collection[str] = (),
    progress: Progress | None = None,
    only: Container[str] | None = None,
    goes_on: Callable[[], bool] | None = None,
) -> ExtractCounts:
    """Read every frame that is new or changed since the extractor's last run, and keep its tags.

    A bad file is recorded with its reason, passed over, and tried again when it changes; one that
    could not be read is tried again by the next run. Commits every BATCH_FRAMES frames or BATCH_S
    seconds: when it is killed, what was committed stays, and the next run continues there.

    Args:
        full: Read every frame, also those done before.
        workers: Frames read at once, by threads.
        progress: Called after every frame with the counts so far.
        only: fkeys of the frames to read, of those that would be read; all of them when None.
        goes_on: Asked after every frame; where it says no, the run ends with what was read.

    Raises:
        InvalidInput: The extractor's tags or pattern cannot be used, it gives a tag that it does
            not name, or there are no workers.
    """
    if workers < 1:
        raise InvalidInput(f"workers: got {workers}, expected at least 1")
    extraction = extraction_of(source, extractor, other_sources, tags)
    lock = f"extract-{source.id}-{extractor.family}"
    work = f"source {source.name} is being read for tag family {extractor.family}"
    table_of(extractor.family)
    with store.lock(lock, work, wait_s=0.0):
        extractions.begin(store, extraction)
        opened = _Opened(source, other_sources, open_files)
        run = _Run(store, extraction, extractor, opened, progress)
        run.run(full, workers, only, goes_on)
    return run.counts


class _Opened:
    """The sources of a data set, opened where a frame's file lies in one."""

    def __init__(
        self,
        own: Source,
        other_sources: Iterable[Source],
        open_files: Callable[[Source], SourceFiles],
    ) -> None:
        self._sources = {make_fkey(s.cluster, s.datasource, ""): s for s in (*other_sources, own)}
        self._own, self._open = make_fkey(own.cluster, own.datasource, ""), open_files
        self._files: dict[str, SourceFiles] = {}

    def files_for(self, frame: CataloguedFrame) -> FrameSources:
        """The files that the frame's extractor reads from."""
        return FrameSources(self._opened(self._own), self._opened(frame.file_source), frame)

    def _opened(self, prefix: str) -> SourceFiles:
        if prefix not in self._files:
            self._files[prefix] = self._open(self._sources[prefix])
        return self._files[prefix]


class _Run:
    """A running extraction: a batch fills and is committed."""

    def __init__(
        self,
        store: CatalogStore,
        extraction: Extraction,
        extractor: Extractor,
        opened: _Opened,
        progress: Progress | None,
    ) -> None:
        self.store, self.extraction, self.extractor = store, extraction, extractor
        self.opened, self.progress = opened, progress
        self.counts = ExtractCounts()
        self.done: list[Extracted] = []
        self.began = self.committed = time.monotonic()

    def run(
        self,
        full: bool,
        workers: int,
        only: Container[str] | None,
        goes_on: Callable[[], bool] | None,
    ) -> None:
        """Read what is to be read."""
        covered = extractions.coverage(self.store, self.extraction, full=full)
        self.counts.frames, self.counts.to_read = covered.frames, covered.pending
        self.counts.without_file = covered.frames - covered.with_file
        frames = extractions.pending_frames(self.store, self.extraction, full=full)
        if only is not None:
            frames = (frame for frame in frames if frame.fkey in only)
        with ThreadPoolExecutor(workers, thread_name_prefix="extract") as pool:
            # Opened here and not in threads.
            due = ((self.opened.files_for(frame), frame) for frame in frames)
            for item in _in_order(pool, 4 * workers, self._read, due):
                self._add(item)
                late = time.monotonic() - self.committed > BATCH_S
                if len(self.done) >= BATCH_FRAMES or late:
                    self._commit()
                if goes_on is not None and not goes_on():
                    break
        self._commit()

    def _read(self, due: tuple[FrameSources, CataloguedFrame]) -> Extracted:
        files, frame = due
        try:
            return self._extracted(files, frame)
        except BadFile as error:
            other = f"{error.file}: " if error.file not in ("", frame.file) else ""
            again = isinstance(error, UnreadableFile) or files.read_otherwise()
            return Extracted(frame, {}, other + error.reason, is_unreadable=again)

    def _extracted(self, files: SourceFiles, frame: CataloguedFrame) -> Extracted:
        """The frame's tags.

        Raises:
            BadFile: Its file cannot be used.
        """
        try:
            values = self.extractor.extract(files, frame) or {}
        except FramesiftError:
            raise
        except Exception as error:  # a user's own class: one frame must not end the run
            raise BadFile(f"{type(error).__name__}: {' '.join(str(error).split())}") from error
        checked = _checked(frame, values, self.extractor)
        chosen = {t: v for t, v in checked.values.items() if t in self.extraction.columns}
        return replace(checked, values=chosen)

    def _add(self, item: Extracted) -> None:
        self.done.append(item)
        self.counts.read += 1
        self.counts.bad_files += item.reason is not None
        self.counts.tagged += any(value is not None for value in item.values.values())
        self.counts.seconds = time.monotonic() - self.began
        if self.progress is not None:
            self.progress(self.counts)

    def _commit(self) -> None:
        if self.done:
            extractions.commit(self.store, self.extraction, self.done)
        self.done, self.committed = [], time.monotonic()
        self.counts.seconds = time.monotonic() - self.began


def _in_order(
    pool: ThreadPoolExecutor,
    window: int,
    work: Callable[[tuple[FrameSources, CataloguedFrame]], Extracted],
    frames: Iterable[tuple[FrameSources, CataloguedFrame]],
) -> Iterator[Extracted]:
    """Results in the order of the frames, with at most ``window`` of them under way."""
    pending: deque[Future[Extracted]] = deque()
    for frame in frames:
        pending.append(pool.submit(work, frame))
        if len(pending) >= window:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _checked(
    frame: CataloguedFrame, values: Mapping[str, object], extractor: Extractor
) -> Extracted:
    """The values as their columns hold them."""
    checked: dict[str, object] = {}
    for tag, value in values.items():
        kind = extractor.columns.get(tag)
        if kind is None:
            known = ", ".join(extractor.columns)
            raise InvalidInput(
                f"extractor of family {extractor.family} gave tag '{tag}', which its columns do "
                f"not name: {known}"
            )
        plain = value.item() if hasattr(value, "item") else value
        if plain is not None and not _fits(plain, kind):
            reason = f"extractor gave {plain!r} for tag {tag}, expected {kind}"
            return Extracted(frame, {}, reason)
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = None  # no number: unknown, as everywhere in the catalog
        checked[tag] = plain
    return Extracted(frame, checked)


def _fits(value: object, kind: str) -> bool:
    if kind in _INTEGER_BITS:
        limit = 2 ** _INTEGER_BITS[kind]
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if kind == "DOUBLE":
        return isinstance(value, int | float) and not isinstance(value, bool)
    expected = {"BOOLEAN": bool, "VARCHAR": str, "TIMESTAMP": datetime}[kind]
    return isinstance(value, expected)
