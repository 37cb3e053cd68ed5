"""Changing and removing a source: its options, its files in the catalog, its record."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from catalog.frames.frames import SourceNames, remove_source_files
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.sources import recorded_source, source_to_change
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.store import CatalogStore
from ingest.scan.find_duplicates import unmark_duplicates
from ingest.scan.scan_lock import scan_lock
from ingest.sources.mount import Mount
from ingest.sources.source_options import SourceOptions


@dataclass(frozen=True, slots=True)
class OptionChange:
    """Options of a source as they are to be; None changes nothing."""

    exclude: Sequence[str] | None = None
    """Patterns in place of those that it has, as ingest.sources.exclude takes them."""
    part_of: str | None = None
    """Name of the data set; its own where empty."""
    mount: str | None = None
    """Its root on a mounted file system, as ingest.sources.mount writes it; empty for none."""
    max_mb_per_s: float | None = None
    max_requests_per_s: float | None = None
    layout: Mapping[str, Any] | None = None
    """A layout's document; empty where the source's files are to say which it is."""

    def keep(self, record: Source, options: SourceOptions) -> None:
        """Change a source's record that has these options."""
        record.options = self.changed(record.name, options).to_json()
        if self.layout is not None:
            record.layout = dict(self.layout) or None

    def changed(self, source: str, options: SourceOptions) -> SourceOptions:
        """The options of the source of that name as they are to be."""
        changes = {name: value for name, value in asdict(self).items() if value is not None}
        changes.pop("layout", None)  # no option: it says nothing of how the source is reached
        if self.exclude is not None:
            changes["exclude"] = tuple(self.exclude)
        if self.part_of == source:
            changes["part_of"] = ""
        if self.mount:
            changes["mount"] = str(Mount.parse(self.mount))
        return replace(options, **changes)


def names_of(source: Source) -> SourceNames:
    """The names of a source's files in the catalog, without opening it."""
    return SourceNames(source.platform, source.cluster, source.datasource, source.uri, source.site)


def change_options(
    store: CatalogStore,
    records: RecordStore,
    name: str,
    change: OptionChange,
    *,
    expected: ExpectedVersion | None = None,
) -> Source:
    """Have a source leave out other files, or have other options; its record.

    The catalog stays as it is until the source is scanned, or an extractor runs.
    """
    source = recorded_source(records, name)
    with scan_lock(store, source), records.session() as session:
        record = source_to_change(session, source, expected)
        change.keep(record, SourceOptions.from_json(record.options))
        return record


def remove_source(
    store: CatalogStore,
    records: RecordStore,
    name: str,
    expected: ExpectedVersion | None = None,
) -> int:
    """Take a source's files out of the current snapshot and forget it; how many files those were.

    Tags that people gave to them are kept, for when they are catalogued under these names again.
    """
    source = to_change("source", name, expected, lambda: recorded_source(records, name))
    with scan_lock(store, source):
        return _remove(store, records, source, expected)


def _remove(
    store: CatalogStore, records: RecordStore, source: Source, expected: ExpectedVersion | None
) -> int:
    with records.reading() as session:  # before its rows go; whatever changes it holds the lock
        source_to_change(session, source, expected)
    names = names_of(source)
    with store.writing(f"source {source.name} removed") as connection:
        removed = remove_source_files(connection, names)
    unmark_duplicates(store, records)  # what it held twice, or another source as well
    with records.session() as session:
        session.delete(source_to_change(session, source, expected))
    return removed
