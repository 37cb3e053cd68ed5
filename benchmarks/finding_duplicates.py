"""What duplicates cost a scan: frames whose labels show the same as another's, beside none.

    python -m benchmarks.finding_duplicates [--frames 1000000] [--shared 40000] [--rounds 3]

Two catalogs of drawn frames, each label with a digest; in one, SHARED digests are of two labels
each, half of these with images of one size. CPU seconds, user and system, of scans in turn, each in
a process of its own: one that compares every label, one that brings 24 frames (duplicates of
those of the round before), and one to which nothing is new.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.catalog_scale import CLASS_LIST, REPOSITORY, load_frames
from catalog.records.sources import add_source, recorded_source
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from ingest.scan.scan import ScanOptions, scan_source

_SCENES = REPOSITORY / "sample_data/a2d2"
_STEPS = ("every label compared", "24 new frames", "nothing new")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--shared", type=int, default=40_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--full", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scan:
        print(json.dumps(_scanned(options.scan, full=options.full)))
        return
    with tempfile.TemporaryDirectory() as folder:
        homes = {shared: Path(folder, str(shared)) for shared in (0, options.shared)}
        for shared, home in homes.items():
            _make(home, options.frames, shared)
        seconds: dict[tuple[str, int], list[float]] = {}
        for number in range(options.rounds):
            for step in _STEPS:
                for shared, home in homes.items():
                    if step == "24 new frames":
                        _deliver(home, number)
                    run = _in_process(home, full=step == _STEPS[0])
                    seconds.setdefault((step, shared), []).append(run["cpu_s"])
        print(f"{options.frames:,} frames; medians of {options.rounds}, CPU s")
        print(f"| a scan | no shared label | {options.shared:,} shared labels | more |")
        print("|---|---|---|---|")
        for step in _STEPS:
            none, some = (statistics.median(seconds[step, shared]) for shared in homes)
            print(f"| {step} | {none:.2f} | {some:.2f} | {some - none:.2f} |")


def _stores(home: Path) -> tuple[CatalogStore, RecordStore]:
    home.mkdir(exist_ok=True)
    store = CatalogStore(CatalogLocation.in_folder(home / "catalog"))
    return store, RecordStore(home / "records.sqlite")


def _make(home: Path, frames: int, shared: int) -> None:
    """A catalog of drawn frames, and a source with no frame yet."""
    store, records = _stores(home)
    load_frames(store, [*ClassList.from_colours(json.loads(CLASS_LIST.read_bytes())).tags], frames)
    half = frames // 2
    every = max(1, half // shared) if shared else frames
    pair = f"frame_number % {half}" if shared else "frame_number"
    is_shared = f"({shared} > 0 AND {pair} % {every} = 0)"
    with store.writing("digests") as connection:
        connection.execute(
            "INSERT INTO file_digests BY NAME SELECT 'local:a2d2:' || label_file AS fkey, left(md5("
            f"CASE WHEN {is_shared} THEN 'pair ' || ({pair}) ELSE frame_number::VARCHAR END), 16) "
            "AS digest FROM tags_frame"
        )
        connection.execute(
            f"UPDATE files SET size = 1000000 + {pair} FROM tags_frame AS t "
            f"WHERE t.fkey = files.fkey AND {is_shared} AND {pair} % {2 * every} = 0"
        )
        connection.execute(
            "INSERT INTO file_digests BY NAME SELECT fkey, md5(frame_number::VARCHAR) AS digest "
            f"FROM tags_frame WHERE {is_shared} AND {pair} % {2 * every} = 0"
        )
    root = home / "new"
    root.mkdir()
    shutil.copy(CLASS_LIST, root / "class_list.json")
    source = Source(name="new", uri=str(root), platform="NFS", cluster="local", datasource="new")
    add_source(records, source)
    _deliver(home, -1)


def _deliver(home: Path, number: int) -> None:
    """The sample frames once more under other names: duplicates, in both catalogs."""
    for path in sorted(_SCENES.rglob("*.png")):
        key = path.relative_to(_SCENES).as_posix().replace("2026", f"{2100 + number}")
        copy = home / "new" / key
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


def _in_process(home: Path, *, full: bool) -> dict[str, Any]:
    call = [sys.executable, "-m", "benchmarks.finding_duplicates", "--scan", str(home)]
    call += ["--full"] if full else []
    run = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    row: dict[str, Any] = json.loads(run.stdout)
    return row


def _scanned(home: Path, *, full: bool) -> dict[str, Any]:
    store, records = _stores(home)
    before = _cpu_s()
    scan_source(store, records, recorded_source(records, "new"), ScanOptions(full=full))
    return {"cpu_s": _cpu_s() - before}


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
