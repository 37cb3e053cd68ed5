"""A scan: every file of a source listed, every label counted, all of it registered."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import select

from catalog import frames as catalog_frames
from catalog.errors import BadFile, ClassListMissing, FramesiftError, InvalidInput, NotFound
from catalog.frames import SourceNames
from catalog.record_store import RecordStore
from catalog.records import FKEY_CHARACTERS, File, Frame, Problem, make_fkey
from catalog.store import CatalogStore
from catalog.tables import Scan, ScanProblem, Source, now
from catalog.tags import add_class_tags
from ingest.pair_frames import FrameFiles, SceneFiles, pair_frames
from ingest.palette import Palette
from ingest.read_frame import FrameRead, read_frame
from ingest.scan_lock import scan_lock
from ingest.source_files import SourceFiles, open_source

CLASS_LIST = "class_list.json"
BATCH_FRAMES = 2_000
"""Frames of one commit. A killed scan loses at most so much work, and no acknowledged row."""

BATCH_FILES = 4 * BATCH_FRAMES


@dataclass
class ScanCounts:
    """What a scan has done so far.

    Attributes:
        files: Files registered.
        frames: Frames whose labels were counted.
        bytes_read: Bytes read from the source.
        bad_files: Files that could not be used.
        orphans: Files without their partner.
        unknown_pixels: Pixels in colours that are no class.
        removed: Files that were catalogued before and are gone from the source.
        seconds: Time since the scan began [s].
    """

    files: int = 0
    frames: int = 0
    bytes_read: int = 0
    bad_files: int = 0
    orphans: int = 0
    unknown_pixels: int = 0
    removed: int = 0
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
    workers: int = 2,
    progress: Progress | None = None,
) -> ScanResult:
    """Catalog every file of a source and count the pixels of every label.

    Bad files are recorded and skipped. Commits every BATCH_FRAMES frames: when it is killed, what
    was committed stays, and the next scan starts over and ends in the same state.

    Args:
        store: The catalog.
        records: The records.
        source: What to scan.
        class_list: A class list to use instead of the source's own.
        workers: Labels counted at once.
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
        return _scan_locked(store, records, source, class_list, workers, progress)


def _scan_locked(
    store: CatalogStore,
    records: RecordStore,
    source: Source,
    class_list: Path | None,
    workers: int,
    progress: Progress | None,
) -> ScanResult:
    files = open_source(source.uri)
    listed_classes = read_class_list(files, class_list)
    palette = Palette.from_class_list(listed_classes)
    add_class_tags(store, palette.tags)
    records.define_class_tags(dict(zip(palette.tags, palette.classes, strict=True)))
    number = _begin(records, source, listed_classes)
    run = _Scan(store, records, _names(source, files), files, palette, number, progress)
    try:
        run.run(workers)
    except BaseException as error:
        _finish(records, number, "failed", run.counts, _reason(error))
        raise
    _finish(records, number, "done", run.counts, "")
    return ScanResult(number, run.counts)


def read_class_list(files: SourceFiles, given: Path | None) -> dict[str, str]:
    """The parsed class list: the given file's, or the source's own.

    Raises:
        ClassListMissing: Neither is there.
        InvalidInput: It is not JSON.
    """
    if given is not None:
        name = str(given)
        try:
            text = given.read_bytes()
        except OSError as error:
            raise ClassListMissing(f"{given}: {error.strerror}") from error
    else:
        name, text = _find_class_list(files)
    try:
        parsed = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name}: not JSON: {error}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error
    if not isinstance(parsed, dict):
        raise InvalidInput(f'{name}: expected an object like {{"#ff0000": "Car 1", ...}}')
    return parsed


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object's entries; json itself would silently keep the last of two."""
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise InvalidInput(f"'{key}' is listed {keys.count(key)} times; keep one")
    return dict(pairs)


def _find_class_list(files: SourceFiles) -> tuple[str, bytes]:
    for key in (CLASS_LIST, f"camera_lidar_semantic/{CLASS_LIST}"):
        try:
            return f"{files.root}/{key}", files.read(key)
        except BadFile:
            continue
    raise ClassListMissing(
        f"{files.root}: no {CLASS_LIST} there or in camera_lidar_semantic/; it says which colour "
        "is which class. Point the source at the folder that holds it, or give --class-list FILE"
    )


