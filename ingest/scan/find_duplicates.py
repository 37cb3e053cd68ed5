"""Finds frames that are there twice (catalog.frames.duplicates), after a scan; it reads few images.

An object store's ETag that is an MD5 stands for the bytes: two that are equal need no read. Other
images are read, and only those of frames whose labels show the same and whose images are as large.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass

from catalog.errors import FramesiftError
from catalog.frames import duplicates
from catalog.frames.duplicates import DuplicateCandidate
from catalog.lake.connection import snapshot_of
from catalog.records.scans import marked_snapshot, set_marked_snapshot
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.store import CatalogStore
from catalog.values import key_of
from ingest.sources.listed_read import read_listed
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import SourceFiles

_MOST_SEARCHES = 3

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


class _Sources:
    """The sources of frames, each opened once; None where that fails."""

    def __init__(self, records: RecordStore, opened: dict[tuple[str, str], SourceFiles]) -> None:
        self._records = {(s.cluster, s.datasource): s for s in recorded_sources(records)}
        self._opened: dict[tuple[str, str], SourceFiles | None] = {**opened}

    def read(self, frame: DuplicateCandidate) -> bytes | None:
        """A frame's image, as it is catalogued; None where it cannot be read."""
        pair = frame.cluster, frame.datasource
        if pair not in self._opened:
            self._opened[pair] = None
            if pair in self._records:
                try:
                    self._opened[pair] = open_recorded(self._records[pair])
                except FramesiftError:
                    return None
        files = self._opened[pair]
        if files is None:
            return None
        try:
            image = next(iter(files.list(key_of(frame.fkey, *pair))), None)
            # An archive's are not brought back for this: a later scan looks at them again.
            if image is None or image.is_archived:
                return None
            if (image.size, image.etag) != (frame.size, frame.etag):
                return None
            return read_listed(files, image).content
        except FramesiftError:
            return None


def mark_duplicates(
    store: CatalogStore,
    records: RecordStore,
    opened: dict[tuple[str, str], SourceFiles],
    scan: int,
    *,
    every: bool = False,
) -> int:
    """Mark the frames that are there more than once, in every source; how many marks changed.

    Images that cannot be read are left out: their frames count as no duplicates until a later scan
    reads them.

    Args:
        opened: Sources that are open already, by cluster and datasource.
        scan: Number of the scan.
        every: Compare every label, not those alone that were written since the last time.
    """
    sources = _Sources(records, opened)
    marked = None if every else marked_snapshot(records)
    marking = _mark(store, marked, sources)
    if marking.snapshot is not None and marking.snapshot != marked:
        set_marked_snapshot(records, scan, marking.snapshot)
    return marking.marks


def unmark_duplicates(store: CatalogStore, records: RecordStore) -> None:
    """Take the marks from frames that are there once, now that others are gone; reads no image."""
    _mark(store, marked_snapshot(records), None)


@dataclass(frozen=True, slots=True)
class _Marking:
    """Marks given: how many, and the snapshot whose duplicates all have them; None for none."""

    marks: int
    snapshot: int | None


def _mark(store: CatalogStore, marked: int | None, sources: _Sources | None) -> _Marking:
    """Search, read images, and write what changes; only that under the write lock.

    Where another scan's commit comes between, all is done again; where that goes on, the marks are
    left to the other scan, which marks at its end.
    """
    for _ in range(_MOST_SEARCHES):
        with store.inspecting() as cursor:
            groups = duplicates.search(cursor, marked)
        unknown = [frame for frame in groups.alike if frame.image is None]
        images = {} if sources is None else _digests(groups.alike, unknown, sources)
        all_known = len(images) == len(unknown)
        marks = groups.changes(images)
        if not marks and not images:
            return _Marking(0, groups.snapshot if all_known else None)
        with store.writing("frames that are there twice", author="ingest") as connection:
            before = snapshot_of(connection)
            if duplicates.is_current(connection, groups.snapshot):
                duplicates.mark(connection, images, marks)
                return _Marking(len(marks), before + 1 if all_known else None)
    return _Marking(0, None)


def _digests(
    alike: list[DuplicateCandidate], unknown: list[DuplicateCandidate], sources: _Sources
) -> dict[str, str]:
    """Digest of the images that have none yet, by fkey."""
    occurrences = Counter((frame.label, frame.size, frame.etag) for frame in alike)
    digests = {}
    for frame in unknown:
        etag = _MD5.fullmatch(frame.etag)
        if etag is not None and occurrences[frame.label, frame.size, frame.etag] > 1:
            digests[frame.fkey] = etag[1]
            continue
        content = sources.read(frame)
        if content is not None:
            digests[frame.fkey] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return digests
