"""Work in the background that leaves the processor to whoever asks something meanwhile."""

import os
import threading
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

_NICENESS = 5
"""A thread of the usual 0 then has three times its share of a core that both want."""


def giving_way(make: Callable[[], Made]) -> Made:
    """What ``make`` gives, or raises, in a thread of lower priority.

    The priority is that thread's alone (Linux), and no thread can raise its own again.
    """
    results: list[Made] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _niceness())
            results.append(make())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, name="giving-way", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return results[0]


def _niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) + _NICENESS
