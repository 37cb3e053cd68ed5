"""The audit log: changes, and requests that were refused. It is only ever added to."""

from typing import TYPE_CHECKING, Any

from catalog.records.kinds import AUDIT
from catalog.records.reading import Records, all_of

if TYPE_CHECKING:  # reading does without SQLAlchemy
    from catalog.records.store import RecordStore
    from catalog.records.user_tables import AuditEntry


def add(
    records: "RecordStore",
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
    from catalog.records.user_tables import AuditEntry

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
    records: Records,
    *,
    user: str | None = None,
    outcome: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> "list[AuditEntry]":
    """Entries, newest first.

    Args:
        outcome: Only with this outcome, such as "403".
        before: Only those with a smaller number.
    """
    where = all_of(
        "" if user is None else "who = :who",
        "" if outcome is None else "outcome = :outcome",
        "" if before is None else "id < :before",
    )
    values: dict[str, Any] = {"who": user, "outcome": outcome, "before": before}
    values = {name: value for name, value in values.items() if value is not None}
    return records.select(AUDIT, where, order="id DESC", limit=limit, **values)


def _cut(text: str, longest: int) -> str:
    """The text as a column can hold it: no NUL (PostgreSQL refuses it), no half characters."""
    clean = text.encode("utf-8", "replace").decode().replace("\0", "�")
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"
