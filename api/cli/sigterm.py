"""SIGTERM as an exit that clears up: a job that is cancelled gets one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Have SIGTERM end the process by an exception for the block, which so clears up behind it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
