"""Counters and gauges of this process, or of all worker processes of a server together.

Several processes count into files of one folder: api.server.metrics_folder.
"""

import time

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

REQUESTS = Counter(
    "framesift_requests",
    "Requests by route (its template), method and status; 499 is a client that left.",
    ("route", "method", "status"),
)
REQUEST_SECONDS = Histogram(
    "framesift_request_seconds", "Time to the end of the answer, by route and method.",
    ("route", "method"), buckets=_SECONDS,
)  # fmt: skip
QUERY_SECONDS = Histogram(
    "framesift_query_seconds",
    "Time to the first rows or bytes, by kind: sql, search, selection, statistics, picture, "
    "assistant.",
    ("kind",), buckets=_SECONDS,
)  # fmt: skip
IMAGE_CACHE = Counter(
    "framesift_image_cache", "Made pictures asked of the cache, by result.", ("result",)
)
STATEMENTS = Gauge(
    "framesift_statements",
    "Statements now, tasks among them, by state: running, waiting.",
    ("state",),
    multiprocess_mode="livesum",
)
SNAPSHOT_BYTES = Gauge(
    "framesift_snapshot_memory_bytes", "Memory of the snapshots that the workers hold.",
    multiprocess_mode="livesum",
)  # fmt: skip
TASKS = Gauge(
    "framesift_tasks",
    "Asynchronous tasks that are not done.",
    multiprocess_mode="livesum",
)
WORKERS_REPLACED = Counter(
    "framesift_workers_replaced", "Workers that were replaced, by why: ended, hung.", ("why",)
)
COMPACTIONS = Counter(
    "framesift_compactions",
    "Compactions that the server began by itself, by end: done, failed.",
    ("end",),
)
for _end in ("done", "failed"):  # so that the first one is an increase, too
    COMPACTIONS.labels(_end)
UNCOMPACTED_FILES = Gauge(
    "framesift_uncompacted_files",
    "Data files that commits added to a table since the last compaction, by the last look.",
    multiprocess_mode="livemax",
)
REFUSED = Counter(
    "framesift_refused_busy", "Requests refused because too many wait, by kind.", ("kind",)
)


def observe_query(kind: str, began: float) -> None:
    """Count a question that began then, by time.perf_counter."""
    QUERY_SECONDS.labels(kind).observe(time.perf_counter() - began)
