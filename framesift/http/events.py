"""Server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """One event."""

    name: str
    """Its type; "message" where it has none, "" for a comment, which says that the stream lives."""
    data: str
    """Its data."""
    id: str
    """The last id that the stream named; "" where it named none."""


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """The events of a stream's lines; one that is cut off is left out."""
    name, last = "", ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield Event(name or "message", "\n".join(data), last)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        if not field:
            yield Event("", value.strip(), last)
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last = value
