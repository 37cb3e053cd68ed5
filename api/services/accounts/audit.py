"""The audit log: changes, and requests that were refused."""

from typing import TYPE_CHECKING

from api.schemas.accounts.audit import AuditBody
from catalog.accounts import audit_log

if TYPE_CHECKING:
    from api.services.call import Call


class Audit:
    """The audit log of a home; routes let admins read it."""

    def __init__(self, session: "Call") -> None:
        """That of the session's home."""
        self._session = session

    def list(
        self,
        *,
        who: str | None = None,
        outcome: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditBody]:
        """Entries, newest first.

        Args:
            who: Only of this user.
            outcome: Only with this outcome: "done", "failed" or "interrupted" of commands, or a
                status such as "403".
            before: Only entries before this number.
            limit: At most this many.
        """
        entries = audit_log.entries(
            self._session.records, user=who, outcome=outcome, before=before, limit=limit
        )
        return [AuditBody.of(entry) for entry in entries]
