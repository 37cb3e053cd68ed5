"""Whose request is worked on next: places of one kind of work, shared fairly by those who ask.

A caller holds no more places than are left free, and fills no more of the queue than is left of it:
alone half of either, beside another one a third. So who comes anew finds a place, unless many take
all that they may. The queue is served caller by caller, each in the order of its requests.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from concurrent.futures import Future

from starlette.types import Scope

from catalog.errors import ServerBusy


class Turn:
    """One request's place, or its place in the queue.

    Attributes:
        came: Done when it has a place, or will never have one.
    """

    def __init__(self, turns: "Turns", who: str) -> None:
        self.came: Future[None] = Future()
        self.came.set_running_or_notify_cancel()  # who waits for it cannot cancel it
        self._turns, self.who = turns, who

    def end(self) -> None:
        """Give the place back, or leave the queue; the first call counts."""
        self._turns._end(self, also_running=True)

    def withdraw(self) -> None:
        """Leave the queue; a place that there is, is kept."""
        self._turns._end(self, also_running=False)


class Turns:
    """The places of one kind of work, in one process. Any thread may ask.

    Attributes:
        places: How many there are.
    """

    def __init__(self, places: int, waiting: int, retry_s: float = 5.0) -> None:
        """All are free.

        Args:
            places: How many requests are worked on at once.
            waiting: How many more may wait.
            retry_s: When those who may not are told to come again [s].
        """
        self.places, self._free, self._room, self._retry_s = places, places, waiting, retry_s
        self._lock = threading.Lock()
        self._running: set[Turn] = set()
        self._held: Counter[str] = Counter()
        # By caller, who comes next first.
        self._queues: OrderedDict[str, deque[Turn]] = OrderedDict()

    @property
    def running(self) -> int:
        """How many have a place."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        with self._lock:
            return sum(map(len, self._queues.values()))

    def enter(self, who: str) -> Turn:
        """A turn of that caller, at once where there is a place for them; it has to be ended.

        Raises:
            ServerBusy: As many of theirs wait as may wait.
        """
        turn = Turn(self, who)
        with self._lock:
            queue = self._queues.get(who, deque())
            if not queue and self._held[who] < self._free:
                self._begin(turn)
            elif len(queue) >= self._room:
                self._forget(who)
                raise ServerBusy(self._retry_s)
            else:
                self._room -= 1
                queue.append(turn)
                self._queues[who] = queue
                return turn
        turn.came.set_result(None)
        return turn

    def _end(self, turn: Turn, *, also_running: bool) -> None:
        with self._lock:
            queue = self._queues.get(turn.who, deque())
            began: list[Turn] = []
            if turn in queue:
                self._left(turn, queue)
                began.append(turn)
            elif also_running and turn in self._running:
                self._running.remove(turn)
                self._held[turn.who] -= 1
                self._forget(turn.who)
                self._free += 1
                began.extend(self._next())
        for each in began:  # outside of the lock: what follows on it may ask for turns
            each.came.set_result(None)

    def _next(self) -> Iterator[Turn]:
        """Give free places to those who wait, one to each caller in turn."""
        while True:
            who = next((who for who in self._queues if self._held[who] < self._free), None)
            if who is None:
                return
            turn = self._queues[who][0]
            self._left(turn, self._queues[who])
            if who in self._queues:
                self._queues.move_to_end(who)
            self._begin(turn)
            yield turn

    def _begin(self, turn: Turn) -> None:
        self._running.add(turn)
        self._held[turn.who] += 1
        self._free -= 1

    def _left(self, turn: Turn, queue: "deque[Turn]") -> None:
        queue.remove(turn)
        self._room += 1
        if not queue:
            del self._queues[turn.who]

    def _forget(self, who: str) -> None:
        if not self._held[who]:
            del self._held[who]


def whose(scope: Scope) -> str:
    """Whose share of the places a request takes: its user's, or its address's where none is known.

    All tokens of a user are one, and so are all who come from one address unasked.
    """
    passage = scope["state"]["passage"]
    user = passage.caller.user if passage.caller is not None else ""
    return f"user {user}" if user else f"address {passage.address}"
