"""A catalogued file where it lies: its present state, and its bytes."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from api.workspace import Workspace
from catalog.errors import (
    BadFile,
    InvalidInput,
    NotFound,
    OtherVersion,
    SourceFails,
    StorageError,
    UnreadableFile,
)
from catalog.records.tables import Source
from catalog.storage.file_version import listed_version
from catalog.storage.lru import Lru
from catalog.values import File
from ingest.sources import opened_file
from ingest.sources.local_folder import LocalFolder
from ingest.sources.recorded import open_recorded
from ingest.sources.source_files import SourceFiles
from ingest.sources.tar_source import TarReader

_OPEN_S = 300.0
"""For how long a store stays open: its profile may have other keys by then."""

_MOST_OPEN = 16


@dataclass(frozen=True)
class SourceFile:
    """A file of a source, as it is now; the catalog may have seen an older one."""

    source: Source
    """The record of its source."""
    files: SourceFiles
    """The source, opened."""
    entry: File
    """The file as a listing shows it now."""
    segments: str | None = None
    """Of a panoptic label, as the catalog has them (ingest.labels.segments)."""

    @property
    def identity(self) -> str:
        """A name of this content: another one as soon as the file is changed."""
        entry = self.entry
        # An archive's members have times in seconds; it is read only as it was when opened.
        archive = self.files.archive.identity if isinstance(self.files, TarReader) else ""
        parts: tuple[object, ...] = (
            self.source.uri, entry.key, entry.size, entry.mtime, entry.ctime, entry.inode,
            entry.etag, archive,
        )  # fmt: skip
        if self.segments is not None:
            parts += (self.segments,)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def version(self) -> str:
        """The version of the file (catalog.storage.file_version)."""
        return listed_version(self.entry.etag, self.entry.mtime)

    def read(self, start: int, length: int) -> bytes:
        """Exactly that part of the content that `identity` names.

        Raises:
            UnreadableFile: It cannot be read, or was changed meanwhile.
            NotFound: It vanished meanwhile.
            SourceFails: The source does.
        """
        if not length:
            return b""
        key = self.entry.key
        changed = UnreadableFile("was changed while it was read; ask again", key)
        try:
            with (
                _of(self.source),
                opened_file.open_file(self.files, key, self.version, start, length) as opened,
            ):
                content = b"".join(opened.pieces)
                if opened.check_md5 is not None and len(content) == opened.size:
                    opened.check_md5(hashlib.md5(content, usedforsecurity=False).hexdigest())
        except OtherVersion as error:
            raise changed from error
        except BadFile as error:  # whose message may say where the source lies
            if not self._is_there():
                raise changed from error
            raise UnreadableFile("cannot be read from its source now", key) from error
        if len(content) != length or not self._is_there():
            raise changed
        return content

    def _is_there(self) -> bool:
        """Return whether what `identity` names still lies in a folder.

        A file of the same size and time may have taken its place; of an object or an archive the
        version says all.
        """
        if not isinstance(self.files, LocalFolder):
            return True
        with _of(self.source):
            now = _entry(self.files, self.entry.key)
        # Access times change by reading.
        return replace(self, entry=now).identity == self.identity


def source_of(workspace: Workspace, cluster: str, datasource: str) -> Source:
    """The source whose files have these names in the catalog.

    Raises:
        NotFound: It is recorded no longer.
    """
    with workspace.records.reading() as session:
        names = {"cluster": cluster, "datasource": datasource}
        source = session.query(Source).filter_by(**names).one_or_none()
        if source is not None:
            return source
    raise NotFound("source", datasource, f"none has it on cluster {cluster} any more")


def open_file(workspace: Workspace, source: Source, key: str) -> SourceFile:
    """A file of a source.

    Args:
        key: The file's key, from the catalog and nowhere else.

    Raises:
        NotFound: The file is not there, or lies behind a link to a folder, which no scan follows.
        UnreadableFile: It has become a link that leads out of the source.
        SourceFails: The source cannot be reached.
    """
    with _of(source, BadFile):  # an archive that is damaged
        files = _opened.files(source, workspace.indexes)
        entry = _listed(files, key)
    if _is_link(entry):
        raise UnreadableFile("is a link that leads out of its source", key)
    return SourceFile(source, files, entry)


def open_files(workspace: Workspace, source: Source, keys: Iterable[str]) -> dict[str, SourceFile]:
    """Those files of a source that `open_file` opens, by their keys; the source is opened once.

    Raises:
        SourceFails: The source cannot be reached.
    """
    entries = {}
    with _of(source, BadFile):
        files = _opened.files(source, workspace.indexes)
        for key in keys:
            with suppress(NotFound):
                entries[key] = _listed(files, key)
    return {
        key: SourceFile(source, files, entry)
        for key, entry in entries.items()
        if not _is_link(entry)
    }


def _listed(files: SourceFiles, key: str) -> File:
    """A file as its opened source lists it.

    Raises:
        NotFound: It is not there, or lies behind a link to a folder.
    """
    if isinstance(files, LocalFolder) and _leads_elsewhere(files.folder, key):
        raise _gone(key)
    return _entry(files, key)


def _is_link(entry: File) -> bool:
    return entry.permissions.startswith("l")


class _Opened:
    """Object stores that stay open, in this process: opening one takes 80 ms and asks its server.

    A folder is opened in no time, and an archive is read only as it was when it was opened.
    """

    def __init__(self, most: int = _MOST_OPEN, lasts_s: float = _OPEN_S) -> None:
        self._stores: Lru[str, SourceFiles] = Lru(most, lasts_s)

    def files(self, source: Source, indexes: Path) -> SourceFiles:
        """The source, opened; see ingest.sources.recorded.open_recorded for what it raises."""
        key = json.dumps([source.uri, source.options], sort_keys=True)
        files = self._stores.get(key)
        if files is None:
            files = open_recorded(source, indexes)
            if not isinstance(files, LocalFolder | TarReader):
                self._stores.put(key, files)
        return files


_opened = _Opened()


def _entry(files: SourceFiles, key: str) -> File:
    entry = next(iter(files.list(key)), None)
    if entry is None:
        raise _gone(key)
    return entry


def _gone(key: str) -> NotFound:
    return NotFound("file", key, "the catalog has it and its source no longer; scan the source")


def _leads_elsewhere(root: Path, key: str) -> bool:
    """Return whether a key leaves the root, or a folder on its way has become a link."""
    parts = key.split("/")
    if ".." in parts or key.startswith("/"):
        return True
    return any(root.joinpath(*parts[:n]).is_symlink() for n in range(1, len(parts)))


@contextmanager
def _of(source: Source, *more: type[Exception]) -> Iterator[None]:
    """Say that a source fails without saying where it lies: who asks may not know that."""
    kinds: tuple[type[Exception], ...] = (StorageError, InvalidInput, OSError, *more)
    try:
        yield
    except kinds as error:
        raise SourceFails(
            f"source '{source.name}' cannot be read now: is it mounted, and does its server "
            "answer? 'framesift source list' shows where it lies"
        ) from error
