"""A frame's files where one of them lies in another source of the same data set."""

from collections.abc import Iterable, Iterator

from catalog.values import File, Problem
from ingest.sources.source_files import SourceFiles, Unreadable


class WithPartner:
    """The files of the frame's own source, but for the one that an extractor reads; SourceFiles."""

    def __init__(self, own: SourceFiles, partner: SourceFiles, file: str) -> None:
        """Read from two sources.

        Args:
            own: The frame's source.
            partner: The source of the file that the extractor reads.
            file: Its key there.
        """
        self.root = own.root
        self._own, self._partner, self._file = own, partner, file

    def read(self, key: str) -> bytes:
        """A whole file; see FileReader."""
        return self._holder(key).read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; see FileReader."""
        return self._holder(key).read_range(key, start, length)

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """The files of the frame's own source."""
        return self._own.list(below, unreadable)

    def problems(self) -> Iterable[Problem]:
        """Those of the frame's own source."""
        return self._own.problems()

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """Spans of keys in the frame's own source."""
        return self._own.spans(keys)

    def _holder(self, key: str) -> SourceFiles:
        return self._partner if key == self._file else self._own
