"""A queue that is fair to callers: whose request is worked on next.

A caller may hold at most as many slots as are still free: half when alone, a third beside one
other. The same holds for places in the queue. So a new caller finds a slot unless many callers hold
all that they may. The queue serves callers in rotation, each in the order of their requests.
"""

import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future

from starlette.types import Scope

from catalog.errors import ServerBusy


class Slot:
    """One request's slot, or its place in the queue.

    Attributes:
        granted: Done when the request has the slot, or will never have one.
    """

    def __init__(self, queue: "FairQueue", caller: str) -> None:
        self.granted: Future[None] = Future()
        self.granted.set_running_or_notify_cancel()  # a waiter cannot cancel it
        self._queue, self.caller = queue, caller

    def release(self) -> None:
        """Give the slot back, or leave the queue; the first call counts."""
        self._queue._end(self, also_running=True)

    def withdraw(self) -> None:
        """Leave the queue; keep the slot where it is granted already."""
        self._queue._end(self, also_running=False)


class FairQueue:
    """The slots of one kind of work, in one process. Any thread may use it.

    Attributes:
        slots: How many requests are worked on at once.
        granted_at: When a request last got a slot (`time.monotonic`).
    """

    def __init__(self, slots: int, waiting: int, retry_s: float = 5.0) -> None:
        """All slots are free.

        Args:
            slots: How many requests are worked on at once.
            waiting: How many more may wait.
            retry_s: When a refused caller is told to try again [s].
        """
        self.slots, self._free, self._room, self._retry_s = slots, slots, waiting, retry_s
        self.granted_at = -math.inf
        self._lock = threading.Lock()
        self._running: set[Slot] = set()
        self._held: Counter[str] = Counter()
        # By caller; the first one is served next.
        self._queues: OrderedDict[str, deque[Slot]] = OrderedDict()

    @property
    def running(self) -> int:
        """Number of requests that have a slot."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Number of requests that wait for a slot."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    def enter(self, caller: str) -> Slot:
        """A slot for a caller's request, granted at once where one is free; release it at the end.

        Raises:
            ServerBusy: As many of the caller's requests wait as may wait.
        """
        slot = Slot(self, caller)
        with self._lock:
            queue = self._queues.get(caller, deque())
            if not queue and self._held[caller] < self._free:
                self._begin(slot)
            elif len(queue) >= self._room:
                self._forget(caller)
                raise ServerBusy(self._retry_s)
            else:
                self._room -= 1
                queue.append(slot)
                self._queues[caller] = queue
                return slot
        slot.granted.set_result(None)
        return slot

    def _end(self, slot: Slot, *, also_running: bool) -> None:
        with self._lock:
            queue = self._queues.get(slot.caller, deque())
            ended: list[Slot] = []
            if slot in queue:
                self._left(slot, queue)
                ended.append(slot)
            elif also_running and slot in self._running:
                self._running.remove(slot)
                self._held[slot.caller] -= 1
                self._forget(slot.caller)
                self._free += 1
                ended.extend(self._next())
        for each in ended:  # outside of the lock: its callbacks may enter the queue
            each.granted.set_result(None)

    def _next(self) -> Iterator[Slot]:
        """Grant free slots to waiting callers in rotation."""
        while True:
            caller = next((each for each in self._queues if self._held[each] < self._free), None)
            if caller is None:
                return
            slot = self._queues[caller][0]
            self._left(slot, self._queues[caller])
            if caller in self._queues:
                self._queues.move_to_end(caller)
            self._begin(slot)
            yield slot

    def _begin(self, slot: Slot) -> None:
        self.granted_at = time.monotonic()
        self._running.add(slot)
        self._held[slot.caller] += 1
        self._free -= 1

    def _left(self, slot: Slot, queue: "deque[Slot]") -> None:
        queue.remove(slot)
        self._room += 1
        if not queue:
            del self._queues[slot.caller]

    def _forget(self, caller: str) -> None:
        if not self._held[caller]:
            del self._held[caller]


def caller_of(scope: Scope) -> str:
    """The caller whose share a request counts against: its user, or its address without one.

    All tokens of a user are one caller, and so are all unauthenticated requests of an address.
    """
    context = scope["state"]["context"]
    user = context.caller.user if context.caller is not None else ""
    return f"user {user}" if user else f"address {context.address}"
