"""Statements whose rows may be wide run a few at a time, one of each caller.

An answer of rows at Db2's largest width takes 450 MB while it is read: what DuckDB hands over at
once, a batch, and its text.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.accounts.caller import current_caller

PLACES = 2
_LOOK_S = 0.05

_changed = threading.Condition()
_waiting: list[tuple[object, str]] = []
_running: list[str] = []


@contextmanager
def wide_slot(go_on: Callable[[], None]) -> Iterator[None]:
    """Run the block when there is a place for it; places are given in the order of coming.

    Args:
        go_on: Asked while waiting; raises what ends it.
    """
    caller = current_caller()
    own = (object(), caller)
    with _changed:
        _waiting.append(own)
        try:
            while not _may_go(own):
                _changed.wait(_LOOK_S)
                go_on()
            _running.append(caller)
        finally:
            _waiting.remove(own)
            _changed.notify_all()
    try:
        yield
    finally:
        with _changed:
            _running.remove(caller)
            _changed.notify_all()


def _may_go(own: tuple[object, str]) -> bool:
    if len(_running) >= PLACES:
        return False
    return next(one for one in _waiting if one[1] not in _running or one is own) is own and (
        own[1] not in _running
    )
