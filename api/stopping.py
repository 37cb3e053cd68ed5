"""Whether this server process is stopping, and until when it may finish what it accepted."""

import time


class Stopping:
    """Told by the signal's handler, asked by everything else.

    Attributes:
        begun: Whether it is stopping.
    """

    def __init__(self) -> None:
        self.begun = False
        self._by = 0.0

    def begin(self, seconds: float) -> None:
        """It stops, and has so long to finish; the first call counts."""
        if not self.begun:
            self._by = time.monotonic() + seconds
            self.begun = True

    @property
    def seconds_left(self) -> float:
        """How long what was accepted may still take [s]."""
        return max(0.0, self._by - time.monotonic())
