"""Scans of sources, and what they found wrong."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from catalog.errors import NotFound
from catalog.records.kinds import SCANS
from catalog.records.reading import Records, all_of, ids_in
from catalog.records.sources import recorded_source
from catalog.values import Problem

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.store import RecordStore
    from catalog.records.tables import Scan

_KEYS_PER_STATEMENT = 500


def recorded_scans(
    records: Records,
    *,
    source: str | None = None,
    kind: str | None = None,
    state: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> "list[tuple[Scan, str]]":
    """Scans with their source's name, newest first.

    Args:
        before: Only those with a smaller number.
        limit: At most this many; all when None.
    """
    number = None if source is None else recorded_source(records, source).id
    values: dict[str, Any] = {"source": number, "kind": kind, "state": state, "before": before}
    where = all_of(
        "" if source is None else "source_id = :source",
        "" if kind is None else "kind = :kind",
        "" if state is None else "state = :state",
        "" if before is None else "id < :before",
    )
    values = {name: value for name, value in values.items() if value is not None}
    scans = records.select(SCANS, where, order="id DESC", limit=limit, **values)
    return _with_names(records, scans)


def newest_scans(records: Records) -> "list[tuple[Scan, str]]":
    """The newest scan of each source that was scanned, with the source's name."""
    where = "id IN (SELECT MAX(id) FROM scans GROUP BY source_id)"
    return _with_names(records, records.select(SCANS, where))


def _with_names(records: Records, scans: "list[Scan]") -> "list[tuple[Scan, str]]":
    of_these = ids_in("id", {scan.source_id for scan in scans})
    names = dict(records.rows(f"SELECT id, name FROM sources WHERE {of_these}"))
    # One that was removed meanwhile took its scans along.
    return [(scan, names[scan.source_id]) for scan in scans if scan.source_id in names]


def recorded_scan(records: Records, number: int) -> "tuple[Scan, str]":
    """A scan and its source's name.

    Raises:
        NotFound: There is none of that number.
    """
    scans = recorded_scans(records, before=number + 1, limit=1) if 0 < number < 2**62 else []
    if not scans or scans[0][0].id != number:
        raise NotFound("scan", str(number), "GET /v1/scans lists them")
    return scans[0]


def recorded_problems(
    records: "RecordStore",
    *,
    scan_id: int | None = None,
    source_id: int | None = None,
    below: Sequence[str] = ("",),
    limit: int | None = None,
    offset: int = 0,
) -> list[Problem]:
    """Problems of a source's files now, or those that a scan met; in the order it met them.

    With ``below``, of the files only whose keys begin with one of these.
    """
    from sqlalchemy import func, or_, select

    from catalog.records.tables import ScanProblem

    query = select(ScanProblem).order_by(ScanProblem.id)
    if scan_id is not None:
        query = query.where(ScanProblem.scan_id == scan_id)
    if source_id is not None:
        query = query.where(ScanProblem.source_id == source_id)
    if "" not in below:
        begins = (func.substr(ScanProblem.key, 1, len(start)) == start for start in below)
        query = query.where(or_(*begins))
    if limit is not None:
        query = query.limit(limit).offset(offset)
    with records.reading() as session:
        return [Problem(row.kind, row.key, row.reason) for row in session.scalars(query)]


def replace_problems(
    records: "RecordStore",
    source_id: int,
    scan_id: int,
    examined: Sequence[str],
    problems: Sequence[Problem],
) -> None:
    """Forget what was wrong with the examined files, and keep what a scan found now."""
    from sqlalchemy import delete

    from catalog.records.tables import ScanProblem

    keys = list(dict.fromkeys([*examined, *(problem.key for problem in problems)]))
    with records.session() as session:
        for start in range(0, len(keys), _KEYS_PER_STATEMENT):
            some = keys[start : start + _KEYS_PER_STATEMENT]
            session.execute(
                delete(ScanProblem).where(
                    ScanProblem.source_id == source_id, ScanProblem.key.in_(some)
                )
            )
        session.add_all(
            ScanProblem(
                source_id=source_id, scan_id=scan_id, kind=p.kind, key=p.key, reason=p.reason
            )
            for p in problems
        )


def set_class_list(
    records: "RecordStore",
    source_id: int,
    class_list: Mapping[str, Any],
    layout: Mapping[str, Any],
) -> None:
    """Keep what a source was scanned with: its classes, in their order, and its layout."""
    from sqlalchemy import update

    from catalog.records.tables import Source

    with records.session() as session:
        # By a statement: SQLAlchemy leaves a value out that is equal but for its order.
        session.execute(
            update(Source)
            .where(Source.id == source_id)
            .values(class_list=dict(class_list), scanned_layout=dict(layout))
        )


def last_scan(records: Records, source_id: int) -> "Scan | None":
    """The newest scan of a source; None before the first."""
    scans = records.select(SCANS, "source_id = :source", order="id DESC", limit=1, source=source_id)
    return scans[0] if scans else None


def marked_snapshot(records: Records) -> int | None:
    """The newest snapshot whose duplicates are all marked; None where no scan says so."""
    scans = records.select(
        SCANS, "marked_snapshot IS NOT NULL", order="marked_snapshot DESC", limit=1
    )
    return scans[0].marked_snapshot if scans else None


def set_marked_snapshot(records: "RecordStore", scan_id: int, snapshot: int) -> None:
    """Keep that a scan marked every duplicate of a snapshot."""
    from sqlalchemy import update

    from catalog.records.tables import Scan

    with records.session() as session:
        session.execute(update(Scan).where(Scan.id == scan_id).values(marked_snapshot=snapshot))
