"""Counts on many machines: portions are units that Dask's workers count.

A unit whose worker dies is given to another one; units are counted as often as needed, because
counting changes nothing. Whoever may talk to Dask's scheduler or workers runs code there, so they
ask for certificates (https://distributed.dask.org/en/stable/tls.html).
"""

import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from distributed import Client, Future
from distributed.client import FutureCancelledError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError

from catalog.errors import EngineFailed
from ingest.scan.count_unit import count_unit, read_counts
from ingest.scan.engine import Counted, CountTask
from ingest.scan.portions import Portion

_AHEAD = 2
"""Units for each thread of the workers that are under way at once: one counted, one waiting."""


class DaskEngine:
    """Workers of a Dask cluster, however they were started."""

    def __init__(self, client: "Client", frames_each: int = 2_000) -> None:
        """Count with the workers of a client.

        Args:
            frames_each: Frames of a unit. 1,000 to 5,000: seconds of counting each, against 1 to
                3 ms that the scheduler spends on a task.
        """
        self.client, self.frames_each = client, frames_each

    def count(self, task: CountTask, portions: Iterable[Portion]) -> Iterator[Counted]:
        """See Engine."""
        pending: deque[tuple[Portion, Future | None]] = deque()
        scan = uuid.uuid4().hex[:12]
        try:
            for number, portion in enumerate(portions):
                future = None
                if portion.frames:
                    # A key of its own: two scans of one cluster must not share a future.
                    future = self._submit(task.unit(portion), f"count-{scan}-{number}")
                pending.append((portion, future))
                while pending and (pending[0][1] is None or len(pending) > self._most()):
                    yield self._counted(*pending.popleft())
            while pending:
                yield self._counted(*pending.popleft())
        finally:
            for _, future in pending:
                if future is not None:
                    future.cancel()

    def _submit(self, unit: bytes, key: str) -> "Future":
        return self.client.submit(count_unit, unit, key=key, pure=False)

    def _most(self) -> int:
        """Units that may be under way: workers come and go."""
        threads: dict[str, int] = self._answered(self.client.nthreads)
        return max(2, _AHEAD * sum(threads.values()))

    def _counted(self, portion: Portion, future: "Future | None") -> Counted:
        if future is None:
            return portion, []
        return portion, read_counts(self._answered(future.result))

    def _answered(self, question: Any) -> Any:
        try:
            return question()
        except KilledWorker as error:
            raise EngineFailed(
                f"{error.task}: the workers that counted it died, {error.last_worker.address} "
                "last; look at their logs (memory limit?), use smaller units (--unit-frames) "
                "and scan again: it goes on from the last commit"
            ) from error
        except (CommClosedError, FutureCancelledError, NoValidWorkerError, TimeoutError) as error:
            raise EngineFailed(
                f"Dask's scheduler is gone: {error}; start it and scan again: "
                "it goes on from the last commit"
            ) from error
