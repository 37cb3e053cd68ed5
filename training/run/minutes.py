"""The clock of a run's checkpoints."""

import time


class Minutes:
    """Tells when the next checkpoint is due by time."""

    def __init__(self, minutes: float | None) -> None:
        """Begin to count.

        Args:
            minutes: Between two; None where time does not matter.
        """
        self._every_s = None if minutes is None else 60 * minutes
        self._since_s = time.monotonic()

    @property
    def is_due(self) -> bool:
        """True where so much time has gone by since the last."""
        return self._every_s is not None and time.monotonic() - self._since_s >= self._every_s

    def is_done(self) -> None:
        """Count from now."""
        self._since_s = time.monotonic()
