"""A program for a test: compactions killed in the middle, and what is left looked at.

    python -m tests.catalog.killed_compactions HOME KILLS SEED

Each round writes some commits, begins a compaction that deletes at once, kills it with SIGKILL
after some of its steps and some time, and compares what the catalog holds with what was
acknowledged. All in forked children: starting Python takes longer.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from tests.catalog.histories import AT_ONCE, History, held
from tests.catalog.some_rows import open_store

STEPS = 8
"""Roughly what a compaction of these catalogs tells of."""


def main(home: str, kills: str, seed: str) -> None:
    """Prints for each round how the compaction ended and what was wrong afterwards."""
    folder, rng = Path(home), random.Random(int(seed))
    written = folder / "written.json"
    for number in range(int(kills)):
        assert _forked(partial(_write, folder, number, written)) == 0
        ended = _killed(folder, rng.randint(0, STEPS), rng.random() * 0.05)
        wrong = _forked(partial(_look, folder, written))
        print(ended, wrong, flush=True)  # noqa: T201


def _write(folder: Path, seed: int, written: Path) -> None:
    store = open_store(folder)
    History(store, random.Random(seed)).write(4)
    states = {"newest": held(store), "kept": held(store, 2)}
    written.write_text(json.dumps(states))


def _killed(folder: Path, steps: int, seconds: float) -> int:
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)

        def tell(_step: str) -> None:
            os.write(writable, b".")

        compact(
            open_store(folder),
            lambda: [2],
            keep=AT_ONCE,
            in_use=AT_ONCE,
            progress=tell,
        )
        os._exit(0)
    os.close(writable)
    while steps and os.read(readable, 1):
        steps -= 1
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.close(readable)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _look(folder: Path, written: Path) -> None:
    """Raises where something acknowledged is not there; orphans are what a kill leaves."""
    store = open_store(folder)
    states = json.loads(written.read_text())
    assert held(store) == states["newest"]
    assert held(store, 2) == states["kept"]
    findings = check(store, {"a dataset": 2})
    assert {finding.kind for finding in findings} <= {"orphan_file", "frame_incomplete"}, findings


def _forked(run: Callable[[], None]) -> int:
    """Number of children that failed: 0 or 1."""
    child = os.fork()
    if child:
        return int(os.waitpid(child, 0)[1] != 0)
    try:
        run()
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
