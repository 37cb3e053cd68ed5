"""A program for a test: watchers in children of its own, killed while the tree changes.

    python -m tests.ingest.watch.killed_watchers TREE HOME KILLS SEED

Frames are written, rewritten and removed all the time, while a watcher runs and while none does.
Every second one is killed some time after its first commit, the others some time after their start.
Forking before any database is open saves starting Python each time.
"""

import os
import random
import shutil
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from catalog.records.sources import recorded_source
from ingest.scan.scan import ScanOptions
from ingest.scan.thread_engine import ThreadEngine
from ingest.watch.choice import EventChoice, open_events
from ingest.watch.watcher import Batched, Watcher, WatchOptions
from tests.ingest.scene_folders import BICYCLE, CAR, SCENE, SKY, Home, add_frame, frame_key

FRAMES = 30
SCENES = 3


def main(tree: str, home: str, kills: str, seed: str) -> None:
    """Prints how each child died, and how many changes were made."""
    rng = random.Random(int(seed))
    changes = 0
    for number in range(int(kills)):
        committed, commits = os.pipe()
        child = os.fork()
        if child == 0:
            _watch(Path(home), commits)
            os._exit(0)
        os.close(commits)
        if number % 2:
            assert os.read(committed, 1), "the watcher ended before it committed anything"
        changes += change(Path(tree), rng, rng.uniform(0.3, 3.0))
        os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201
        os.close(committed)
        changes += change(Path(tree), rng, 0.1)
    print(changes, flush=True)  # noqa: T201


def change(tree: Path, rng: random.Random, seconds: float) -> int:
    """Change frames and folders at random for some time; how many changes it made."""
    end, changes = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        root = tree / f"drive{rng.randrange(SCENES)}"
        number = rng.randrange(FRAMES)
        what = rng.random()
        if what < 0.6:
            add_frame(root, number, rng.choices([CAR, BICYCLE, SKY], k=rng.randint(1, 9)))
        elif what < 0.9:
            kind = rng.choice(["label", "camera"])
            (root / frame_key(kind, number)).unlink(missing_ok=True)
        elif what < 0.95 and (root / SCENE).exists():
            target = tree / f"drive{rng.randrange(SCENES)}" / "20190101_000000"
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(exist_ok=True)
            (root / SCENE).rename(target)
        else:
            shutil.rmtree(root, ignore_errors=True)
        changes += 1
        time.sleep(rng.uniform(0, 0.05))
    return changes


def _watch(home: Path, committed: int) -> None:
    opened, stop = Home.at(home), threading.Event()
    source = recorded_source(opened.records, "a2d2")

    def tell(_: Batched) -> None:
        os.write(committed, b".")

    Watcher(
        opened.store,
        opened.records,
        source,
        WatchOptions(ScanOptions(max_removed=1), 0),  # whole folders are removed
        ThreadEngine(1),
        events=partial(open_events, source, EventChoice(), stop, print),
        stop=stop,
        report=tell,
        warn=print,
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
