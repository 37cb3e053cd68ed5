"""A program for a test: begins scans in children of its own and kills them in the middle.

    python -m tests.ingest.killed_scans TREE HOME KILLS SEED

Each child scans in small batches and writes a byte at every progress. It is killed with SIGKILL
after some number of them. Forking before any database is open saves starting Python each time.
"""

import os
import random
import signal
import sys
from pathlib import Path

from catalog.records.sources import recorded_source
from ingest.scan import scan_commits
from ingest.scan.scan_counts import ScanCounts
from ingest.scan.thread_engine import ThreadEngine
from tests.ingest.scene_folders import Home


def main(tree: str, home: str, kills: str, seed: str) -> None:
    """Prints how many bytes each child wrote before it died, and how it died."""
    scan_commits.BATCH_FRAMES = 2
    rng = random.Random(int(seed))
    for _ in range(int(kills)):
        died_of, steps = _killed_scan(Path(tree), Path(home), rng.randint(1, 16))
        print(died_of, steps, flush=True)  # noqa: T201


def _killed_scan(tree: Path, home: Path, after: int) -> tuple[int, int]:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        _scan(tree, home, writable)
        os._exit(0)
    os.close(writable)
    steps = 0
    while steps < after and os.read(readable, 1):
        steps += 1
    os.kill(child, signal.SIGKILL)
    os.close(readable)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), steps


def _scan(tree: Path, home: Path, progress_to: int) -> None:
    def note(counts: ScanCounts) -> None:
        os.write(progress_to, b".")

    opened = Home.at(home)
    source = recorded_source(opened.records, "a2d2")
    opened.scan(source, engine=ThreadEngine(2, frames_each=1), progress=note)


if __name__ == "__main__":
    main(*sys.argv[1:])
