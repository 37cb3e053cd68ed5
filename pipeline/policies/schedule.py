"""Schedules of policies: at once, or whenever a time fits what the schedule names.

    {"minute": 15, "hour": 5, "dayOfMonth": "*", "month": "*", "dayOfWeek": 4, "timezone": "UTC"}

Each is a number, "*", a list "1,15", a range "1-5" or steps "*/5", as cron has them; Sunday is 0.
A part left out is any, or its least where a part below which it stands is named: {"hour": 5} is
five o'clock, {"minute": "*/5"} every five minutes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from catalog.errors import InvalidInput

_PARTS = {
    "minute": (0, 59),
    "hour": (0, 23),
    "dayOfMonth": (1, 31),
    "month": (1, 12),
    "dayOfWeek": (0, 7),
}
_DAYS = {day: str(n) for n, day in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FURTHEST = timedelta(days=366 * 8 + 2)
"""Further off is never: a 29th of February comes after eight years at the latest."""

NOW = "NOW"
"""A schedule that is no time: the policy runs when it is kept, changed, or told to."""


def check_schedule(schedule: object) -> None:
    """The value can be a schedule."""
    if schedule != NOW:
        next_time(schedule, datetime(2026, 1, 1))  # noqa: DTZ001 (naive UTC, as records keep it)


def is_due(schedule: object, since: datetime, until: datetime) -> bool:
    """Return whether a schedule names a time after ``since`` and not after ``until``, naive UTC."""
    if schedule == NOW:
        return False
    following = next_time(schedule, since)
    return following is not None and following <= until


def last_of(moments: Iterable[datetime], until: datetime) -> datetime:
    """The last of moments, naive UTC, after which a schedule's times count.

    Those that lie ahead do not count, as a wrong clock wrote them: else nothing would be due until
    then. A minute ago where all do.
    """
    past = (moment for moment in moments if moment <= until)
    return max(past, default=until - timedelta(minutes=1))


def next_time(schedule: object, after: datetime) -> datetime | None:
    """The first time after another that a schedule names, naive UTC; None where there is none."""
    times = _parsed(schedule)
    moment = after.replace(tzinfo=UTC).astimezone(times.zone).replace(second=0, microsecond=0)
    moment += timedelta(minutes=1)
    last = moment + _FURTHEST
    while moment < last:
        if not times.has_day(moment):
            moment = (moment + timedelta(days=1)).replace(hour=0, minute=0)
        elif moment.hour not in times.hours:
            moment = (moment + timedelta(hours=1)).replace(minute=0)
        elif moment.minute not in times.minutes:
            moment += timedelta(minutes=1)
        else:
            return moment.astimezone(UTC).replace(tzinfo=None)
    return None


@dataclass(frozen=True)
class _Times:
    """The values that a time may have."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    zone: ZoneInfo

    def has_day(self, moment: datetime) -> bool:
        """Return whether it may be on that day; of two named days one is enough, as in cron."""
        if moment.month not in self.months:
            return False
        in_month, in_week = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return (in_month or in_week) if self.either_day else (in_month and in_week)


def _parsed(schedule: object) -> _Times:
    if not isinstance(schedule, Mapping) or not schedule:
        raise InvalidInput(
            f'schedule {str(schedule)[:80]}: expected "NOW", or some of {", ".join(_PARTS)}, '
            "timezone"
        )
    for name in schedule:
        if name not in (*_PARTS, "timezone"):
            raise InvalidInput(
                f"schedule: '{str(name)[:40]}' is none of {', '.join(_PARTS)}, timezone"
            )
    texts = {name: _text(value) for name, value in schedule.items() if name in _PARTS}
    texts.setdefault("hour", "*" if set(texts) <= {"minute"} and texts else "0")
    texts.setdefault("minute", "0")
    values = {name: _values(name, texts.get(name, "*")) for name in _PARTS}
    both = all(not texts.get(name, "*").startswith("*") for name in ("dayOfMonth", "dayOfWeek"))
    return _Times(
        values["minute"],
        values["hour"],
        values["dayOfMonth"],
        values["month"],
        frozenset(day % 7 for day in values["dayOfWeek"]),
        both,
        _zone(schedule.get("timezone") or "UTC"),
    )


def _text(value: Any) -> str:
    return str(value).strip().lower() if not isinstance(value, bool) else ""


def _values(name: str, text: str) -> frozenset[int]:
    low, high = _PARTS[name]
    values: set[int] = set()
    for entry in text.split(","):
        span, _, step = entry.partition("/")
        first, _, last = span.partition("-")
        first, last, step = (_DAYS.get(end, end) for end in (first, last, step))
        if span == "*":
            first, last = str(low), str(high)
        numbers = [first, last or (str(high) if step else first), step or "1"]
        if not all(n.isascii() and n.isdigit() and len(n) < 4 for n in numbers):
            raise _wrong(name, text)
        start, end, by = map(int, numbers)
        if not (low <= start <= end <= high and by):
            raise _wrong(name, text)
        values.update(range(start, end + 1, by))
    return frozenset(values)


def _wrong(name: str, text: str) -> InvalidInput:
    low, high = _PARTS[name]
    return InvalidInput(
        f"schedule: {name} '{text[:40]}': expected numbers from {low} to {high}, such as {high}, "
        '"*", "1,15", "1-5" or "*/5"'
    )


def _zone(name: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(
            f"schedule: timezone '{str(name)[:40]}' is unknown; expected one such as UTC or "
            "Europe/Berlin"
        ) from error
