"""The record of a scan: created, updated, finished."""

from typing import TYPE_CHECKING

from catalog.errors import NotFound
from catalog.values import now
from ingest.scan.scan_counts import ScanCounts

if TYPE_CHECKING:  # reading does without SQLAlchemy, and without NumPy
    from catalog.records.store import RecordStore
    from catalog.records.tables import Source

SCAN, WATCH = "scan", "watch"
"""Kinds of scans: one that ends by itself, and a watcher's."""


def current_source(records: "RecordStore", source: "Source") -> "Source":
    """The source's record as it is now, with what its last whole scan kept.

    Raises:
        NotFound: The source was removed.
    """
    from catalog.records.tables import Source

    with records.reading() as session:
        current = session.get(Source, source.id)
        if current is None:
            raise NotFound("source", source.name, "it was removed meanwhile")
        return current


def begin(records: "RecordStore", source: "Source", kind: str = SCAN) -> int:
    """Record a new scan, and the end of those of its kind that were killed; its number.

    The caller holds the lock that keeps scans of this kind apart.
    """
    from sqlalchemy import select

    from catalog.records.tables import Scan

    with records.session() as session:
        for killed in session.scalars(
            select(Scan).where(
                Scan.source_id == source.id, Scan.state == "running", Scan.kind == kind
            )
        ):
            killed.state, killed.finished = "failed", now()
            killed.error = "its process ended without finishing"
        scan = Scan(source_id=source.id, state="running", kind=kind)
        session.add(scan)
        session.flush()
        return scan.id


def update(records: "RecordStore", number: int, counts: ScanCounts) -> None:
    """Keep the counts so far."""
    from catalog.records.tables import Scan

    with records.session() as session:
        session.get_one(Scan, number).counts = counts.to_json()


def finish(
    records: "RecordStore", number: int, state: str, counts: ScanCounts, error: str = ""
) -> None:
    """Record how a scan ended: "done" or "failed"."""
    from catalog.records.tables import Scan

    if state == "done" and counts.expected_files is not None:
        counts.expected_files = counts.files
    with records.session() as session:
        scan = session.get_one(Scan, number)
        scan.state, scan.finished, scan.counts, scan.error = state, now(), counts.to_json(), error
