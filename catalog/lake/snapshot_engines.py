"""Engines that read older snapshots: one memory budget for all of them.

An older snapshot is read by a DuckDB of its own, whose memory limit holds for itself alone: twelve
statements of twelve snapshots took six times the limit of one. So a server has a few places for
such engines, and each has its part of the budget. Callers who ask the same snapshot share its
engine. An engine that nobody uses gives its place to the next snapshot. A caller uses half of the
places at most, and those who wait get theirs in order.
"""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb

from catalog.accounts.caller import current_caller
from catalog.errors import CatalogBusy
from catalog.lake.connection import DISCOVER, Lake, close

if TYPE_CHECKING:
    from catalog.lake.limited_databases import LimitedDatabases

KEPT_OPEN = 4
"""Engines that stay open without use: opening one takes 0.2 s."""

_LEAST_BYTES = 256 * 2**20
"""Memory of one engine, where the budget has twice as much; DuckDB asks for 125 MB a thread."""

_WAIT_S = 30.0

Limits = dict[str, str]
OpenLake = Callable[[Limits], Lake]


@dataclass(eq=False)
class _Engine:
    """An engine, open or being opened."""

    users: "Counter[str]" = field(default_factory=Counter)
    """How many cursors each caller has on it."""
    opening: threading.Lock = field(default_factory=threading.Lock)
    """Held while it is opened."""
    lake: Lake | None = None
    """Its connection, once it is open."""
    limited: "LimitedDatabases | None" = None
    """The databases of some rows beside that."""


class SnapshotEngines:
    """The engines of a process that read older snapshots.

    Safe to use from several threads.
    """

    def __init__(self, limits: Limits, *, share_budget: bool) -> None:
        """Open nothing yet.

        Args:
            share_budget: Hold all engines together to the memory and spill limit, for a process
                that answers many callers; else each has them whole, and none waits for a place.
        """
        self._limits, self._share_budget = limits, share_budget
        self._places: tuple[int, Limits] | None = None
        self._engines: OrderedDict[Hashable, _Engine] = OrderedDict()  # least recently used first
        self._dismissed: list[_Engine] = []  # closed with their last user
        self._waiting: list[tuple[object, str]] = []
        self._changed = threading.Condition()

    @contextmanager
    def cursor(
        self, key: Hashable, open_lake: OpenLake, limited_to: str | None = None
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of an engine, which is opened where it is not yet.

        Args:
            key: What the engine reads: a snapshot.
            open_lake: Opens it, with the limits that it is given.
            limited_to: Which rows, as LimitedDatabases.using has it: the cursor uses their
                database. Every row when None.
        """
        caller = current_caller()
        engine = self._take(key, caller)
        try:
            with engine.opening:
                if engine.lake is None:
                    engine.lake = open_lake(self._limits_of_one())
                    from catalog.lake.limited_databases import of_files  # the newest needs none

                    engine.limited = of_files(engine.lake.connection)
                engine.lake.sign_in()
                cursor = engine.lake.connection.cursor()
            try:
                if limited_to is None or engine.limited is None:
                    yield cursor
                else:
                    with engine.limited.using(limited_to) as name:
                        cursor.execute(f"USE {name}.{DISCOVER}")
                        yield cursor
            finally:
                close(cursor)
        finally:
            self._give_back(key, engine, caller)

    def forget(self, key: Hashable) -> None:
        """Open the engine again at the next question; who uses it now goes on."""
        with self._changed:
            self._dismiss(key)

    def close(self) -> None:
        """Close all engines, also those in use."""
        with self._changed:
            engines = [*self._engines.values(), *self._dismissed]
            self._engines.clear()
            self._dismissed.clear()
            for engine in engines:
                if engine.lake is not None:
                    engine.lake.close()

    def __len__(self) -> int:
        """Number of engines, open or being opened."""
        return len(self._engines) + len(self._dismissed)

    def _take(self, key: Hashable, caller: str) -> _Engine:
        ticket, ends = object(), time.monotonic() + _WAIT_S
        with self._changed:
            self._waiting.append((ticket, caller))
            try:
                while not self._may_go(key, caller, ticket):
                    left_s = ends - time.monotonic()
                    if left_s <= 0:
                        raise CatalogBusy(
                            "other snapshots are being read, in all places there are for older "
                            f"ones, for {_WAIT_S:g} s; ask again, or ask the newest snapshot"
                        )
                    self._changed.wait(left_s)
                engine = self._engines.setdefault(key, _Engine())
                self._engines.move_to_end(key)
                engine.users[caller] += 1
                return engine
            finally:
                self._waiting.remove((ticket, caller))
                self._changed.notify_all()

    def _may_go(self, key: Hashable, caller: str, ticket: object) -> bool:
        """Return whether a caller may use this engine now; makes room for it where needed."""
        if key in self._engines or not self._share_budget:
            return True
        engines, _ = self._shares()
        most = max(2, engines // 2)  # two, as some questions read two snapshots at once
        if self._used_by(caller) >= most:
            return False
        for earlier, whose in self._waiting:
            if earlier is ticket:
                break
            if self._used_by(whose) < most:
                return False
        idle = [key for key, engine in self._engines.items() if not engine.users]
        if len(self) >= engines and idle:
            self._dismiss(idle[0])
        return len(self) < engines

    def _used_by(self, caller: str) -> int:
        return sum(caller in engine.users for engine in (*self._engines.values(), *self._dismissed))

    def _give_back(self, key: Hashable, engine: _Engine, caller: str) -> None:
        with self._changed:
            engine.users[caller] -= 1
            engine.users += Counter()  # without zeros
            if not engine.users:
                if engine in self._dismissed:
                    self._dismissed.remove(engine)
                    if engine.lake is not None:
                        engine.lake.close()
                elif engine.lake is None and self._engines.get(key) is engine:  # opening failed
                    del self._engines[key]
            idle = [key for key, one in self._engines.items() if not one.users]
            for number in idle[: max(0, len(idle) - KEPT_OPEN)]:
                self._dismiss(number)
            self._changed.notify_all()

    def _dismiss(self, key: Hashable) -> None:
        engine = self._engines.pop(key, None)
        if engine is None:
            return
        if engine.users:
            self._dismissed.append(engine)
        elif engine.lake is not None:
            engine.lake.close()

    def _limits_of_one(self) -> Limits:
        return self._shares()[1] if self._share_budget else self._limits

    def _shares(self) -> tuple[int, Limits]:
        """The number of engines that there may be, and the limits of each."""
        if self._places is None:
            budget = bytes_of(self._limits["memory_limit"])
            engines = min(KEPT_OPEN, max(2, budget // _LEAST_BYTES))
            shares = dict(self._limits)
            for name in ("memory_limit", "max_temp_directory_size"):
                if name in shares:
                    shares[name] = f"{bytes_of(shares[name]) // engines}B"
            self._places = engines, shares
        return self._places


def bytes_of(text: str) -> int:
    """A size as DuckDB spells it ("2GB") in bytes."""
    with duckdb.connect(":memory:") as connection:
        row = connection.execute("SELECT parse_formatted_bytes(?)", [text]).fetchone()
    return int(row[0]) if row else 0
