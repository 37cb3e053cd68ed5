"""Growth of a catalog: load time, size on disk, queries and memory by the number of frames.

    .venv/bin/python -m benchmarks.catalog_scale [--frames 41277 1000000 10000000]
        [--plot docs/images/catalog_scale.png]

Drawn frames with A2D2's names, 38 classes and 6 positions, two files each (image and label), put
straight into the tables, 200,000 frames a commit. Every row is a process of its own: wall time,
CPU time of all its threads (which other work on the machine does not lengthen as much), and peak
memory. Queries are asked three times of one open store, and the last is shown.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from api.workspace import Workspace
from catalog.lake.snapshots import log
from catalog.maintenance.check import check
from catalog.maintenance.compaction import compact
from catalog.maintenance.snapshot_diff import diff
from catalog.records.tag_definitions import define_class_tags
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from ingest.labels.class_list import ClassList
from query.frames.select_frames import select_frames
from query.frames.selection import Selection
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql
from query.statistics.class_statistics import class_report

REPOSITORY = Path(__file__).parent.parent
SIZES = (41_277, 1_000_000, 10_000_000)
FRAMES_PER_COMMIT = 200_000
CLASS_LIST = REPOSITORY / "sample_data/a2d2/camera_lidar_semantic/class_list.json"

Row = dict[str, Any]
"""frames, step, wall_s, cpu_s, peak_mb, disk_mb, result."""

STEPS = ("load", "range", "classes", "sql", "log", "diff", "check", "compact")


def main() -> None:
    """Print the table; draw it when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=SIZES)
    parser.add_argument("--folder", type=Path, default=None, help="where there is room: 5 GB")
    parser.add_argument("--plot", type=Path, default=None)
    parser.add_argument("--memory", default="2GB", help="limit of one process's queries")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(
            json.dumps(_measured(options.step, options.folder, options.frames[0], options.memory))
        )
        return
    rows: list[Row] = []
    print(f"{'frames':>12} {'step':<8} {'wall s':>9} {'CPU s':>9} {'peak MB':>8}  result")
    for frames in options.frames:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            for step in STEPS:
                row = _in_process(step, Path(folder), frames, options.memory)
                rows.append(row)
                print(
                    f"{frames:>12,} {step:<8} {row['wall_s']:>9.3f} {row['cpu_s']:>9.3f} "
                    f"{row['peak_mb']:>8,.0f}  {row['result']}",
                    flush=True,
                )
    if options.plot:
        _draw(rows, options.plot)


def _in_process(step: str, folder: Path, frames: int, memory: str) -> Row:
    call = [sys.executable, "-m", "benchmarks.catalog_scale", "--step", step, "--folder",
            str(folder), "--frames", str(frames), "--memory", memory]  # fmt: skip
    run = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    row: Row = json.loads(run.stdout)
    return row


def _measured(step: str, folder: Path, frames: int, memory: str) -> Row:
    location = CatalogLocation.in_folder(folder / "catalog")
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    tags = dict(zip(palette.tags, palette.classes, strict=True))
    store = CatalogStore(location, memory_limit=memory, class_names=tags.copy)
    work: dict[str, Callable[[], object]] = {
        "load": lambda: load_frames(store, list(tags), frames),
        "range": lambda: f"{len(_range(store)):,} frames",
        "classes": lambda: f"{sum(one.frames for one in class_report(store).classes):,} presences",
        "sql": lambda: _sql(store),
        "log": lambda: f"{len(log(store)):,} snapshots",
        "diff": lambda: _diff(store),
        "check": lambda: f"{len(check(store, {})):,} findings",
        "compact": lambda: _compact(store),
    }
    result: object = None
    for _ in range(3 if step in ("range", "classes", "sql", "log") else 1):
        started, cpu = time.perf_counter(), _cpu_s()
        result = work[step]()
        wall, used = time.perf_counter() - started, _cpu_s() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"frames": frames, "step": step, "wall_s": wall, "cpu_s": used, "peak_mb": peak,
            "disk_mb": _disk_mb(store), "result": result}  # fmt: skip


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load_frames(store: CatalogStore, tags: list[str], frames: int) -> str:
    """Put drawn frames into a catalog; how large it is then, in words."""
    add_class_tags(store, tags)
    for start in range(0, frames, FRAMES_PER_COMMIT):
        stop = min(frames, start + FRAMES_PER_COMMIT)
        with store.writing(f"frames {start:,} to {stop:,}", "benchmark") as connection:
            for statement in _statements(tags, start, stop):
                connection.execute(statement)
    return f"{_disk_mb(store):,.1f} MB in Parquet"


def fill_home(workspace: Workspace, names: Mapping[str, str], frames: int) -> None:
    """Put drawn frames into a home, which knows the names of their classes as after a scan.

    Args:
        names: Class name of each class tag.
    """
    define_class_tags(workspace.records, dict(names))
    load_frames(workspace.whole_catalog, [*names], frames)


def _disk_mb(store: CatalogStore) -> float:
    data = store.location.data
    assert isinstance(data, Path)
    return sum(path.stat().st_size for path in data.rglob("*.parquet")) / 1e6


