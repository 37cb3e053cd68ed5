"""Metrics of the home's cache."""

from collections.abc import Iterator
from math import isinf

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from api.services.cache_figures import CacheFigures

_COUNTERS = {
    "hits": "Files of stagings that were in the cache.",
    "misses": "Files of stagings that were not in the cache.",
    "fetched_files": "Files that stagings have fetched.",
    "fetched_bytes": "Bytes that stagings have fetched.",
    "failed_files": "Files that stagings could not have.",
    "evicted_files": "Files that were evicted.",
    "evicted_bytes": "Bytes that were evicted.",
}
"""Help of each count, api.services.cache_figures.COUNTS."""

_BY_SOURCE = ("source",)


def cache_metrics(figures: CacheFigures) -> Iterator[Metric]:
    """The families; without samples where the home has no cache yet."""
    for name, text in _COUNTERS.items():
        counter = CounterMetricFamily(f"framesift_cache_{name}", text, labels=_BY_SOURCE)
        for source, counts in figures.counts.items():
            counter.add_metric((source,), counts[name])
        yield counter
    yield _fetch_seconds(figures)
    for number, unit in enumerate(("bytes", "files")):
        text = f"The cache's content in {unit}, at most a few seconds old."
        gauge = GaugeMetricFamily(f"framesift_cache_{unit}", text, labels=_BY_SOURCE)
        for source, space in figures.space.items():
            gauge.add_metric((source,), space[number])
        yield gauge
    limits = GaugeMetricFamily("framesift_cache_limit", "Limits of the cache.", labels=("limit",))
    for name, value in figures.limits.items():
        limits.add_metric((name,), value)
    yield limits
    if figures.free_bytes is not None:
        yield GaugeMetricFamily(
            "framesift_cache_free_bytes", "Free on its file system.", figures.free_bytes
        )
    yield GaugeMetricFamily("framesift_cache_leases", "Leases on its content.", figures.leases)
    yield from _running(figures)


def _fetch_seconds(figures: CacheFigures) -> Metric:
    text = "Time that a file took from its request to its name in the cache."
    family = HistogramMetricFamily("framesift_cache_fetch_seconds", text, labels=_BY_SOURCE)
    for source, times in figures.times.items():
        buckets = [
            ("+Inf" if isinf(bound) else str(bound), float(files)) for bound, files in times.within
        ]
        family.add_metric((source,), buckets, times.seconds)
    return family


def _running(figures: CacheFigures) -> Iterator[Metric]:
    files = GaugeMetricFamily(
        "framesift_staging_files", "Files of running stagings.", labels=("dataset", "state")
    )
    size = GaugeMetricFamily(
        "framesift_staging_fetched_bytes", "Fetched by running stagings.", labels=("dataset",)
    )
    for dataset, progress in figures.running.items():
        for state in ("queued", "done", "failed"):
            files.add_metric((dataset, state), progress[state])
        size.add_metric((dataset,), progress["fetched_bytes"])
    yield files
    yield size
