"""CPU time and peak memory of operations on every frame, beside DuckDB's of the same tables.

    python -m benchmarks.bulk_operations [--frames 1000000] [--beside TREE]

Each is a process on a copy of one drawn home: `dataset create` of all frames, `dataset diff` of two
datasets, `catalog diff` of two snapshots, `catalog check`, `compact`. DuckDB copies the three
tables into new Parquet files, as `compact` does. TREE is another version's folder with its .venv,
whose commands take turns with these.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from multiprocessing import Process
from pathlib import Path

from api.settings import Settings
from api.workspace import Workspace
from benchmarks.catalog_scale import CLASS_LIST, FRAMES_PER_COMMIT, fill_home
from catalog.records.sources import add_source
from catalog.records.tables import Source
from ingest.labels.class_list import ClassList

_COPY = """
import duckdb, sys
from pathlib import Path
connection = duckdb.connect()
for table in ("files", "class_pixels", "tags_frame"):
    files = Path(sys.argv[1], "catalog/data/main", table, "*.parquet")
    rows = f"FROM read_parquet('{files}', union_by_name = true)"
    connection.execute(f"COPY ({rows}) TO '{Path(sys.argv[1], 'copy.parquet')}'")
"""

_COMMANDS = (
    "dataset create all", "dataset create halves --range car=1000: --split a=0.5,b=0.5",
    "dataset diff halves all", "catalog diff 2 {newest}", "catalog check", "compact",
)  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    trees = [Path(__file__).parent.parent, *([options.beside] if options.beside else [])]
    with tempfile.TemporaryDirectory() as scratch:
        # In a process of its own: what is started here begins with the peak of this one.
        making = Process(target=_make_home, args=(Path(scratch, "drawn"), options.frames))
        making.start()
        making.join()
        newest = 2 - (-options.frames // FRAMES_PER_COMMIT)
        homes = [Path(scratch, f"home-{number}") for number in range(len(trees))]
        for home in homes:
            shutil.copytree(Path(scratch, "drawn"), home)
        _print("DuckDB copies the tables", [[sys.executable, "-c", _COPY, str(homes[0])]], homes)
        for command in (text.format(newest=newest) for text in _COMMANDS):
            programs = [str(tree / ".venv/bin/framesift") for tree in trees]
            _print(command, [[program, *command.split()] for program in programs], homes)


def _make_home(folder: Path, frames: int) -> None:
    workspace = Workspace(Settings(home=folder, compact_files=0), on_making=lambda _: None)
    class_list = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    source = Source(
        name="a2d2", uri=str(folder), platform="IBM COS", cluster="local", datasource="a2d2",
        class_list=class_list.to_json(),
    )  # fmt: skip
    add_source(workspace.records, source)
    names = dict(zip(class_list.tags, class_list.classes, strict=True))
    fill_home(workspace, names, frames)
    workspace.close()


def _print(title: str, commands: list[list[str]], homes: list[Path]) -> None:
    shown = ""
    for command, home in zip(commands, homes, strict=False):
        cpu_s, peak_mb = _run(command, home)
        shown += f"{cpu_s:8.1f} s {peak_mb:7,.0f} MB"
    print(f"{title:66} {shown}", flush=True)


def _run(command: list[str], home: Path) -> tuple[float, float]:
    """CPU time [s] and peak memory [MB] of a command, whose output is thrown away."""
    environment = {**os.environ, "FRAMESIFT_HOME": str(home)}
    process = os.posix_spawn(
        command[0],
        command,
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"failed: {command}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


if __name__ == "__main__":
    main()
