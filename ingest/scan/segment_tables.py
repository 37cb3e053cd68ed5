"""The segments of a source's panoptic labels, from the JSON files that its layout names.

Each file is read once for a scan, when the first of its labels is to be read. Their rows are
written last: a scan that was killed finds a file that has changed changed again, and reads its
labels again.
"""

from collections.abc import Iterable

from catalog.errors import BadFile, StorageError
from catalog.values import File, KnownFile
from ingest.labels.segments import SegmentFile, Segments
from ingest.layouts.layout import Layout
from ingest.scan.listing_diff import ScannedFile, compare
from ingest.sources.listed_read import use_listed
from ingest.sources.source_files import SourceFiles


class SegmentTables:
    """Segments of each label, by its key."""

    def __init__(self, files: SourceFiles, layout: Layout) -> None:
        """List the JSON files; none where the layout names none.

        Raises:
            StorageError: One of them cannot be listed.
        """
        self._files, self._layout = files, layout
        self._read: dict[str, SegmentFile | str] = {}
        self.below = layout.segments_below
        self._listed: dict[str, File] = {}
        if self.below is not None:
            self._listed = {
                file.key: file
                for file in files.list(self.below, self._unlisted)
                if layout.names_segments(file.key)
            }

    def compared(self, known: Iterable[KnownFile]) -> list[ScannedFile]:
        """The files, compared with those that are catalogued below ``below``."""
        named = (file for file in known if self._layout.names_segments(file.key))
        return [*compare(self._listed.values(), named)]

    def of(self, label: str) -> Segments | None:
        """The segments of a label; None where its layout names none.

        Raises:
            StorageError: The source fails.
        """
        key = self._layout.segments_of(label)
        if key is None:
            return None
        if key not in self._read:
            self._read[key] = self._file(key)
        file = self._read[key]
        segments = Segments({}, file) if isinstance(file, str) else file.of(label)
        return Segments({}, f"{key}: {segments.problem}") if segments.problem else segments

    def _file(self, key: str) -> SegmentFile | str:
        """The file's content, or what is wrong with it."""
        listed = self._listed.get(key)
        if listed is None:
            return "is not there; it says of which category each segment of the label is"
        try:
            return use_listed(self._files, listed, SegmentFile)[0]
        except BadFile as error:
            return error.reason

    def _unlisted(self, key: str, reason: str) -> None:
        if self._layout.may_hold_segments(key):
            raise StorageError(
                f"{self._files.root}/{key}: cannot be listed: {reason}; it may hold the layout's "
                "segments, without which no label can be counted. Give permission",
                f"{self._files.root}/{key}",
            )
