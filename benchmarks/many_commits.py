"""A commit and a question over many commits, with the compaction that servers do and without.

    python -m benchmarks.many_commits [--commits 200] [--frames 40000] [--compact-files 50]

Two homes of as many drawn frames, which commits of 24 files grow in turn; a question reads their
Parquet after each. CPU seconds (user and system), medians of each quarter of the commits, and the
ratio to the first. A server compacts in a process of its own: what that took is summed apart.
"""

import argparse
import resource
import statistics
import tempfile
from datetime import datetime
from pathlib import Path

from api.settings import Settings
from api.workspace import Workspace
from benchmarks.catalog_scale import load_frames
from catalog.frames.frames import SourceNames, register
from catalog.maintenance.automatic import compaction_due
from catalog.maintenance.compaction import compact
from catalog.values import File
from query.run.run_sql import run_sql

_FILES = 24
_QUARTERS = 4
_QUESTION = (
    "select count(*), sum(size) from metaocean m, t_class1 c where c.fkey = m.fkey and c.value > 9"
)
_WHEN = datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001 (naive UTC)
_SOURCE = SourceNames("NFS", "local", "more", "/more")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--frames", type=int, default=40_000)
    parser.add_argument("--compact-files", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"compacted": options.compact_files, "not compacted": 0}
        homes = {
            kind: _home(Path(folder, kind.replace(" ", "_")), options.frames) for kind in kinds
        }
        seconds: dict[tuple[str, str], list[float]] = {}
        compactions: list[float] = []
        for number in range(options.commits):
            for kind, home in homes.items():
                seconds.setdefault((kind, "a commit"), []).append(_commit(home, number))
                seconds.setdefault((kind, "a question"), []).append(_question(home))
                if kinds[kind]:
                    compactions += _compacted(home, kinds[kind])
        for home in homes.values():
            home.close()
    _print(seconds, options.commits)
    print(f"\n{len(compactions)} compactions took {sum(compactions):.2f} s of CPU")


def _home(folder: Path, frames: int) -> Workspace:
    workspace = Workspace(Settings(home=folder), on_making=lambda _: None)
    load_frames(workspace.whole_catalog, ["class1", "class2"], frames)
    return workspace


def _commit(home: Workspace, number: int) -> float:
    began_s = _used_s()
    files = [File(f"more/{number}/{one}.png", 10, _WHEN) for one in range(_FILES)]
    with home.whole_catalog.writing("more files") as connection:
        register(connection, _SOURCE, files, [], 1)
    return _used_s() - began_s


def _question(home: Workspace) -> float:
    began_s = _used_s()
    run_sql(home.catalog, _QUESTION)
    return _used_s() - began_s


def _compacted(home: Workspace, most: int) -> list[float]:
    """CPU time of the compaction that was due [s]; nothing where none was."""
    with compaction_due(home.whole_catalog, most) as is_due:
        if not is_due:
            return []
        began_s = _used_s()
        compact(home.whole_catalog, list, keep=None)
        return [_used_s() - began_s]


def _used_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _print(seconds: dict[tuple[str, str], list[float]], commits: int) -> None:
    size = commits // _QUARTERS
    spans = [(number * size, (number + 1) * size) for number in range(_QUARTERS)]
    print("| CPU s | " + " | ".join(f"commits {low + 1} to {high}" for low, high in spans) + " |")
    print("|---|" + "---|" * _QUARTERS)
    for (kind, what), times in seconds.items():
        medians = [statistics.median(times[low:high]) for low, high in spans]
        cells = (f"{median:.3f} ({median / medians[0]:.2f})" for median in medians)
        print(f"| {what}, {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