class _Scan:
    """A running scan: batches fill and are committed."""

    def __init__(
        self,
        store: CatalogStore,
        records: RecordStore,
        names: SourceNames,
        files: SourceFiles,
        palette: Palette,
        number: int,
        progress: Progress | None,
    ) -> None:
        self.store, self.records, self.names, self.files = store, records, names, files
        self.palette, self.number, self.progress = palette, number, progress
        self.counts = ScanCounts()
        self.began = time.monotonic()
        self.new_files: list[File] = []
        self.new_frames: list[Frame] = []
        self.new_problems: list[Problem] = []

    def run(self, workers: int) -> None:
        """Scan everything, then drop from the catalog what the source no longer has."""
        with ThreadPoolExecutor(workers, thread_name_prefix="count") as pool:
            for scene in pair_frames(self._usable(self.files.list())):
                self._add_scene(scene, pool, workers)
        self._commit(last=True)

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
        self._note(scene.problems)
        frame_keys = {
            file.key for frame in scene.frames for file in (frame.image, frame.label) if file
        }
        for file in scene.files:
            if file.key not in frame_keys:
                self._add_files([file])
        for frame, read in _in_order(pool, 4 * workers, self._read, scene.frames):
            self.counts.bytes_read += read.bytes_read
            self._note(read.problems)
            if read.frame is not None:
                self.new_frames.append(read.frame)
                self.counts.frames += 1
                self.counts.unknown_pixels += read.frame.unknown_pixels
            self._add_files([file for file in (frame.image, frame.label) if file])

    def _read(self, frame: FrameFiles) -> FrameRead:
        return read_frame(self.files, frame, self.palette)

    def _add_files(self, files: list[File]) -> None:
        # A frame's image goes into the batch together with its tags: the caller adds it last.
        self.new_files += files
        self.counts.files += len(files)
        if len(self.new_frames) >= BATCH_FRAMES or len(self.new_files) >= BATCH_FILES:
            self._commit()
        self._tell()

    def _note(self, problems: list[Problem]) -> None:
        self.new_problems += problems
        self.counts.bad_files += sum(problem.kind == "bad_file" for problem in problems)
        self.counts.orphans += sum(problem.kind == "orphan" for problem in problems)

    def _commit(self, *, last: bool = False) -> None:
        reason = f"scan {self.number} of {self.names.datasource}"
        with self.store.writing(reason, author="ingest") as connection:
            catalog_frames.register(
                connection, self.names, self.new_files, self.new_frames, self.number
            )
            if last:
                self.counts.removed = catalog_frames.remove_unseen(
                    connection, self.names, self.number
                )
        with self.records.session() as session:
            session.add_all(
                ScanProblem(scan_id=self.number, kind=p.kind, key=p.key, reason=p.reason)
                for p in self.new_problems
            )
        self.new_files, self.new_frames, self.new_problems = [], [], []
        self._tell()

    def _tell(self) -> None:
        self.counts.seconds = time.monotonic() - self.began
        if self.progress is not None:
            self.progress(self.counts)


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


def _begin(records: RecordStore, source: Source, listed_classes: dict[str, str]) -> int:
    """Record a new scan, and the end of those that were killed; the new one's number."""
    with records.session() as session:
        current = session.get(Source, source.id)
        if current is None:
            raise NotFound("source", source.name, "it was removed meanwhile")
        current.class_list = listed_classes
        for killed in session.scalars(
            select(Scan).where(Scan.source_id == source.id, Scan.state == "running")
        ):
            killed.state, killed.finished = "failed", now()
            killed.error = "its process ended without finishing"
        scan = Scan(source_id=source.id, state="running")
        session.add(scan)
        session.flush()
        return scan.id


def _finish(records: RecordStore, number: int, state: str, counts: ScanCounts, error: str) -> None:
    with records.session() as session:
        scan = session.get_one(Scan, number)
        scan.state, scan.finished, scan.counts, scan.error = state, now(), asdict(counts), error


def _reason(error: BaseException) -> str:
    return str(error) if isinstance(error, FramesiftError) else f"{type(error).__name__}: {error}"
