"""Tells whether this server process is stopping, and until when requests may finish."""

import os
import signal
import time
from collections.abc import Sequence


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
        """The time that accepted requests may still take [s]."""
        return max(0.0, self._by - time.monotonic())


def end_of(signals: Sequence[int]) -> None:
    """End the process as the first of these signals does; SIGTERM is an order that was carried out.

    Docker, Kubernetes and systemd take another exit code than 0 after their SIGTERM for a failure.
    """
    for sig in signals[:1]:
        if sig != signal.SIGTERM:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)


class Terminal:
    """The terminal that the server was started on, whose end is that of the server, too.

    There is none for a service, and under nohup none counts. SIGHUP means both: that a terminal is
    gone, and that files are to be read again.
    """

    def __init__(self) -> None:
        ignores = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._counts = not ignores and _has_terminal()

    @property
    def is_gone(self) -> bool:
        """Whether it was there, and is no more."""
        return self._counts and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
