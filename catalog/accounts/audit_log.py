"""The audit log: changes, and requests that were refused. It is only ever added to."""

from sqlalchemy import select

from catalog.records.store import RecordStore
from catalog.records.user_tables import AuditEntry


def add(
    records: RecordStore,
    user: str,
    what: str,
    target: str,
    outcome: str,
    *,
    address: str = "",
    request_id: str = "",
    note: str = "",
) -> None:
    """Keep an entry, of texts that are cut to what their columns hold."""
    with records.session() as session:
        session.add(
            AuditEntry(
                who=_cut(user, 256),
                address=_cut(address, 64),
                what=_cut(what, 64),
                target=_cut(target, 1024),
                outcome=_cut(outcome, 64),
                request_id=_cut(request_id, 64),
                note=_cut(note, 1024),
            )
        )


def entries(
    records: RecordStore,
    *,
    user: str | None = None,
    outcome: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[AuditEntry]:
    """Entries, newest first.

    Args:
        outcome: Only with this outcome, such as "403".
        before: Only those with a smaller number.
    """
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    if user is not None:
        query = query.where(AuditEntry.who == user)
    if outcome is not None:
        query = query.where(AuditEntry.outcome == outcome)
    if before is not None:
        query = query.where(AuditEntry.id < before)
    with records.reading() as session:
        return list(session.scalars(query))


def _cut(text: str, longest: int) -> str:
    """The text as a column can hold it: no NUL (PostgreSQL refuses it), no half characters."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", "�")
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"
