"""Logs of a job, followed as they grow."""

import time
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping

_EVERY_S = 0.5


def followed_logs(
    has_ended: Callable[[], bool],
    sizes: Callable[[], Mapping[str, int]],
    read_part: Callable[[str, int], Iterator[bytes]],
) -> Iterator[tuple[str, str]]:
    """Yields what a job prints, until it has ended: the name of a log, and its new text.

    Args:
        has_ended: Whether the job has.
        sizes: Bytes of each log by now, by name.
        read_part: A log as it is now, from a byte on.
    """
    read: dict[str, int] = {}
    decoders: dict[str, IncrementalDecoder] = {}
    while True:
        # Before its logs: what it printed last is not missed.
        is_last = has_ended()
        for log, size in sizes().items():
            if size <= read.get(log, 0):
                continue
            decoder = decoders.setdefault(log, getincrementaldecoder("utf-8")("replace"))
            for chunk in read_part(log, read.get(log, 0)):
                read[log] = read.get(log, 0) + len(chunk)
                if text := decoder.decode(chunk):
                    yield log, text
        if is_last:
            return
        time.sleep(_EVERY_S)
