"""The audit log as JSON."""

from typing import TYPE_CHECKING

from pydantic import Field

from api.schemas.base import PageAnswer, Schema, iso_time

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from catalog.records.user_tables import AuditEntry


class AuditBody(Schema):
    """A change, or a request that was refused."""

    id: int
    time: str
    who: str = Field(description="The user; empty where nobody was asked, or none was named.")
    address: str
    what: str = Field(description="Method, 'login', or the command.", examples=["POST"])
    target: str = Field(examples=["/v1/datasets"])
    outcome: str = Field(
        description="HTTP status; of a command done, failed or interrupted.", examples=["201"]
    )
    request_id: str
    note: str = Field(
        description="What was made or changed, where the target does not say it.",
        examples=["user anna: roles datauser"],
    )

    @classmethod
    def of(cls, entry: "AuditEntry") -> "AuditBody":
        """A record's."""
        return cls(
            id=entry.id,
            time=iso_time(entry.time),
            who=entry.who,
            address=entry.address,
            what=entry.what,
            target=entry.target,
            outcome=entry.outcome,
            request_id=entry.request_id,
            note=entry.note,
        )


class AuditAnswer(PageAnswer):
    """Entries, newest first."""

    entries: list[AuditBody]
