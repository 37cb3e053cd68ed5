"""Watchers for tests: as users have them, a process; or, without its start, in a thread."""

import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from catalog.records.scans import recorded_problems
from catalog.records.sources import recorded_source
from ingest.scan.scan import ScanOptions
from ingest.scan.thread_engine import ThreadEngine
from ingest.watch.choice import EventChoice, open_events
from ingest.watch.watcher import Batched, Watcher, WatchOptions
from tests.api.servers import FRAMESIFT, environment
from tests.ingest.scene_folders import Home
from tests.ingest.test_killed_scan import state

PATIENCE_S = 300


class Watching:
    """A running watcher.

    Attributes:
        batches: What it has told, as its JSON lines are.
        warnings: What it has warned of.
    """

    def __init__(self) -> None:
        """Nothing is told yet."""
        self.batches: list[dict[str, Any]] = []
        self.warnings: list[str] = []

    def running(self) -> bool:
        """True while it goes on."""
        raise NotImplementedError

    def until(self, holds: Callable[[], bool]) -> None:
        """Return when it holds; AssertionError when it never does."""
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < end, (self.batches, self.warnings)
            assert self.running() or holds(), self.warnings
            time.sleep(0.05)

    def until_listed(self) -> None:
        """Return when the whole source was scanned for the first time."""
        self.until(lambda: bool(self.batches))

    def until_says(self, text: str) -> None:
        """Return when a warning holds the text."""
        self.until(lambda: any(text in line for line in [*self.warnings]))


class WatchProcess(Watching):
    """``framesift watch --json``."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        """Read what it prints."""
        super().__init__()
        self.process = process
        self._readers = [
            threading.Thread(target=self._read_batches), threading.Thread(target=self._read_errors)
        ]  # fmt: skip
        for reader in self._readers:
            reader.start()

    def _read_batches(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.batches.append(json.loads(line))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.warnings.append(line.rstrip())

    def running(self) -> bool:
        """True while the process lives."""
        return self.process.poll() is None

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Its exit code, when it has ended by itself."""
        code = self.process.wait(timeout=PATIENCE_S)
        for reader in self._readers:
            reader.join()
        return code


@contextmanager
def watching(
    home: Path,
    *arguments: str,
    source: str = "a2d2",
    prefix: tuple[str, ...] = (),
    variables: Mapping[str, str] | None = None,
) -> Iterator[WatchProcess]:
    """Watch a source of a Home's folder; killed at the block's end if it still runs."""
    process = subprocess.Popen(
        [*prefix, str(FRAMESIFT), "watch", source, "--json", *arguments],
        env=environment(
            home, {"FRAMESIFT_RECORDS": str(home / "records.sqlite"), **(variables or {})}
        ),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    watched = WatchProcess(process)
    try:
        yield watched
    finally:
        process.kill()
        watched.ended()


class WatchThread(Watching):
    """A watcher in a thread, over stores of its own; ``error`` is what it raised in the end."""

    def __init__(self, home: Path, choice: EventChoice, relist_s: float) -> None:
        """Start it."""
        super().__init__()
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(home, choice, relist_s))
        self._thread.start()

    def _run(self, home: Path, choice: EventChoice, relist_s: float) -> None:
        opened = Home.at(home)
        source = recorded_source(opened.records, "a2d2")
        try:
            Watcher(
                opened.store,
                opened.records,
                source,
                # What removals a watcher holds back: tests/ingest/test_removal_guard.py.
                WatchOptions(ScanOptions(max_removed=1), relist_s),
                ThreadEngine(1),
                events=partial(open_events, source, choice, self._stop, self.warnings.append),
                stop=self._stop,
                report=self._told,
                warn=self.warnings.append,
            ).run()
        except Exception as error:
            self.error = error

    def _told(self, batch: Batched) -> None:
        self.batches.append(
            asdict(batch.counts) | {"whole": batch.is_whole_source, "folders": batch.folders}
        )

    def running(self) -> bool:
        """True while the thread lives."""
        return self._thread.is_alive()

    def end(self) -> BaseException | None:
        """Stop it; what it raised."""
        self._stop.set()
        return self.ended()

    def ended(self) -> BaseException | None:
        """The exception that it raised, when it has ended."""
        self._thread.join(PATIENCE_S)
        assert not self.running()
        return self.error


@contextmanager
def watching_here(home: Path, events: str = "", relist_s: float = 0) -> Iterator[WatchThread]:
    """Watch the source a2d2 of a Home's folder until the block's end."""
    watched = WatchThread(home, EventChoice(events), relist_s)
    try:
        yield watched
    finally:
        watched.end()


def undisturbed(empty_home: Path, folder: Path, root: Path | str, **options: Any) -> list[object]:
    """The content of a catalog of its own after one scan of a source."""
    shutil.copytree(empty_home, folder)
    alone = Home.at(folder)
    alone.scan(add(alone, root, **options))
    return whole_state(alone)


def whole_state(home: Home) -> list[object]:
    """The content of the catalog, and the problems of the files."""
    problems = {(p.kind, p.key, p.reason) for p in recorded_problems(home.records, source_id=1)}
    return [*state(home), sorted(problems)]


def add(home: Home, root: Path | str, **options: Any) -> Any:
    """Add a source with options."""
    source = home.add(root)  # type: ignore[arg-type]
    with home.records.session() as session:
        session.merge(source).options = options
    return recorded_source(home.records, source.name)


def wait_until_equal(watched: Watching, home: Home, expected: Callable[[], list[object]]) -> None:
    """Return when the catalog holds what is expected."""
    final = expected()
    watched.until(lambda: whole_state(home) == final)
