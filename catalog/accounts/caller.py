"""On whose behalf this process works at the moment: callers share its places and its memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_caller: ContextVar[str] = ContextVar("caller", default="")


@contextmanager
def asked_by(caller: str) -> Iterator[None]:
    """Do the block's work, also in threads that anyio starts, for this caller."""
    before = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(before)


def current_caller() -> str:
    """The caller of `asked_by`; "" outside of it."""
    return _caller.get()
