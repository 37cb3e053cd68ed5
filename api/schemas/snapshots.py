"""The catalog's snapshots as JSON."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.schemas.base import Schema, iso_time

if TYPE_CHECKING:  # commands on one of the two stores do without the other's database
    from catalog.lake.snapshots import Snapshot
    from catalog.maintenance.snapshot_diff import TagChange


class SnapshotBody(Schema):
    """A snapshot: when, by whom, what for, what it changed, how much there is."""

    snapshot: int
    time: str
    author: str
    reason: str
    changed: list[str]
    files: int
    frames: int

    @classmethod
    def of(cls, snapshot: "Snapshot") -> "SnapshotBody":
        """The catalog's."""
        commit = snapshot.commit
        return cls(
            snapshot=commit.number,
            time=iso_time(commit.time),
            author=commit.author,
            reason=commit.reason,
            changed=list(commit.tables),
            files=snapshot.files,
            frames=snapshot.frames,
        )


class TagChangeBody(Schema):
    """A tag of a file before and after; times as ISO 8601."""

    fkey: str
    tag: str
    before: Any
    after: Any

    @classmethod
    def of(cls, change: "TagChange") -> "TagChangeBody":
        """The catalog's."""
        before, after = (
            value.isoformat() if isinstance(value, datetime) else value
            for value in (change.before, change.after)
        )
        return cls(fkey=change.fkey, tag=change.tag, before=before, after=after)
