"""Finds frames that are there twice (catalog.frames.duplicates), after a scan; it reads few images.

An object store's ETag that is an MD5 stands for the bytes: two that are equal need no read. Other
images are read, and only those of frames whose labels show the same and whose images are as large.
"""

import hashlib
import re
from collections import Counter

from catalog.errors import FramesiftError
from catalog.frames import duplicates
from catalog.frames.duplicates import DuplicateCandidate
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.store import CatalogStore
from catalog.values import key_of
from ingest.sources.listed_read import read_listed
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import SourceFiles

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')


def mark_duplicates(
    store: CatalogStore,
    records: RecordStore,
    opened: dict[tuple[str, str], SourceFiles],
) -> int:
    """Mark the frames that are there more than once, in every source; how many marks changed.

    Images that cannot be read are left out: their frames count as no duplicates.

    Args:
        opened: Sources that are open already, by cluster and datasource.
    """
    with store.inspecting() as cursor:
        alike = duplicates.alike(cursor)
        marked = duplicates.are_marked(cursor)
    unknown = [frame for frame in alike if frame.image is None]
    if marked and not unknown:
        return 0
    images = _digests(alike, unknown, _Sources(records, opened))
    if marked and not images:
        return 0
    with store.writing("frames that are there twice", author="ingest") as connection:
        return duplicates.mark(connection, images)


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
