"""Limits on what a staging takes from a source: megabytes and requests a second."""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator

from ingest.sources.opened_file import OpenedFile
from ingest.sources.source_options import SourceOptions
from pipeline.cache.aligned_buffer import LARGEST_BYTES

_MB = 1_000_000


class TokenBucket:
    """Lets so many units through a second; what one second leaves, the next may take besides.

    In any stretch of T seconds it lets through what T + 1 seconds allow, and no more. May be called
    from many threads at once.
    """

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with a second's units.

        Args:
            per_s: Units a second; 0 for any number.
            clock: Gives the time [s].
        """
        self.per_s, self._clock = per_s, clock
        self._taken_until = clock() - 1
        self._lock = threading.Lock()

    def take(self, units: float) -> float:
        """Take units, in turn; seconds to wait until they may be used."""
        if not self.per_s:
            return 0.0
        with self._lock:
            now = self._clock()
            self._taken_until = max(self._taken_until, now - 1) + units / self.per_s
            return max(0.0, self._taken_until - now)


class RateLimit:
    """Megabytes and requests that a staging may take from one source.

    A file's request and up to 16 MB of it are taken before it is opened; the rest of a larger
    one as it comes, and with it the further requests for it.
    """

    def __init__(
        self,
        mb_per_s: float = 0.0,
        requests_per_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take nothing yet.

        Args:
            mb_per_s: Megabytes (10^6 bytes) a second; 0 for any number.
            requests_per_s: Requests for files a second; 0 for any number.
        """
        self._bytes = TokenBucket(mb_per_s * _MB, clock)
        self._requests = TokenBucket(requests_per_s, clock)

    @classmethod
    def of(cls, options: SourceOptions) -> "RateLimit":
        """The limits of a source with these options."""
        return cls(options.max_mb_per_s, options.max_requests_per_s)

    def open(self, size: int) -> float:
        """Take a request and the first bytes of a file; seconds to wait before it is opened.

        Args:
            size: Bytes that are to come of it.
        """
        return max(self._requests.take(1), self._bytes.take(min(size, LARGEST_BYTES)))

    def metered(self, opened: OpenedFile, size: int, pause: Callable[[float], None]) -> OpenedFile:
        """A file after `open`; its further bytes come as slowly as the limits demand.

        Args:
            size: Bytes that are to come of it, as `open` was told.
        """
        if size <= LARGEST_BYTES:
            return opened
        return dataclasses.replace(opened, pieces=self._slowed(opened, pause))

    def _slowed(self, opened: OpenedFile, pause: Callable[[float], None]) -> Iterator[bytes]:
        paid, requests = LARGEST_BYTES, 0
        for piece in opened.pieces:
            due = max(0, len(piece) - paid)
            paid -= len(piece) - due
            pause(max(self._requests.take(requests), self._bytes.take(due)))
            yield piece
            requests = 1 if opened.in_ranges else 0

    def least_s(self, files: int, size: int) -> float:
        """Least time in which so many files of so many bytes come [s]."""
        seconds = 0.0
        for bucket, units in ((self._requests, files), (self._bytes, size)):
            if bucket.per_s:
                seconds = max(seconds, units / bucket.per_s)
        return seconds


UNLIMITED = RateLimit()
"""Rate limit of a source that has none."""
