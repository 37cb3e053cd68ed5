"""The sources of a manifest, opened when a file of theirs is first wanted."""

import dataclasses
import threading
from pathlib import Path

from catalog.errors import FramesiftError, NotFound
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from ingest.sources.schemes import open_source, scheme_of
from ingest.sources.source_files import SourceFiles
from ingest.sources.source_options import NO_OPTIONS, SourceOptions
from pipeline.manifest import ManifestHeader
from pipeline.staging.rate_limit import RateLimit


class OpenedSources:
    """The sources of a manifest, each opened once, with the keys that its record holds.

    What a source leaves out since the dataset was made is fetched all the same. May be called from
    many threads at once.
    """

    def __init__(
        self, records: RecordStore, header: ManifestHeader, indexes: Path | None = None
    ) -> None:
        """Open nothing yet.

        Args:
            header: Of a manifest that is not staged, with the sources' places as they are now.
            indexes: Where the indexes of tar archives are kept; None keeps none.
        """
        self._records, self._header, self._indexes = records, header, indexes
        self._opened: dict[str, SourceFiles | FramesiftError] = {}
        self._limits: dict[str, RateLimit] = {}
        self._lock = threading.Lock()

    def files(self, name: str) -> SourceFiles:
        """The files of a source; a failure to open it is kept, too, and raised again.

        Raises:
            NotFound: It was removed, and its place cannot be reached without its record.
            InvalidInput: Its options do not fit any more.
            BadFile: It is an archive that is damaged.
            StorageError: It cannot be reached.
        """
        with self._lock:
            if name not in self._opened:
                try:
                    self._opened[name] = self._open(name)
                except FramesiftError as error:
                    self._opened[name] = error
            opened = self._opened[name]
        if isinstance(opened, FramesiftError):
            raise opened
        return opened

    def limit(self, name: str) -> RateLimit:
        """The limits of a source, as its record had them when they were first wanted."""
        with self._lock:
            if name not in self._limits:
                source = self._recorded(name)
                options = SourceOptions.from_json(source.options) if source else NO_OPTIONS
                self._limits[name] = RateLimit.of(options)
            return self._limits[name]

    def _recorded(self, name: str) -> Source | None:
        datasource = self._header.datasources.get(name)
        for source in recorded_sources(self._records):
            if source.name == name and f"{source.cluster}:{source.datasource}" == datasource:
                return source
        return None

    def _open(self, name: str) -> SourceFiles:
        header, source = self._header, self._recorded(name)
        if source is not None:
            options = SourceOptions.from_json(source.options)
            return open_source(source.uri, _with_all(options), self._indexes)
        root = header.roots[name]
        if not scheme_of(root).is_local:
            raise NotFound(
                "source", name, f"it was removed, and with it what opens {root}: add it again"
            )
        options = SourceOptions(within=header.within.get(name, ""))
        return open_source(root, options, self._indexes)


def _with_all(options: SourceOptions) -> SourceOptions:
    return dataclasses.replace(options, exclude=())
