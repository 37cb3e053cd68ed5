"""CPU time until a server has the snapshot of a small catalog in memory.

    python -m benchmarks.small_snapshot [--rounds 5] [--beside FOLDER]

The sample frames. With --beside another version's clone takes turns; milliseconds of CPU of a
process that has imported the program, the median and in brackets the least, and the ratio.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from tests.pipeline.homes import REPOSITORY, SAMPLE, make_home

_LOAD = """
import sys, time
from pathlib import Path
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
for _ in range(3):  # the first checks DuckDB's extensions
    location = CatalogLocation.in_folder(Path(sys.argv[1]))
    store = CatalogStore(location, threads=1, snapshot_memory_mb=100)
    began = time.process_time()
    store.snapshot()
    assert store.memory.wait(300)
    spent = time.process_time() - began
    store.close()
print(spent)
"""


def main() -> None:
    """Print the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    trees = [REPOSITORY, *([options.beside] if options.beside else [])]
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        make_home(home, SAMPLE)
        spent = [[_load_ms(tree, home) for tree in trees] for _ in range(options.rounds)]
    columns = list(zip(*spent, strict=True))
    print(" | ".join(f"{median(each):.0f} ({min(each):.0f})" for each in columns))
    if options.beside:
        print(f"ratio of medians {median(columns[0]) / median(columns[1]):.2f}")


def _load_ms(tree: Path, home: Path) -> float:
    """Load in a process of that version [ms of CPU]."""
    ended = subprocess.run(
        [sys.executable, "-c", _LOAD, str(home / "catalog")],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(ended.stdout) * 1000


if __name__ == "__main__":
    main()
