"""Signals to a run, noted while it makes its steps: it does as they say between two of them.

SIGTERM and SIGINT end it; SIGUSR1 has it write a checkpoint and go on, as schedulers send it before
the end of its time.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopSignal:
    """Signals that a run has received.

    Attributes:
        received: Name of the first signal that ends it; empty before it.
        asks_checkpoint: True since a SIGUSR1, until a checkpoint is written.
    """

    def __init__(self) -> None:
        self.received = ""
        self.asks_checkpoint = False

    def note(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal. A launcher sends SIGTERM more than once: the others change nothing."""
        if number == signal.SIGUSR1:
            self.asks_checkpoint = True
            return
        self.received = self.received or signal.Signals(number).name


@contextmanager
def noted_signals() -> Iterator[StopSignal]:
    """While the block runs, the signals are noted and end nothing by themselves."""
    stop = StopSignal()
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = [signal.signal(number, stop.note) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
