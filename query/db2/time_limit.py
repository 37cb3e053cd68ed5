"""The time that rewriting a statement may take: what takes long asks `go_on` now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from catalog.errors import SqlError


@dataclass(frozen=True)
class _Limit:
    timeout_s: float
    ends: float
    cancelled: Callable[[], bool]


_limit: ContextVar[_Limit | None] = ContextVar("limit of a preparation", default=None)


def is_limited() -> bool:
    """Return whether there is a limit."""
    return _limit.get() is not None


@contextmanager
def time_limited(timeout_s: float, cancelled: Callable[[], bool], began: float) -> Iterator[None]:
    """Have `go_on` give up in the block.

    Args:
        began: From when the time counts [s of time.monotonic].
    """
    before = _limit.set(_Limit(timeout_s, began + timeout_s, cancelled))
    try:
        yield
    finally:
        _limit.reset(before)


def go_on() -> None:
    """Come back if there is time left; outside of `time_limited` there always is.

    Raises:
        SqlError: SQL0952N, cancelled or over.
    """
    limit = _limit.get()
    if limit is None:
        return
    if limit.cancelled():
        raise SqlError.ended("on request")
    if time.monotonic() > limit.ends:
        raise SqlError.ended(f"after {limit.timeout_s:g} s")
