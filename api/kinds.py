"""What kind of work a request is: by this threads are shared out, and query times are counted."""

import re

from api.callers import below

_KINDS = {
    "health": ("/healthz",),
    "ready": ("/readyz",),
    "metrics": ("/metrics",),
    "other": ("/v1/sql/explain",),
    "sql": ("/db2whrest/v1/sql_query", "/db2whrest/v1/sql_query_async", "/v1/sql"),
    "search": ("/db2whrest/v1/search", "/db2whrest/v1/report"),
    "selection": ("/v1/selections", "/v1/frames"),
    "statistics": ("/v1/statistics", "/v1/classes"),
    "picture": ("/v1/images", "/v1/labels", "/v1/overlays"),
    "assistant": ("/mcp",),
}

_GAPS = re.compile(r"/v1/datasets/[^/]+/gaps")

OTHER = "other"
"""Whatever is none of these."""


def kind_of(path: str) -> str:
    """The kind of a request to that path."""
    if _GAPS.fullmatch(path):
        return "statistics"
    return next((kind for kind, places in _KINDS.items() if below(path, places)), OTHER)
