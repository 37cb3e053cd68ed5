"""SIGTERM and SIGINT, noted while a run makes its steps, so that it ends between two of them."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopSignal:
    """Whether the run has been told to end.

    Attributes:
        received: Name of the first signal; empty before it.
    """

    def __init__(self) -> None:
        self.received = ""

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal. A launcher sends SIGTERM more than once: the others change nothing."""
        self.received = self.received or signal.Signals(number).name


@contextmanager
def noted_signals() -> Iterator[StopSignal]:
    """While the block runs, the two signals are noted and end nothing by themselves."""
    stop = StopSignal()
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, stop.note) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
