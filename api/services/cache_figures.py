"""Figures of a home's cache: what lies there, what stagings have done, and what they do now.

All are told by files in the cache, so every process that is asked says the same.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path

from catalog.errors import StorageError
from pipeline.cache.beat import Watch
from pipeline.cache.contents import free_bytes
from pipeline.cache.lease import held_leases
from pipeline.cache.limits import read_limits
from pipeline.cache.measured_space import Space, measured_space
from pipeline.cache.running import running_stagings
from pipeline.cache.statistics import BOUNDS_S, SourceCounts, cache_statistics

COUNTS = (
    "hits", "misses", "fetched_files", "fetched_bytes", "failed_files", "evicted_files",
    "evicted_bytes",
)  # fmt: skip
"""Counters of each source: pipeline.cache.statistics.SourceCounts."""

_STATES = ("queued", "done", "failed", "fetched_bytes")


@dataclass(frozen=True)
class FetchTimes:
    """Times that files of a source took to come."""

    seconds: float
    """Their sum [s]."""
    within: Sequence[tuple[float, int]]
    """Upper bounds [s], inf the last, and how many files took no longer."""


@dataclass(frozen=True)
class CacheFigures:
    """Figures of a cache; empty where there is none yet."""

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """`COUNTS` by source since the cache was made."""
    times: Mapping[str, FetchTimes] = field(default_factory=dict)
    """Times that files took to come, by source."""
    space: Space = field(default_factory=dict)
    """Bytes and files by source, and of prepared forms."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits that are set, by name."""
    free_bytes: int | None = None
    """Free on its file system [bytes]; None where that cannot be read."""
    leases: int = 0
    """Leases on what lies there."""
    running: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of the running stagings of each dataset: queued, done and failed files, and fetched_bytes
    [bytes].
    """


def cache_figures(cache: Path, watch: Watch) -> CacheFigures:
    """The figures of a cache; those that cannot be read are left out.

    Args:
        watch: Tells which stagings and leases are dead; the same at every call.
    """
    if not cache.is_dir():
        return CacheFigures()
    counts = dict(sorted(cache_statistics(cache).items()))
    space, limits, leases, free = Space(), dict[str, int](), 0, None
    running: defaultdict[str, Counter[str]] = defaultdict(Counter)
    with suppress(StorageError):
        free = free_bytes(cache)
        limits = {name: value for name, value in asdict(read_limits(cache)).items() if value}
        leases = len(held_leases(cache, watch))
        for staging in running_stagings(cache, watch):
            done = {name: int(staging.progress.get(name, 0)) for name in _STATES}
            running[staging.about.dataset].update(done)
        space = measured_space(cache)
    return CacheFigures(
        {source: {name: getattr(of, name) for name in COUNTS} for source, of in counts.items()},
        {source: _times(of) for source, of in counts.items()},
        space,
        limits,
        free,
        leases,
        running,
    )


def _times(counts: SourceCounts) -> FetchTimes:
    bounds = (*BOUNDS_S, float("inf"))
    return FetchTimes(counts.seconds, list(zip(bounds, accumulate(counts.within), strict=True)))
