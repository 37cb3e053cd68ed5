"""Records as JSON: the same shape in the API and behind --json."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # commands on one of the two stores do without the other's database
    from catalog.care.snapshot_diff import TagChange
    from catalog.lake.snapshots import Snapshot


def of_snapshot(snapshot: "Snapshot") -> dict[str, Any]:
    """A snapshot of the catalog: when, by whom, what for, what it changed, how much there is."""
    commit = snapshot.commit
    return {
        "snapshot": commit.number,
        "time": _time(commit.time),
        "author": commit.author,
        "reason": commit.reason,
        "changed": list(commit.tables),
        "files": snapshot.files,
        "frames": snapshot.frames,
    }


def of_tag_change(change: "TagChange") -> dict[str, Any]:
    """A tag of a file before and after; times as ISO 8601."""
    before, after = (
        value.isoformat() if isinstance(value, datetime) else value
        for value in (change.before, change.after)
    )
    return {"fkey": change.fkey, "tag": change.tag, "before": before, "after": after}


def _time(time: datetime | None) -> str | None:
    """A record's time as ISO 8601 in UTC."""
    return None if time is None else time.isoformat(timespec="seconds") + "Z"
