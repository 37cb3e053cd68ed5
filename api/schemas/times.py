"""Times as JSON."""

from datetime import datetime


def iso_time(time: datetime) -> str:
    """A record's time as ISO 8601 in UTC, to the second."""
    return time.isoformat(timespec="seconds") + "Z"
