"""A program for tests: writers of a catalog, killed one after the other at random moments.

    python -m tests.catalog.killed_writers HOME KILLS SEED

Where the stores lie, FRAMESIFT_CATALOG_METADATA and its like say. Each writer is forked before any
database is open, opens the catalog, checks that every acknowledged commit is there whole, and goes
on from there. The first are killed while they make or open the catalog, the others at a random
moment of their writing. Prints the acknowledged commits as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

from api.settings import Settings
from api.workspace import Workspace
from catalog.frames.frames import register
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.values import make_fkey
from tests.catalog.some_rows import SHARED_KEY, source_names, two_frames

KILLED_OPENING = 3
LONGEST_S = 0.6


def main(home: str, kills: str, seed: str) -> None:
    """Kill that many writers; after them one lives until it has committed once."""
    rng = random.Random(int(seed))
    acknowledged: list[int] = []
    for number in range(int(kills) + 1):
        life = _Life(Path(home), acknowledged, once=number == int(kills))
        if number < int(kills):
            if number >= KILLED_OPENING:
                life.wait_for_line()  # it has opened the catalog and found it right
            if number >= KILLED_OPENING and number % 2:
                life.wait_for_line()  # it has committed once
            time.sleep(rng.uniform(0, LONGEST_S))
            life.kill()
        acknowledged += life.end()
    json.dump(acknowledged, sys.stdout)


class _Life:
    """A writer in a process of its own."""

    def __init__(self, home: Path, acknowledged: list[int], *, once: bool) -> None:
        reading, writing = os.pipe()
        self._expected = 0 if once else -signal.SIGKILL
        self._child = os.fork()
        if self._child == 0:
            status = 1
            try:
                os.close(reading)
                _write(home, acknowledged, writing, once=once)
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stderr.flush()
                os._exit(status)
        os.close(writing)
        self._told = os.fdopen(reading)
        self._lines: list[str] = []

    def wait_for_line(self) -> None:
        """Return when it has told something more."""
        self._lines.append(self._told.readline())

    def kill(self) -> None:
        """End it at once."""
        os.kill(self._child, signal.SIGKILL)

    def end(self) -> list[int]:
        """The commits that it acknowledged."""
        _, status = os.waitpid(self._child, 0)
        lines = "".join([*self._lines, self._told.read()]).split()
        self._told.close()
        if os.waitstatus_to_exitcode(status) != self._expected:
            raise RuntimeError(f"a writer ended with status {status}")
        return [int(line) for line in lines if line != _READY]


_READY = "ready"


def _write(home: Path, acknowledged: list[int], told: int, *, once: bool) -> None:
    store = Workspace(Settings(home=home)).whole_catalog
    check(store, acknowledged)
    number = _next(store)
    os.write(told, f"{_READY}\n".encode())
    while True:
        files, frames = two_frames(str(number), SHARED_KEY)
        fkeys = [make_fkey("c1", "d1", frame.image) for frame in frames]
        with store.writing(f"commit {number}") as connection:
            register(connection, source_names(), files, frames, number)
            families.define(connection, "late", {"loss": "DOUBLE"})
            rows = pa.table({"fkey": fkeys, "loss": [float(number)] * len(fkeys)})
            families.put_rows(connection, "late", rows)
        os.write(told, f"{number}\n".encode())
        number += 1
        if once:
            return


def _next(store: CatalogStore) -> int:
    """A number that no commit has had, acknowledged or not."""
    with store.reading() as cursor:
        row = cursor.execute("SELECT coalesce(max(scangen), -1) FROM metaocean").fetchone()
    return int(row[0]) + 1 if row else 0


def check(store: CatalogStore, acknowledged: list[int]) -> None:
    """Every acknowledged commit is there, each commit whole or not at all, no fkey twice."""
    with store.reading() as cursor:
        tables = {
            table: [row[0] for row in cursor.execute(f"SELECT fkey FROM {table}").fetchall()]
            for table in ("lake.main.files", "lake.main.class_pixels", "lake.main.tags_frame")
        }
        views = cursor.execute(
            "SELECT count(*) FROM duckdb_views() WHERE view_name = 't_loss'"
        ).fetchone()
        if views == (1,):
            rows = cursor.execute("SELECT fkey FROM t_loss").fetchall()
            tables["late"] = [row[0] for row in rows]
    files = tables.pop("lake.main.files")
    frames = {fkey for fkey in files if not fkey.endswith(f":{SHARED_KEY}")}
    missing = {
        make_fkey("c1", "d1", f"{number}/{half}") for number in acknowledged for half in (0, 1)
    } - frames
    if missing or len(files) != len(set(files)) or len(frames) % 2:
        raise AssertionError(f"lost {sorted(missing)}, or doubled: {sorted(files)}")
    for table, fkeys in tables.items():
        if sorted(fkeys) != sorted(frames):
            raise AssertionError(f"{table} has {sorted(fkeys)}, files {sorted(frames)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
