"""Counts on this machine, in threads: reading waits and counting runs outside the interpreter."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from catalog.errors import InvalidInput
from ingest.scan.engine import Counted, CountTask
from ingest.scan.portions import Portion
from ingest.scan.read_frame import FrameCount, read_frame

_MOST_PORTIONS = 8


class ThreadEngine:
    """Threads of this process; the files they hold at once are ``workers``."""

    def __init__(self, workers: int, frames_each: int = 64) -> None:
        """Count with so many threads.

        Args:
            workers: Labels read or counted at once.
            frames_each: Frames of a portion; about two portions are under way at once.

        Raises:
            InvalidInput: There are no workers.
        """
        if workers < 1:
            raise InvalidInput(f"workers: got {workers}, expected at least 1")
        self.workers, self.frames_each = workers, frames_each

    def count(self, task: CountTask, portions: Iterable[Portion]) -> Iterator[Counted]:
        """See Engine."""
        read = partial(read_frame, task.files, class_list=task.class_list)
        pending: deque[tuple[Portion, list[Future[FrameCount]]]] = deque()
        under_way, most = 0, self.frames_each + 2 * self.workers
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="count")
        try:
            for portion in portions:
                counts = [pool.submit(read, frame) for frame in task.to_read(portion)]
                pending.append((portion, counts))
                under_way += len(portion.frames)
                while len(pending) > _MOST_PORTIONS or under_way > most or not pending[0][1]:
                    first, futures = pending.popleft()
                    under_way -= len(futures)
                    yield first, [future.result() for future in futures]
                    if not pending:
                        break
            for first, futures in pending:
                yield first, [future.result() for future in futures]
        finally:
            pool.shutdown(cancel_futures=True)
