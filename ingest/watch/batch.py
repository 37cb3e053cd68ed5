"""Changes gathered into batches, and what of a source a batch has to look at."""

from collections.abc import Callable, Collection, Iterable
from math import inf

from ingest.layouts.layout import Layout

QUIET_S = 0.5
"""A batch closes when nothing has changed for so long."""

LONGEST_S = 2.0
"""A batch closes so long after its first change, even if there are ever more."""

MOST_PATHS = 10_000
"""A batch that names so many paths closes at once."""

WHOLE = ""
"""The place that stands for the whole source."""


class Batch:
    """Paths of a source where something has changed: keys, folders (with a slash), or WHOLE.

    Attributes:
        since: When the first of it was noticed, on time.monotonic's clock.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.since = inf
        self._first = self._last = 0.0

    def add(self, paths: Iterable[str], now: float, since: float | None = None) -> None:
        """Take changes in; ``since`` is when they were noticed, if that was before ``now``."""
        # No name of a file can be catalogued that is not UTF-8; listings report it.
        changed = {path for path in paths if _is_utf8(path)}
        if not changed:
            return
        if not self.paths:
            self._first = now
        self._last = now
        self.since = min(self.since, now if since is None else since)
        self.paths |= changed

    @property
    def is_whole_source(self) -> bool:
        """True where the whole source is to be looked at."""
        return WHOLE in self.paths

    @property
    def full(self) -> bool:
        """True where it must close before more is taken in."""
        return len(self.paths) >= MOST_PATHS

    @property
    def due(self) -> float:
        """The time at which it closes, on the clock of ``add``; never while it is empty."""
        if not self.paths:
            return inf
        if self.is_whole_source or self.full:
            return self._first
        return min(self._last + QUIET_S, self._first + LONGEST_S)


def folders_to_scan(paths: Iterable[str], layout: Layout) -> list[str]:
    """The folders and single keys to scan, in order, none below another.

    A frame's file stands for its whole scene: its partners lie there.
    """
    folders: list[str] = []
    of_paths = {folder for path in paths for folder in layout.folders_of(path) or (path,)}
    for path in sorted(of_paths):
        last = folders[-1] if folders else None
        below = last is not None and last[-1:] in ("", "/") and path.startswith(last)
        if not below and path != last:
            folders.append(path)
    return folders


def belongs_to(keys: Collection[str], layout: Layout) -> Callable[[str], bool]:
    """A test whether a key is among these, or of the same frame as one of them."""
    catalogued = frozenset(keys)
    frames = {name.frame for name in map(layout.parse, catalogued) if name is not None}

    def belongs(key: str) -> bool:
        if key in catalogued:
            return True
        name = layout.parse(key) if frames else None
        return name is not None and name.frame in frames

    return belongs


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
