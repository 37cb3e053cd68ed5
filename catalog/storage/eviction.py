"""Chooses the entries that a bounded folder gives up; the folder's owner removes them."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder that can be given up."""

    path: Path
    """Where it is."""
    used: float
    """When it was used last, or written [s since 1970]."""
    size: int = 0
    """Its size [bytes]; 0 where sizes are not limited."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of a folder; without limits where nothing is given."""

    entries: float = inf
    """Number of entries."""
    size: float = inf
    """Of all of them [bytes]."""
    since: float = -inf
    """Nothing that was used before this is kept [s since 1970]."""


def entries_in(paths: Iterable[Path]) -> Iterator[Entry]:
    """Files or folders as entries; those that another process has just removed are left out."""
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        yield Entry(path, status.st_mtime, status.st_size)


def entries_to_evict(
    entries: Iterable[Entry], bounds: Bounds, owner: Callable[[Entry], str] | None = None
) -> list[Entry]:
    """The entries that must go for the others to keep to the bounds.

    Those that are too old go, and then the least recently used ones of whichever owner has most at
    that moment: of bytes while there are too many bytes, else of entries.

    Args:
        entries: All there are, in any order.
        owner: Whose an entry is; all are one owner's without. Called only where too much is kept.
    """
    in_order = sorted(entries, key=lambda entry: (entry.used, entry.path))
    going = [entry for entry in in_order if entry.used < bounds.since]
    staying = in_order[len(going) :]
    number, total = len(staying), sum(entry.size for entry in staying)
    if number <= bounds.entries and total <= bounds.size:
        return going
    of_owners: defaultdict[str, deque[Entry]] = defaultdict(deque)
    sizes: Counter[str] = Counter()
    for entry in staying:
        name = "" if owner is None else owner(entry)
        of_owners[name].append(entry)
        sizes[name] += entry.size
    while number > bounds.entries or total > bounds.size:
        if total > bounds.size:
            most = max(of_owners, key=sizes.__getitem__)
        else:
            most = max(of_owners, key=lambda name: len(of_owners[name]))
        entry = of_owners[most].popleft()
        if not of_owners[most]:
            del of_owners[most]
        sizes[most] -= entry.size
        number, total = number - 1, total - entry.size
        going.append(entry)
    return going
