"""The caller for whom this process works at the moment: callers share its engines and memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_caller: ContextVar[str] = ContextVar("caller", default="")


@contextmanager
def acting_for(caller: str) -> Iterator[None]:
    """The block acts for this caller, also in threads that anyio starts."""
    before = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(before)


def current_caller() -> str:
    """The caller of `acting_for`; "" outside of it."""
    return _caller.get()
