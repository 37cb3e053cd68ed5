"""Preparing a statement, which is Python's work: in its time, one at a time for each caller."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.accounts.caller import current_caller
from query.db2.time_limit import go_on, is_limited, time_limited

_LOOK_S = 0.05


@contextmanager
def preparing(
    timeout_s: float, cancelled: Callable[[], bool], began: float | None = None
) -> Iterator[None]:
    """Prepare a statement in the block, once those that the same caller sent before are prepared.

    Args:
        began: From when the time counts [s of time.monotonic]; from now when None.
    """
    if is_limited():  # part of a preparation
        yield
        return
    with time_limited(timeout_s, cancelled, time.monotonic() if began is None else began):
        go_on()
        with _turns.turn(current_caller()):
            yield


class _Turns:
    """One at a time for each caller, in the order of their coming."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, list[object]] = {}

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        own = object()
        with self._changed:
            line = self._waiting.setdefault(caller, [])
            line.append(own)
        try:
            with self._changed:
                while line[0] is not own:
                    self._changed.wait(_LOOK_S)
                    go_on()
            yield
        finally:
            with self._changed:
                line.remove(own)
                if not line:
                    del self._waiting[caller]
                self._changed.notify_all()


_turns = _Turns()
