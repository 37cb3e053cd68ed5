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
    "hits": "Files of stagings that were in the cache, by source (cluster:datasource).",
    "misses": "Files of stagings that were not in the cache, by source.",
    "fetched_files": "Files that came, by source.",
    "fetched_bytes": "Bytes that came, by source.",
    "failed_files": "Files that could not be had, by source.",
    "evicted_files": "Files that were evicted, by source.",
    "evicted_bytes": "Bytes that were evicted, by source.",
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
        text = (
            f"What lies in the cache, in {unit}, by source, prepared forms as .prepared; counted "
            "at most every 15 s, or 20 times what that takes."
        )
        gauge = GaugeMetricFamily(f"framesift_cache_{unit}", text, labels=_BY_SOURCE)
        for source, space in figures.space.items():
            gauge.add_metric((source,), space[number])
        yield gauge
    limits = GaugeMetricFamily(
        "framesift_cache_limit", "Limits of the cache, by name.", labels=("limit",)
    )
    for name, value in figures.limits.items():
        limits.add_metric((name,), value)
    yield limits
    if figures.free_bytes is not None:
        yield GaugeMetricFamily(
            "framesift_cache_free_bytes",
            "What is free on the cache's file system.",
            figures.free_bytes,
        )
    yield GaugeMetricFamily(
        "framesift_cache_leases", "Leases of jobs and stagings.", figures.leases
    )
    yield from _running(figures)


def _fetch_seconds(figures: CacheFigures) -> Metric:
    text = "Time that a file took to come, by source."
    family = HistogramMetricFamily("framesift_cache_fetch_seconds", text, labels=_BY_SOURCE)
    for source, times in figures.times.items():
        buckets = [
            ("+Inf" if isinf(bound) else str(bound), float(files)) for bound, files in times.within
        ]
        family.add_metric((source,), buckets, times.seconds)
    return family


def _running(figures: CacheFigures) -> Iterator[Metric]:
    files = GaugeMetricFamily(
        "framesift_staging_files",
        "Files of running stagings, by dataset and state.",
        labels=("dataset", "state"),
    )
    size = GaugeMetricFamily(
        "framesift_staging_fetched_bytes",
        "Bytes that running stagings have fetched, by dataset.",
        labels=("dataset",),
    )
    for dataset, progress in figures.running.items():
        for state in ("queued", "done", "failed"):
            files.add_metric((dataset, state), progress[state])
        size.add_metric((dataset,), progress["fetched_bytes"])
    yield files
    yield size
