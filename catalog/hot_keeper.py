"""Keeps the newest snapshot in memory: loaded in the background, and brought up to each commit.

Meanwhile, and where it does not fit, questions go to the catalog itself.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import duckdb
import pyarrow as pa

from catalog.errors import FramesiftError
from catalog.hot_snapshot import HotSnapshot, TooLarge
from catalog.wide_refresh import MustLoad

_LOG = logging.getLogger(__name__)

_REST = 3.0
"""After a long load the next one waits for so many times as long: where commits come faster than
snapshots are loaded, loading takes a quarter of the time and not all of it. A refresh waits for
nothing: it takes a fraction of a load."""

_LONG_LOAD_S = 1.0

_LARGE = 200_000
"""Where there are so many files, questions wait for a refresh: of 1,000,000 frames it takes 0.4 s
of CPU, which a question to Parquet takes, too; many of these would leave the refresh none."""

_PATIENCE_S = 5.0

_LOOK_S = 0.05

Inspecting = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]


class HotSnapshots:
    """Keeps the newest snapshot in memory, as far as it fits.

    Attributes:
        tried: Whether a load has ended, well or not: answers are as fast as they will be.
    """

    def __init__(
        self,
        newest: Callable[[], int],
        inspecting: Inspecting,
        budget_mb: int,
        limits: dict[str, str],
    ) -> None:
        """Nothing is loaded before the first question.

        Args:
            newest: Number of the newest snapshot.
            inspecting: CatalogStore.inspecting.
            budget_mb: Memory that the tables may take [MB].
            limits: DuckDB's settings of memory and threads for questions.
        """
        self._newest, self._inspecting = newest, inspecting
        self._budget_mb, self._limits = budget_mb, limits
        self._held: HotSnapshot | None = None
        self._state = threading.Condition()
        self._working = self._refreshing = False
        self._not_before = 0.0
        self._must_load = False  # what is held cannot be refreshed to what was committed
        self._drops = 0
        self._refused = -1
        self.tried = False

    def at(self, number: int | None) -> HotSnapshot | None:
        """The snapshot of that number, or the newest, if it is in memory; else it may be soon.

        Waits for a large one that is being brought up to what was committed.
        """
        held = self._held
        if number is not None:
            return held if held is not None and held.number == number else None
        newest = self._newest()
        if held is not None and held.number == newest:
            return held
        # A catalog that was put back has a newest that is older: what is held is of no use then.
        behind = held is None or held.number < newest
        waits = held is not None and held.files >= _LARGE
        del held  # who waits must not keep it
        until = time.monotonic() + _PATIENCE_S
        with self._state:
            while True:
                if behind and self._held is not None and self._held.number >= newest:
                    return self._held
                self._begin(newest)
                if not (waits and self._refreshing and self._state.wait(until - time.monotonic())):
                    return None

    def _begin(self, newest: int) -> None:
        """Begin to bring the newest snapshot into memory, if nothing speaks against it."""
        if self._working or newest == self._refused:
            return
        if self._rests and (self._held is None or self._must_load):
            return
        thread = threading.Thread(
            target=self._load, args=(newest, self._drops), name="hot-snapshot", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # no more threads: the next question tries again
            _LOG.warning("snapshot %s was not loaded into memory: %s", newest, error)
        else:
            self._working, self._refreshing = True, self._held is not None

    @property
    def _rests(self) -> bool:
        return time.monotonic() < self._not_before

    @property
    def held_bytes(self) -> int:
        """Memory that the tables of the snapshot that is held take; 0 while there is none."""
        held = self._held
        return 0 if held is None else held.table_bytes

    def wait(self, seconds: float) -> bool:
        """Wait until the newest snapshot is in memory, or cannot be; whether it is."""
        until = time.monotonic() + seconds
        while self.at(None) is None:
            if self._refused == self._newest() or time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def drop(self) -> None:
        """Hold nothing any more; a load that is under way is of no use."""
        self._drops += 1
        self._held = None

    def _load(self, wanted: int, drops: int) -> None:
        try:
            with self._inspecting() as cursor:
                self._must_load = not self._refresh(cursor)
                if self._must_load and not self._rests:
                    self._tell(working=True)
                    self._load_all(cursor)
                    self._must_load = False
        except TooLarge:
            self._refused = wanted
            _LOG.warning(
                "snapshot %s does not fit into the %s MB of FRAMESIFT_HOT_MEMORY_MB; questions "
                "go to the catalog itself", wanted, self._budget_mb,
            )  # fmt: skip
        except (FramesiftError, duckdb.Error, pa.ArrowException) as error:
            # Closed meanwhile, its cursor fails in one way or another.
            level = logging.WARNING if self._drops == drops else logging.DEBUG
            _LOG.log(level, "snapshot %s was not loaded into memory: %s", wanted, error)
        finally:
            if self._drops != drops:
                self._held = None
            self.tried = True
            self._tell(working=False)

    def _tell(self, *, working: bool) -> None:
        """Let those who wait for a refresh look again."""
        with self._state:
            self._working, self._refreshing = working, False
            self._state.notify_all()

    def _refresh(self, cursor: duckdb.DuckDBPyConnection) -> bool:
        """Bring what is held up to the cursor's snapshot; whether that could be done."""
        held = self._held
        if held is None:
            return False
        try:
            self._held = held.refreshed(cursor)
        except (MustLoad, duckdb.Error, pa.ArrowException) as reason:
            _LOG.info("snapshot %s in memory is not refreshed but loaded: %s", held.number, reason)
            return False
        held.retire()
        return True

    def _load_all(self, cursor: duckdb.DuckDBPyConnection) -> None:
        began = time.monotonic()
        # The old one goes first: two of them would be twice the budget.
        self._held = None
        try:
            self._held = HotSnapshot(cursor, self._budget_mb, self._limits)
        finally:
            ended = time.monotonic()
            if ended - began > _LONG_LOAD_S:
                self._not_before = ended + _REST * (ended - began)
