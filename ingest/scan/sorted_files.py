"""Sorts files by their frames: in memory while they are few, else by sorted runs on disk.

Images and labels that lie in two trees do not come together in a listing.
"""

import heapq
import pickle
import tempfile
from collections.abc import Iterator
from operator import itemgetter
from typing import IO, Any, Self

from catalog.values import File
from ingest.layouts.layout import FrameId, FrameName
from ingest.scan.listing_diff import ScannedFile

RUN_FILES = 50_000
"""Files that are sorted in memory: some 70 MB."""

_BLOCK_FILES = 500
"""Files of a run that are read at once."""

_Row = tuple[FrameName, str, tuple[Any, ...]]
"""A file's name and key, which it is sorted by, and its values."""

_key = itemgetter(0, 1)


class FrameSorter:
    """Sorts files by their frames; memory does not grow with their number."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._runs: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._runs:
            run.close()

    def add(self, file: ScannedFile, name: FrameName) -> None:
        """Take a file of this name."""
        self._rows.append(_row(file, name))
        if len(self._rows) == RUN_FILES:
            self._runs.append(_run(self._rows))
            self._rows = []

    def files(self) -> Iterator[tuple[FrameId, ScannedFile]]:
        """The files and their frames, in order of group, frame, kind and key."""
        self._rows.sort(key=_key)
        for row in heapq.merge(self._rows, *map(_rows_of, self._runs), key=_key):
            yield row[0].frame, _file(row)


def _row(file: ScannedFile, name: FrameName) -> _Row:
    values = tuple([getattr(file.file, field) for field in File.__slots__])
    return name, file.key, (values, file.change, file.carries_tags, file.was_archived)


def _file(row: _Row) -> ScannedFile:
    name, _, (values, change, carries_tags, was_archived) = row
    return ScannedFile(File(*values), change, name, carries_tags, was_archived)


def _run(rows: list[_Row]) -> IO[bytes]:
    """A file that is gone when it is closed, with the rows in order."""
    rows.sort(key=_key)
    run = tempfile.TemporaryFile(prefix="framesift-scan-")  # noqa: SIM115 (the caller closes it)
    for start in range(0, len(rows), _BLOCK_FILES):
        pickle.dump(rows[start : start + _BLOCK_FILES], run, pickle.HIGHEST_PROTOCOL)
    run.seek(0)
    return run


def _rows_of(run: IO[bytes]) -> Iterator[_Row]:
    while True:
        try:
            block = pickle.load(run)  # noqa: S301 (written by this process, seen by no other)
        except EOFError:
            return
        yield from block
