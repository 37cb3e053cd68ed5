"""The id of the request that is being answered, for whatever says something about it."""

import re
from contextvars import ContextVar
from uuid import uuid4

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""That of the request whose task or thread this is; "" outside of one."""


def taken_or_made(header: str) -> str:
    """The id that a client gives its request where it is well-formed, else a new one."""
    return header if _WELL_FORMED.fullmatch(header) else uuid4().hex
