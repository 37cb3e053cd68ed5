"""The files of a source without those that its archive did not bring back.

To read a stub would have it recalled by itself, and wait for what has just failed.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from catalog.errors import BadFile
from catalog.values import File, Problem
from ingest.sources.opened_file import OpenedFile, open_file
from ingest.sources.source_files import SourceFiles, Unreadable
from pipeline.archive.recall import Recalled
from pipeline.staging.plan import OpenSource


def without_refused(sources: OpenSource, recalled: Recalled) -> OpenSource:
    """Opens sources; a file that could not be recalled is refused with the cause, unread."""
    if not recalled.causes:
        return sources

    def opened(name: str) -> SourceFiles:
        causes = {key: cause for (source, key), cause in recalled.causes.items() if source == name}
        return _WithoutRefused(sources(name), causes) if causes else sources(name)

    return opened


class _WithoutRefused:
    """A source's files, some of which are refused."""

    def __init__(self, files: SourceFiles, causes: dict[str, str]) -> None:
        self.root, self._files, self._causes = files.root, files, causes

    def open_file(
        self, key: str, version: str | None = None, start: int = 0, length: int | None = None
    ) -> AbstractContextManager[OpenedFile]:
        """A file, opened; see ingest.sources.opened_file."""
        self._check(key)
        return open_file(self._files, key, version, start, length)

    def list(self, below: str = "", unreadable: Unreadable | None = None, /) -> Iterator[File]:
        """Every file, refused ones too; see SourceFiles."""
        return self._files.list(below, unreadable)

    def problems(self) -> Iterable[Problem]:
        """See SourceFiles."""
        return self._files.problems()

    def spans(self, keys: Iterable[str], /) -> dict[str, tuple[int, int]]:
        """See SourceFiles."""
        return self._files.spans(keys)

    def read(self, key: str) -> bytes:
        """A whole file; see SourceFiles."""
        self._check(key)
        return self._files.read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """A part of a file; see SourceFiles."""
        self._check(key)
        return self._files.read_range(key, start, length)

    def _check(self, key: str) -> None:
        if cause := self._causes.get(key):
            raise BadFile(f"could not be recalled from its archive: {cause}", key)
