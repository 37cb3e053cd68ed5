"""Counters and gauges of this process, or of all worker processes of a server together.

Several processes count into files of one folder: api.server.metrics_folder.
"""

import time

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

REQUESTS = Counter("framesift_requests", "Requests answered.", ("route", "method", "status"))
REQUEST_SECONDS = Histogram(
    "framesift_request_seconds", "Time from a request to the end of its answer.",
    ("route", "method"), buckets=_SECONDS,
)  # fmt: skip
QUERY_SECONDS = Histogram(
    "framesift_query_seconds", "Time that a question took until its first rows or bytes.",
    ("kind",), buckets=_SECONDS,
)  # fmt: skip
IMAGE_CACHE = Counter("framesift_image_cache", "Made images asked of the cache.", ("result",))
STATEMENTS = Gauge(
    "framesift_statements",
    "Statements in SQL now.",
    ("state",),
    multiprocess_mode="livesum",
)
SNAPSHOT_BYTES = Gauge(
    "framesift_snapshot_memory_bytes", "Memory that the newest snapshot is held in.",
    multiprocess_mode="livesum",
)  # fmt: skip
TASKS = Gauge(
    "framesift_tasks",
    "Asynchronous tasks that are not done.",
    multiprocess_mode="livesum",
)
WORKERS_REPLACED = Counter(
    "framesift_workers_replaced", "Worker processes that others took the place of.", ("why",)
)
COMPACTIONS = Counter(
    "framesift_compactions", "Compactions that the server began by itself.", ("end",)
)
for _end in ("done", "failed"):  # so that the first one is an increase, too
    COMPACTIONS.labels(_end)
UNCOMPACTED_FILES = Gauge(
    "framesift_uncompacted_files",
    "Data files that commits added to a table since the last compaction.",
    multiprocess_mode="livemax",
)
REFUSED = Counter(
    "framesift_refused_busy", "Requests refused because too many of their kind wait.", ("kind",)
)


def observe_query(kind: str, began: float) -> None:
    """Count a question that began then, by time.perf_counter."""
    QUERY_SECONDS.labels(kind).observe(time.perf_counter() - began)
