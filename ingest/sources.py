"""Removing a source with everything the catalog knows of its files."""

from catalog.frames import SourceNames, remove_unseen
from catalog.record_store import RecordStore
from catalog.store import CatalogStore
from catalog.tables import Source
from ingest.scan_lock import scan_lock

_NO_SCAN = -1


def remove_source(store: CatalogStore, records: RecordStore, name: str) -> int:
    """Take a source's files out of the current snapshot and forget it; how many files those were.

    Raises:
        NotFound: There is no such source.
        CatalogBusy: It is being scanned.
    """
    source = records.source(name)
    with scan_lock(store, source):
        return _remove(store, records, source)


def _remove(store: CatalogStore, records: RecordStore, source: Source) -> int:
    names = SourceNames(source.platform, source.cluster, source.datasource, source.uri)
    with store.writing(f"source {source.name} removed") as connection:
        removed = remove_unseen(connection, names, _NO_SCAN)
    with records.session() as session:
        session.delete(session.get_one(Source, source.id))
    return removed
