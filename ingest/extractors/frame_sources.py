"""A frame's files as an extractor reads them: of two sources, and as they are catalogued."""

from collections.abc import Iterable, Iterator

from catalog.errors import ArchivedFile, UnreadableFile
from catalog.tags.extractions import CataloguedFrame
from catalog.values import ARCHIVED, File, Problem
from ingest.sources.listed_read import read_listed
from ingest.sources.local_folder import LocalFolder
from ingest.sources.source_files import SourceFiles, Unreadable


class FrameSources:
    """The files of the frame's own source, and the file that the extractor reads; SourceFiles.

    What is read whole is the file that was listed, or it is UnreadableFile. What is on tape is not
    read, which would recall it, one file after the other.
    """

    def __init__(self, own: SourceFiles, partner: SourceFiles, frame: CataloguedFrame) -> None:
        """Read from two sources.

        Args:
            own: The frame's source.
            partner: The source of the file that the extractor reads; the frame's own, or another
                of the data set.
        """
        self.root = own.root
        self._own, self._partner, self._frame = own, partner, frame
        self._unproven: dict[str, bytes] = {}

    def read(self, key: str) -> bytes:
        """A whole file, as it is catalogued; see FileReader."""
        files, frame = self._holder(key), self._frame
        file: File | None = File(frame.file, frame.size, frame.mtime, etag=frame.etag)
        if key != frame.file or frame.state == ARCHIVED or isinstance(files, LocalFolder):
            listed = next(iter(files.list(key)), None)
            if listed is not None and listed.is_archived:
                raise ArchivedFile(
                    "is on tape, or in an archive: have it recalled, and extract again", key
                )
            file = file if key == frame.file else listed
        if file is None:
            return files.read(key)
        read = read_listed(files, file)
        if not read.is_proven:
            self._unproven[key] = read.content
        return read.content

    def read_otherwise(self) -> bool:
        """Return whether other bytes come now of what was read and no checksum proves."""
        unproven = [*self._unproven.items()]
        try:
            return any(self.read(key) != content for key, content in unproven)
        except UnreadableFile:
            return True

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; see FileReader."""
        return self._holder(key).read_range(key, start, length)

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """The files of the frame's own source."""
        return self._own.list(below, unreadable)

    def problems(self) -> Iterable[Problem]:
        """The problems of the frame's own source."""
        return self._own.problems()

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """Spans of keys in the frame's own source."""
        return self._own.spans(keys)

    def _holder(self, key: str) -> SourceFiles:
        return self._partner if key == self._frame.file else self._own
