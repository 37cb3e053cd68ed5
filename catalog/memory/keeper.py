"""Keeps the newest snapshot in memory: loaded in the background, and brought up to each commit.

Meanwhile, and where it does not fit, questions go to the catalog itself. What many questions need
is found out of a snapshot as soon as it is there.
"""

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from enum import Enum
from typing import Protocol

import duckdb
import pyarrow as pa

from catalog.errors import FramesiftError
from catalog.lake.layouts import WIDE
from catalog.lake.snapshot import Facts, Snapshot, SnapshotSettings
from catalog.lake.sql_guard import SelectOnly
from catalog.lake.statement_watch import Cancellation, cancelled_by
from catalog.memory.interruptible import Interruptible
from catalog.memory.refresh import ReloadNeeded
from catalog.memory.snapshot import SnapshotInMemory, SnapshotReplaced, TooLarge

_LOG = logging.getLogger(__name__)

_REST = 3.0
"""After a long load the next one waits for so many times as long: where commits come faster than
snapshots are loaded, loading takes a quarter of the time and not all of it. A refresh waits for
nothing: it takes a fraction of a load."""

_LONG_LOAD_S = 1.0

_LARGE = 200_000
"""Number of files from which questions wait for a refresh: of 1,000,000 frames it takes 0.4 s of
CPU, as much as one question to Parquet; many such questions would leave the refresh none."""

_PATIENCE_S = 5.0

_LOOK_S = 0.05

_END_S = 5.0
"""Longest wait for the end of a load when the memory is closed [s]: less than a server has to
stop."""

_AGAIN_S = 0.02
"""Interval at which a load is interrupted again until it ends [s]."""

_ENGINE_FAILS = (duckdb.Error, pa.ArrowException, OSError)
"""Errors that DuckDB raises, and pyarrow where it reads from DuckDB: an interrupt is an OSError
there."""


