"""Changes gathered into batches, and what of a source a batch has to look at."""

from collections.abc import Callable, Collection, Iterable
from math import inf

from ingest.scan.frame_name import parse

QUIET_S = 0.5
"""A batch closes when nothing has changed for so long."""

LONGEST_S = 2.0
"""A batch closes so long after its first change, even if there are ever more."""

MOST_PLACES = 10_000
"""A batch that names so many places closes at once."""

WHOLE = ""
"""The place that stands for the whole source."""


class Batch:
    """Places of a source where something has changed: keys, folders (with a slash), or WHOLE.

    Attributes:
        places: Where.
        since: When the first of it was noticed, on time.monotonic's clock.
    """

    def __init__(self) -> None:
        """An empty batch."""
        self.places: set[str] = set()
        self.since = inf
        self._first = self._last = 0.0

    def add(self, places: Iterable[str], now: float, since: float | None = None) -> None:
        """Take changes in; ``since`` is when they were noticed, if that was before ``now``."""
        # No name of a file can be catalogued that is not UTF-8; listings report it.
        found = {place for place in places if _is_utf8(place)}
        if not found:
            return
        if not self.places:
            self._first = now
        self._last = now
        self.since = min(self.since, now if since is None else since)
        self.places |= found

    @property
    def whole(self) -> bool:
        """Whether the whole source is to be looked at."""
        return WHOLE in self.places

    @property
    def full(self) -> bool:
        """Whether it must close before more is taken in."""
        return len(self.places) >= MOST_PLACES

    @property
    def due(self) -> float:
        """When it closes, on the clock of ``add``; never while it is empty."""
        if not self.places:
            return inf
        if self.whole or self.full:
            return self._first
        return min(self._last + QUIET_S, self._first + LONGEST_S)


def folders_to_scan(places: Iterable[str]) -> list[str]:
    """What a scan has to look at: folders and single keys in order, none below another.

    A frame's file stands for its whole scene: its partners lie there.
    """
    kept: list[str] = []
    for place in sorted(map(_folder_of, places)):
        last = kept[-1] if kept else None
        below = last is not None and last[-1:] in ("", "/") and place.startswith(last)
        if not below and place != last:
            kept.append(place)
    return kept


def belongs_to(keys: Collection[str]) -> Callable[[str], bool]:
    """Tells whether a key is among these, or of the same frame as one of them."""
    held = frozenset(keys)
    frames = {found.frame for found in map(parse, held) if found is not None}

    def belongs(key: str) -> bool:
        if key in held:
            return True
        found = parse(key) if frames else None
        return found is not None and found.frame in frames

    return belongs


def _folder_of(place: str) -> str:
    found = parse(place)
    return place if found is None else found.frame.folder + "/"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
