"""The audit log: changes, and requests that were refused."""

from api.schemas.accounts.audit import AuditBody
from api.services.call import Service
from catalog.accounts import audit_log


class Audit(Service):
    """The audit log of a home; routes let admins read it."""

    def list(
        self,
        *,
        who: str | None = None,
        outcome: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditBody]:
        """Entries, newest first."""
        entries = audit_log.entries(
            self._session.readable_records, user=who, outcome=outcome, before=before, limit=limit
        )
        return [AuditBody.of(entry) for entry in entries]