def _statements(tags: list[str], start: int, stop: int) -> list[str]:
    """Inserts of some frames: files of image and label, class pixels, what a frame is made of."""
    # A scene is 500 frames of one drive; six cameras take turns.
    drawn = (
        "SELECT i, strftime(TIMESTAMP '2018-08-07 14:50:28' + to_minutes(i // 500), "
        "'%Y%m%d_%H%M%S') AS scene, ['front_center', 'front_left', 'front_right', 'side_left', "
        "'side_right', 'rear_center'][i % 6 + 1] AS camera "
        f"FROM range({start}, {stop}) AS drawn(i)"
    )
    key = (
        "'camera_lidar_semantic/' || scene || '/{kind}/cam_' || camera || '/' || "
        "replace(scene, '_', '') || '_{kind}_' || replace(camera, '_', '') || '_' || "
        "lpad(i::VARCHAR, 9, '0') || '.png'"
    )
    image, label = key.format(kind="camera"), key.format(kind="label")
    files = " UNION ALL ".join(
        f"SELECT 'a2d2' AS datasource, 'INDEX' AS operation, 'SCAN' AS ingesttype, "
        "'MO1' AS revision, '' AS site, 'IBM COS' AS platform, 'local' AS cluster, i AS inode, "
        f"'a2d2/' AS path, {name} AS filename, 'png' AS filetype, "
        "TIMESTAMP '2020-04-01' + to_seconds(i) AS mtime, 1 AS scangen, 'system' AS tier, "
        f"{smallest} + hash(i, 1) % {smallest} AS size, 'local:a2d2:' || {name} AS fkey "
        f"FROM ({drawn})"
        for name, smallest in ((image, 2_000_000), (label, 40_000))
    )
    # The n-th class is in ever fewer frames, and its pixels are spread over three decades.
    pixels = ", ".join(
        f"CASE WHEN hash(i, {number}) % 40 < {38 - number} "
        f"THEN (exp(hash(i, {number + 100}) % 1000 / 1000.0 * 7) * 100)::INTEGER ELSE 0 END "
        f'AS "{tag}"'
        for number, tag in enumerate(tags)
    )
    positions = ", ".join(
        f"(camera LIKE '%{word}%')::TINYINT AS {tag}"
        for tag, word in (("front", "front"), ("side", "side"), ("rear", "rear"),
                          ("center", "center"), ("left_", "left"), ("right_", "right"))
    )  # fmt: skip
    fkey = f"'local:a2d2:' || {image} AS fkey"
    frame = (
        "scene, camera, i::INTEGER AS frame_number, 1920 AS image_width, 1208 AS image_height, "
        f"{label} AS label_file, 1 AS labelled"
    )
    counts = f"{positions}, 0 AS unknown_pixels, {pixels}"
    return [
        f"INSERT INTO files BY NAME {files}",
        f"INSERT INTO class_pixels BY NAME SELECT {fkey}, {counts} FROM ({drawn})",
        f"INSERT INTO tags_frame BY NAME SELECT {fkey}, {frame} FROM ({drawn})",
    ]


def _range(store: CatalogStore) -> Selection:
    ranges = (LabelRange.parse("bicycle=9000:9050"), LabelRange.parse("car=10000:20000"))
    return select_frames(store, Question(ranges=ranges))


def _sql(store: CatalogStore) -> str:
    text = (
        "select count(*) from bluadmin.metaocean mo, t_car c "
        "where mo.fkey = c.fkey and int(c.value) > 50000"
    )
    return f"{run_sql(store, text).rows.to_pylist()[0]}"


def _diff(store: CatalogStore) -> str:
    newest = store.snapshot()
    difference = diff(store, newest - 1, newest)
    return f"{difference.frames_added:,} frames added"


def _compact(store: CatalogStore) -> str:
    done = compact(store, list, keep=timedelta(0), in_use=timedelta(0))
    return f"{done.merged:,} files merged, {done.deleted:,} deleted"


def _draw(rows: list[Row], path: Path) -> None:
    """Time, and space, by the number of frames; grey where a thing would grow with the frames."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    sizes = [row["frames"] for row in rows if row["step"] == "load"]
    drawn = {"load": "load", "check": "catalog check", "range": "range query",
             "classes": "statistics of 38 classes"}  # fmt: skip
    for number, (step, title) in enumerate(drawn.items()):
        of_step = [row for row in rows if row["step"] == step]
        color = f"C{number}"
        _line(left, sizes, [row["cpu_s"] for row in of_step], title, color)
        _line(right, sizes, [row["peak_mb"] for row in of_step], f"peak memory, {title}", color)
    disk = [row["disk_mb"] for row in rows if row["step"] == "load"]
    _line(right, sizes, disk, "Parquet files", "black")
    left.set(title="CPU time [s]", xlabel="frames")
    right.set(title="Space [MB]", xlabel="frames")
    for axes in (left, right):
        low, high = axes.get_ylim()
        for power in range(-9, 3):  # lines of slope 1
            axes.plot(sizes, [size * 10.0**power for size in sizes], color="0.88", zorder=0)
        axes.set(xscale="log", yscale="log", ylim=(low, high))
        axes.legend(frameon=False, fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _line(axes: Any, sizes: list[int], values: list[float], title: str, color: str) -> None:
    axes.plot(sizes, values, marker="o", markersize=4, label=title, color=color)
    axes.set(xscale="log", yscale="log")


if __name__ == "__main__":
    main()
