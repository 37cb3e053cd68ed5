"""A scan: every file of a source listed, every label counted, all of it registered."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import select

from catalog import frames as catalog_frames
from catalog.errors import FramesiftError, InvalidInput, NotFound
from catalog.frames import SourceNames
from catalog.record_store import RecordStore
from catalog.records import FKEY_CHARACTERS, File, Frame, Problem, make_fkey
from catalog.store import CatalogStore
from catalog.tables import Scan, Source, now
from catalog.tags import add_class_tags
from ingest.class_list import read_class_list
from ingest.frame_name import FrameId, parse
from ingest.listing_diff import Compared, compare
from ingest.pair_frames import FrameFiles, SceneFiles, pair_frames
from ingest.palette import Palette
from ingest.read_frame import FrameRead, read_frame
from ingest.scan_lock import scan_lock
from ingest.source_files import SourceFiles
from ingest.sources import open_recorded

BATCH_FRAMES = 2_000
"""Frames of one commit. A killed scan loses at most so much work, and no acknowledged row."""

BATCH_FILES = 4 * BATCH_FRAMES


_BAD = ("bad_file", "unreadable")


@dataclass
class ScanCounts:
    """What a scan has done so far.

    Attributes:
        files: Files listed.
        added: Files that are new.
        changed: Files whose size, etag or time of last change differs, or all with ``full``.
        unchanged: Files that are as they were; they are not read again.
        removed: Files that were catalogued before and are gone from the source.
        frames: Frames whose labels were counted.
        bytes_read: Bytes read from the source.
        bad_files: Files that could not be used.
        orphans: Files without their partner.
        unknown_pixels: Pixels in colours that are no class.
        seconds: Time since the scan began [s].
    """

    files: int = 0
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    frames: int = 0
    bytes_read: int = 0
    bad_files: int = 0
    orphans: int = 0
    unknown_pixels: int = 0
    seconds: float = 0.0


Progress = Callable[[ScanCounts], None]


@dataclass(frozen=True)
class ScanResult:
    """A finished scan: its number and counts."""

    scan: int
    counts: ScanCounts


def scan_source(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    *,
    class_list: Path | None = None,
    full: bool = False,
    workers: int = 2,
    index_folder: Path | None = None,
    progress: Progress | None = None,
) -> ScanResult:
    """Catalog every file of a source and count the pixels of every label.

    A later scan reads only what is new or has changed. Bad files are recorded and skipped, and
    tried again when they change. Commits every BATCH_FRAMES frames: when it is killed, what was
    committed stays, and the next scan goes on from there and ends in the same state.

    Args:
        store: The catalog.
        records: The records.
        source: What to scan.
        class_list: A class list to use instead of the source's own.
        full: Count every label again; a class list that has changed does the same.
        workers: Labels counted at once.
        index_folder: Where the indexes of tar archives are kept; None keeps none.
        progress: Called after every frame or batch with the counts so far.

    Raises:
        ClassListMissing: The source has no class_list.json, and none was given.
        InvalidInput: The class list cannot be used, or there are no workers.
        NotFound: The source was removed meanwhile.
        CatalogBusy: Another process scans this source.
        StorageError: The source cannot be listed, or the catalog cannot be written.
    """
    if workers < 1:
        raise InvalidInput(f"workers: got {workers}, expected at least 1")
    # Two scans of one source would each take the other's files for gone.
    with scan_lock(store, source):
        files = open_recorded(source, index_folder)
        return _scan_locked(store, records, source, files, class_list, full, workers, progress)


def _scan_locked(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    files: SourceFiles,
    class_list: Path | None,
    full: bool,
    workers: int,
    progress: Progress | None,
) -> ScanResult:
    listed_classes = read_class_list(files, class_list)
    palette = Palette.from_class_list(listed_classes)
    add_class_tags(store, palette.tags)
    records.define_class_tags(dict(zip(palette.tags, palette.classes, strict=True)))
    number, classes_changed = _begin(records, source, listed_classes)
    run = _Scan(store, records, source, files, palette, number, progress)
    try:
        run.run(workers, full or classes_changed)
    except BaseException as error:
        _finish(records, number, "failed", run.counts, _reason(error))
        raise
    # Only now, so that a scan that is killed before is followed by another full one.
    records.set_class_list(source.id, listed_classes)
    _finish(records, number, "done", run.counts, "")
    return ScanResult(number, run.counts)


class _Scan:
    """A running scan: batches fill and are committed."""

    def __init__(
        self,
        store: CatalogStore,
        records: RecordStore,
        source: Source,
        files: SourceFiles,
        palette: Palette,
        number: int,
        progress: Progress | None,
    ) -> None:
        self.store, self.records, self.source, self.files = store, records, source, files
        self.names = _names(source, files)
        self.palette, self.number, self.progress = palette, number, progress
        self.counts = ScanCounts()
        self.began = time.monotonic()
        # Of the scene that is being listed: keys that are new, changed or gone, and the frames that
        # lost a file.
        self.fresh: set[str] = set()
        self.missed: list[str] = []
        # What could not be read last time may be readable now, though nothing shows it.
        standing = records.problems(source_id=source.id)
        self.unreadable = {problem.key for problem in standing if problem.kind == "unreadable"}
        self.bereft: set[FrameId] = set()
        # The batch that is being filled.
        self.new_files: list[File] = []
        self.new_frames: list[Frame] = []
        self.gone: list[str] = []
        self.examined: list[str] = []
        self.new_problems: list[Problem] = []

    def run(self, workers: int, full: bool) -> None:
        """Scan everything that is new or has changed, and drop what is gone."""
        with (
            self.store.reading() as cursor,
            ThreadPoolExecutor(workers, thread_name_prefix="count") as pool,
        ):
            self._note(list(self.files.problems()))
            known = catalog_frames.known_files(cursor, self.names)
            listed = compare(self._usable(self.files.list()), known)
            for scene in pair_frames(self._note_changes(listed, full)):
                self._add_scene(scene, pool, workers)
        self.gone += self.missed
        self._commit()

    def _note_changes(self, compared: Iterable[Compared], full: bool) -> Iterator[File]:
        """The listed files, once it is noted what has become of them."""
        for found in compared:
            if found.file is None:
                self.counts.removed += 1
                self.missed.append(found.key)
                parsed = parse(found.key)
                if parsed is not None:
                    self.bereft.add(parsed.frame)
                continue
            self.counts.files += 1
            again = full or found.key in self.unreadable
            change = "changed" if again and found.change == "unchanged" else found.change
            setattr(self.counts, change, getattr(self.counts, change) + 1)
            if change != "unchanged":
                self.fresh.add(found.key)
            self._tell()
            yield found.file

    def _usable(self, listed: Iterable[File]) -> Iterator[File]:
        """The files that can be catalogued; the others are problems."""
        for file in listed:
            reason = self._unusable(file.key)
            if reason:
                printable = file.key.encode(errors="backslashreplace").decode()
                self._note([Problem("bad_file", printable, reason)])
            else:
                yield file

    def _unusable(self, key: str) -> str:
        try:
            key.encode()
        except UnicodeEncodeError:
            return "name is not UTF-8; rename the file"
        if len(make_fkey(self.names.cluster, self.names.datasource, key)) > FKEY_CHARACTERS:
            return f"name is longer than the {FKEY_CHARACTERS:,} characters of an fkey"
        return ""

    def _add_scene(self, scene: SceneFiles, pool: ThreadPoolExecutor, workers: int) -> None:
        touched = self._touched_frames(scene)
        due = [frame for frame in scene.frames if frame.id in touched]
        with_tags = {file.key for frame in due for file in _files_of(frame)}
        for file in scene.files:
            parsed = parse(file.key)
            is_touched = parsed is not None and parsed.frame in touched
            if is_touched:
                self.examined.append(file.key)
            if (file.key in self.fresh or is_touched) and file.key not in with_tags:
                self._add_files([file])
        if touched or any(problem.key in self.fresh for problem in scene.problems):
            self._note(scene.problems)
        for frame, read in _in_order(pool, 4 * workers, self._read, due):
            self.counts.bytes_read += read.bytes_read
            self._note(read.problems)
            if read.frame is not None:
                self.new_frames.append(read.frame)
                self.counts.frames += 1
                self.counts.unknown_pixels += read.frame.unknown_pixels
            # One batch for all of them, as for a frame's tags: killed between, they would not be
            # new to the next scan, and the frame not due.
            self._add_files(_files_of(frame))
        self.fresh.difference_update(file.key for file in scene.files)
        if scene.scene:
            self._leave(scene)

    def _leave(self, scene: SceneFiles) -> None:
        """Scenes come in order: what was lost up to this one has been dealt with."""
        self.bereft = {frame for frame in self.bereft if frame.prefix + frame.scene > scene.scene}
        # Gone files leave the catalog no earlier than their frames are dealt with: only as long as
        # they are there does a scan see that they are gone.
        end = max(scene.scene + "/\U0010ffff", scene.files[-1].key)
        self.gone += [key for key in self.missed if key <= end]
        self.missed = [key for key in self.missed if key > end]

    def _touched_frames(self, scene: SceneFiles) -> set[FrameId]:
        """Frames of the scene with a file that is new, changed or gone."""
        parsed = (parse(file.key) for file in scene.files if file.key in self.fresh)
        return {found.frame for found in parsed if found is not None} | self.bereft

    def _read(self, frame: FrameFiles) -> FrameRead:
        return read_frame(self.files, frame, self.palette)

    def _add_files(self, files: list[File]) -> None:
        # A frame's image goes into the batch together with its tags: the caller adds it last.
        self.new_files += files
        self.examined += [file.key for file in files]
        batch = len(self.new_files) + len(self.gone)
        if len(self.new_frames) >= BATCH_FRAMES or batch >= BATCH_FILES:
            self._commit()
        self._tell()

    def _note(self, problems: list[Problem]) -> None:
        self.new_problems += problems
        self.counts.bad_files += sum(problem.kind in _BAD for problem in problems)
        self.counts.orphans += sum(problem.kind == "orphan" for problem in problems)

    def _commit(self) -> None:
        # Problems first: a file whose row is there is not looked at again, so that a problem that
        # was not yet kept when the scan was killed would be lost.
        self.records.replace_problems(
            self.source.id, self.number, self.examined + self.gone, self.new_problems
        )
        if self.new_files or self.gone:
            reason = f"scan {self.number} of {self.names.datasource}"
            with self.store.writing(reason, author="ingest") as connection:
                catalog_frames.remove(connection, self.names, self.gone)
                catalog_frames.register(
                    connection, self.names, self.new_files, self.new_frames, self.number
                )
        self.new_files, self.new_frames, self.new_problems = [], [], []
        self.gone, self.examined = [], []
        self._tell()

    def _tell(self) -> None:
        self.counts.seconds = time.monotonic() - self.began
        if self.progress is not None:
            self.progress(self.counts)


def _files_of(frame: FrameFiles) -> list[File]:
    files = (frame.image, frame.label, frame.lidar, frame.camera_json)
    return [file for file in files if file is not None]


def _in_order(
    pool: ThreadPoolExecutor,
    window: int,
    work: Callable[[FrameFiles], FrameRead],
    items: Iterable[FrameFiles],
) -> Iterator[tuple[FrameFiles, FrameRead]]:
    """Results in the order of the items, with at most ``window`` of them under way."""
    pending: deque[tuple[FrameFiles, Future[FrameRead]]] = deque()
    for item in items:
        pending.append((item, pool.submit(work, item)))
        if len(pending) >= window:
            first, future = pending.popleft()
            yield first, future.result()
    for first, future in pending:
        yield first, future.result()


def _names(source: Source, files: SourceFiles) -> SourceNames:
    return SourceNames(source.platform, source.cluster, source.datasource, files.root, source.site)


def _begin(
    records: RecordStore, source: Source, listed_classes: dict[str, str]
) -> tuple[int, bool]:
    """Record a new scan, and the end of those that were killed.

    Returns:
        The scan's number, and whether the class list differs from the last scan's.
    """
    with records.session() as session:
        current = session.get(Source, source.id)
        if current is None:
            raise NotFound("source", source.name, "it was removed meanwhile")
        counted_with = current.class_list
        classes_changed = list(counted_with.items()) != list(listed_classes.items())
        if not counted_with:
            current.class_list = listed_classes
        for killed in session.scalars(
            select(Scan).where(Scan.source_id == source.id, Scan.state == "running")
        ):
            killed.state, killed.finished = "failed", now()
            killed.error = "its process ended without finishing"
        scan = Scan(source_id=source.id, state="running")
        session.add(scan)
        session.flush()
        return scan.id, classes_changed


def _finish(records: RecordStore, number: int, state: str, counts: ScanCounts, error: str) -> None:
    with records.session() as session:
        scan = session.get_one(Scan, number)
        scan.state, scan.finished, scan.counts, scan.error = state, now(), asdict(counts), error


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, FramesiftError) else f"{type(error).__name__}: {error}"