class Files(SnapshotSettings, Protocol):
    """The catalog's own files, which memory is filled from: CatalogStore."""

    def reading_files(self, at: int | None = None) -> AbstractContextManager[Snapshot]:
        """See catalog.lake.catalog.Catalog."""

    def inspecting(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """See catalog.lake.catalog.WritableCatalog; of the newest snapshot."""

    def inspecting_alone(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """`inspecting`, by an engine of its own that computes in the caller's thread."""


class State(Enum):
    """The state of the memory: what it holds, and what it does."""

    EMPTY = "nothing"
    LOADING = "nothing yet: the newest snapshot is being loaded"
    READY = "a snapshot"
    REFRESHING = "a snapshot, which is being brought up to what was committed"
    REFUSED = "nothing, for the newest does not fit"


_WORKING = (State.LOADING, State.REFRESHING)


class MemoryKeeper:
    """Keeps the newest snapshot in memory, as far as it fits.

    Attributes:
        state: What is in memory; a question of a snapshot that is not there begins to load it.
        tried: Whether a load has ended, well or not, with what is prepared after it: answers are as
            fast as they will be.
    """

    def __init__(
        self,
        files: Files,
        newest: Callable[[], int],
        budget_mb: int,
        limits: dict[str, str],
    ) -> None:
        """Nothing is loaded before the first question.

        Args:
            files: What is loaded, and read where it is not in memory.
            budget_mb: Memory that the tables may take [MB].
            limits: DuckDB's settings of memory and threads for questions.
        """
        self._files, self._newest = files, newest
        self._budget_mb, self._limits = budget_mb, limits
        self._held: SnapshotInMemory | None = None
        self._changed = threading.Condition()
        self.state = State.EMPTY
        self._not_before = 0.0
        self._must_load = False  # what is held cannot be refreshed to what was committed
        self._loading = Interruptible()
        self._thread: threading.Thread | None = None
        self._refused = -1  # number of the snapshot that does not fit
        self.tried = False
        self._prepare: Callable[[Facts | None], None] | None = None
        self._preparing, self._ends_preparing = threading.Lock(), Cancellation()
        _KEEPERS.add(self)

    @contextmanager
    def reading(self, at: int | None = None) -> Iterator[Snapshot]:
        """See Catalog: from memory where the snapshot is there, else from the catalog's files."""
        with self.pinned(at) as pinned:
            if pinned is not None:
                cursor, in_memory = pinned
                yield Snapshot(
                    cursor, WIDE, lambda _: in_memory.facts, self._files, in_memory.number
                )
                return
        with self._files.reading_files(at) as snapshot:
            yield snapshot

    @contextmanager
    def pinned(
        self, at: int | None, limited_to: str | None = None
    ) -> Iterator[tuple[SelectOnly, SnapshotInMemory] | None]:
        """A cursor on the snapshot of that number, or the newest, where it is in memory.

        Args:
            limited_to: Which rows, as LimitedDatabases.using has it; every row when None.
        """
        in_memory = self.at(at)
        with ExitStack() as stack:
            cursor = None
            if in_memory is not None:
                with suppress(SnapshotReplaced):
                    cursor = stack.enter_context(in_memory.reading(limited_to))
            yield None if in_memory is None or cursor is None else (cursor, in_memory)

    def at(self, number: int | None) -> SnapshotInMemory | None:
        """The snapshot of that number, or the newest, if it is in memory; else it may be soon.

        Waits for a large one that is being brought up to what was committed.
        """
        snapshot, loading = self._held, self._loading
        if number is not None:
            return snapshot if snapshot is not None and snapshot.number == number else None
        newest = self._newest()
        if snapshot is not None and snapshot.number == newest:
            return snapshot
        # A catalog that was put back has a newest that is older: what is held is of no use then.
        behind = snapshot is None or snapshot.number < newest
        waits = snapshot is not None and snapshot.files >= _LARGE
        del snapshot  # who waits must not keep it
        until = time.monotonic() + _PATIENCE_S
        with self._changed:
            while not loading.ended:
                if behind and self._held is not None and self._held.number >= newest:
                    return self._held
                self._begin(newest)
                refreshes = self.state is State.REFRESHING
                if not (waits and refreshes and self._changed.wait(until - time.monotonic())):
                    break
        return None

    def _begin(self, newest: int) -> None:
        """Begin to bring the newest snapshot into memory, if nothing speaks against it."""
        if self.state in _WORKING or newest == self._refused:
            return
        if self._rests and (self._held is None or self._must_load):
            return
        thread = threading.Thread(
            target=self._load, args=(newest, self._loading), name="load-snapshot", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # no more threads: the next question tries again
            _LOG.warning("snapshot %s was not loaded into memory: %s", newest, error)
        else:
            self.state = State.LOADING if self._held is None else State.REFRESHING
            self._thread = thread

    @property
    def _rests(self) -> bool:
        return time.monotonic() < self._not_before

    @property
    def loaded_bytes(self) -> int:
        """Memory that the tables of the snapshot that is held take; 0 while there is none."""
        snapshot = self._held
        return 0 if snapshot is None else snapshot.table_bytes

    def wait(self, seconds: float) -> bool:
        """Wait until the newest snapshot is in memory, or cannot be; whether it is."""
        until = time.monotonic() + seconds
        while self.at(None) is None:
            if self._refused == self._newest() or time.monotonic() > until:
                return False
            time.sleep(_LOOK_S)
        return True

    def prepare_by(self, prepare: Callable[[Facts | None], None]) -> None:
        """Have something found out of each snapshot that comes into memory, in the background.

        Args:
            prepare: Finds it, and is given what was known of the snapshot before; None where there
                was none.
        """
        self._prepare = prepare

    def close(self) -> None:
        """End a load that is under way, and hold nothing any more; the next question begins again.

        Python ends a thread that is inside DuckDB when the process ends, and with it the process by
        std::terminate.
        """
        with self._changed:
            loading, self._loading = self._loading, Interruptible()
            thread, self._held = self._thread, None
            loading.interrupt()
            preparing, self._ends_preparing = self._ends_preparing, Cancellation()
            if self.state not in _WORKING:
                self.state = State.EMPTY
            self._changed.notify_all()
        preparing.cancel()
        until = time.monotonic() + _END_S
        while thread is not None and thread.is_alive() and time.monotonic() < until:
            loading.interrupt()
            thread.join(_AGAIN_S)
        if self._preparing.acquire(timeout=_END_S):
            self._preparing.release()

    def _load(self, number: int, loading: Interruptible) -> None:
        before = self._held.facts if self._held is not None else None
        try:
            self._must_load = not self._refresh(loading)
            if self._must_load and not self._rests:
                self._become(State.LOADING)
                self._load_all(loading)
                self._must_load = False
        except TooLarge:
            self._refused = number
            _LOG.warning(
                "snapshot %s does not fit into the %s MB of FRAMESIFT_SNAPSHOT_MEMORY_MB; "
                "questions go to the catalog itself", number, self._budget_mb,
            )  # fmt: skip
        except (FramesiftError, ReloadNeeded, *_ENGINE_FAILS) as error:
            # Closed meanwhile, its cursor fails in one way or another.
            level = logging.DEBUG if loading.ended else logging.WARNING
            _LOG.log(level, "snapshot %s was not loaded into memory: %s", number, error)
        finally:
            if loading.ended:
                self._held = None
            fits = self._refused != number
            at_rest = State.EMPTY if self._held is None else State.READY
            self._become(at_rest if fits else State.REFUSED)
            # From here on another thread may load what comes next.
            try:
                self._prepare_loaded(before)
            finally:
                self.tried = True

    def _prepare_loaded(self, before: Facts | None) -> None:
        """Prepare what is held, but for what comes while another one is being prepared."""
        if self._prepare is None or not self._preparing.acquire(blocking=False):
            return
        try:
            with self._changed:
                is_held, ends = self._held is not None, self._ends_preparing
            if is_held:
                with cancelled_by(ends):
                    self._prepare(before)
        except (FramesiftError, *_ENGINE_FAILS) as error:  # the first question finds it then
            _LOG.info("the snapshot in memory was not prepared: %s", error)
        finally:
            self._preparing.release()

    def _become(self, state: State) -> None:
        """Let those who wait for a refresh look again."""
        with self._changed:
            self.state = state
            self._changed.notify_all()

    def _refresh(self, loading: Interruptible) -> bool:
        """Bring what is held up to the newest snapshot; whether that could be done."""
        snapshot = self._held
        if snapshot is None:
            return False
        try:
            with self._files.inspecting() as cursor, loading.using(cursor):
                self._held = snapshot.refreshed(cursor, loading)
        except (ReloadNeeded, *_ENGINE_FAILS) as reason:
            if loading.ended:
                raise
            _LOG.info(
                "snapshot %s in memory is not refreshed but loaded: %s", snapshot.number, reason
            )
            return False
        snapshot.retire()
        return True

    def _load_all(self, loading: Interruptible) -> None:
        began = time.monotonic()
        # The old one goes first: two of them would be twice the budget.
        self._held = None
        try:
            with self._files.inspecting_alone() as cursor, loading.using(cursor):
                loaded = SnapshotInMemory(cursor, self._budget_mb, self._limits, loading)
        finally:
            ended = time.monotonic()
            if ended - began > _LONG_LOAD_S:
                self._not_before = ended + _REST * (ended - began)
        self._held = loaded


_KEEPERS: "weakref.WeakSet[MemoryKeeper]" = weakref.WeakSet()


@atexit.register
def _end_loads() -> None:
    """However the process ends: a store may not have been closed."""
    for keeper in list(_KEEPERS):
        keeper.close()


os.register_at_fork(after_in_child=_KEEPERS.clear)  # a fork has no threads
