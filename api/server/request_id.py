"""Ids of the request that is being answered, for whatever says something about it."""

import re
from contextvars import ContextVar
from uuid import uuid4

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)
"""A header of W3C's Trace Context."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""That of the request whose task or thread this is; "" outside of one."""

trace_id: ContextVar[str] = ContextVar("trace_id", default="")
"""Number of the trace that it belongs to, as the client's traceparent has it, or made here; ""
outside of one."""


def taken_or_made(header: str) -> str:
    """The id that a client gives its request where it is well-formed, else a new one."""
    return header if _WELL_FORMED.fullmatch(header) else uuid4().hex


def trace_taken_or_made(traceparent: str) -> str:
    """The trace that a client says its request belongs to, or a new number."""
    match = _TRACEPARENT.fullmatch(traceparent)
    return match[1] if match else uuid4().hex
