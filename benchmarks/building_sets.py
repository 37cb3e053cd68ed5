"""Sets built from a large catalog: time, peak memory, achieved against wanted.

    .venv/bin/python -m benchmarks.building_sets [--frames 1000000] [--folder DIR] [--memory-mb 0]

Drawn frames as catalog_scale has them. Every set is built in a process of its own, from the open
catalog to the rows of the frames chosen: wall time, CPU time of all threads, peak memory. With
--memory-mb the snapshot is held in memory first, as a server holds it; its load is not timed, and
its memory is in the peak. A --folder is kept, and used again when it holds that many frames.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.frames.catalog_info import info
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList
from query.question.label_range import LabelRange
from query.question.question import Question
from query.sets.methods import Cover, Demand, Match, Method, Sample, Uncertain
from query.sets.select_set import SetRequest, select_set

REPOSITORY = Path(__file__).parent.parent
FRAMES = 5_000

TARGETS: dict[str, dict[str, dict[str, float]]] = {
    "city": {
        "camera": {"front_center": 0.5, "front_left": 0.15, "front_right": 0.15, "*": 0.2},
        "pedestrian": {"present": 0.97, "absent": 0.03},
        "bicycle": {"present": 0.8, "absent": 0.2},
        "car:1000,10000": {":1000": 0.1, "1000:10000": 0.3, "10000:": 0.6},
    },
    "motorway": {
        "camera": {"front_center": 0.7, "rear_center": 0.3},
        "truck:1,5000": {":1": 0.1, "1:5000": 0.2, "5000:": 0.7},
        "bicycle": {"present": 0.6, "absent": 0.4},
        "pedestrian": {"present": 0.7, "absent": 0.3},
        "sky:20000": {":20000": 0.85, "20000:": 0.15},
    },
    "rare": {
        # Of 1,000,000 frames some 330 have so many pixels of it: this one cannot be met.
        "rain_dirt:1,100000": {":1": 0.3, "1:100000": 0.3, "100000:": 0.4},
        "blurred_area": {"present": 0.3, "absent": 0.7},
        "camera": {"side_left": 0.4, "side_right": 0.4, "*": 0.2},
    },
}
"""Three domains, each far from the catalog's own distribution."""


def main() -> None:
    """Print a row per set, and the tables of what the matched ones achieved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None, help="keep the catalog here")
    parser.add_argument("--memory", default="2GB", help="limit of one process's queries")
    parser.add_argument("--memory-mb", type=int, default=0)
    parser.add_argument("--step", choices=_methods(["car"]), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(_measured(options)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        options.folder = options.folder or Path(scratch)
        _load(options.folder, options.frames, options.memory)
        print(
            f"{options.frames:,} frames\n{'set':24}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}"
            "  achieved"
        )
        reports = {}
        for step in _methods(["car"]):
            row = _in_process(step, options)
            print(
                f"{step:24}{row['wall_s']:9.2f}{row['cpu_s']:9.2f}{row['peak_mb']:9,.0f}"
                f"  {row['result']}",
                flush=True,
            )
            reports[step] = row["report"]
        for step, report in reports.items():
            if "marginals" in report:
                _show(step, report)


def _load(folder: Path, frames: int, memory: str) -> None:
    store = CatalogStore(CatalogLocation.in_folder(folder / "catalog"), memory_limit=memory)
    there = info(store).frames
    if there not in (0, frames):
        raise SystemExit(f"{folder}: holds {there:,} frames")
    if not there:
        began = time.perf_counter()
        load_frames(store, list(_names()), frames)
        print(f"loaded in {time.perf_counter() - began:.0f} s")
    store.close()


def _names() -> dict[str, str]:
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    return dict(zip(palette.tags, palette.classes, strict=True))


def _methods(tags: list[str]) -> dict[str, Method]:
    """Every set that is built."""
    classes = [
        Demand(question=Question(ranges=(LabelRange(tag=tag, lowest=1),)), frames=100, name=tag)
        for tag in tags
    ]
    by_camera = [one.model_copy(update={"per": ("camera",)}) for one in classes]
    return {
        "sample": Sample(frames=FRAMES),
        "stratified sample": Sample(
            frames=FRAMES, stratify=("camera", "scene", "car:0,1000,10000")
        ),
        **{
            f"matched: {name}": Match(frames=FRAMES, targets=targets, tolerance=0.005)
            for name, targets in TARGETS.items()
        },
        "matched: every class": Match(frames=FRAMES, targets=_rarer(tags), tolerance=0.005),
        "cover: class": Cover(demands=tuple(classes)),
        "cover: camera x class": Cover(demands=tuple(by_camera)),
        "uncertain": Uncertain(tag="animals", frames=1_000, per_scene=5),
    }


def _rarer(tags: list[str]) -> dict[str, dict[str, float]]:
    """Every class somewhat rarer than it is; the n-th is in (38 - n) / 40 of the frames."""
    shares = [((38 - number) / 40) ** 1.3 for number in range(len(tags))]
    return {
        tag: {"present": share, "absent": 1 - share}
        for tag, share in zip(tags, shares, strict=True)
    }


def _in_process(step: str, options: argparse.Namespace) -> dict[str, Any]:
    call = [
        sys.executable, "-m", "benchmarks.building_sets", "--step", step,
        "--folder", str(options.folder), "--memory", options.memory,
        "--memory-mb", str(options.memory_mb),
    ]  # fmt: skip
    run = subprocess.run(call, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(run.stderr)
    row: dict[str, Any] = json.loads(run.stdout)
    return row


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    names = _names()
    store = CatalogStore(
        CatalogLocation.in_folder(options.folder / "catalog"),
        memory_limit=options.memory,
        snapshot_memory_mb=options.memory_mb,
        class_names=names.copy,
    )
    store.snapshot()
    if options.memory_mb and (store.memory is None or not store.memory.wait(600)):
        raise SystemExit("the snapshot does not fit into --memory-mb")
    method = _methods(list(names))[options.step]
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.perf_counter()
    selection, report = select_set(store, SetRequest(Question(), method))
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result = f"{len(selection):,} frames"
    if "lower_bound" in report:
        result += f", at least {report['lower_bound']:,} needed; {len(report['unmet'])} unmet"
    if "tolerance_met" in report:
        worst = max(one["largest_difference"] for one in report["marginals"])
        result += f", largest difference {worst:.4f}"
    return {
        "wall_s": wall, "cpu_s": cpu, "peak_mb": after.ru_maxrss / 1e3, "result": result,
        "report": report,
    }  # fmt: skip


def _show(step: str, report: dict[str, Any]) -> None:
    met = "met" if report["tolerance_met"] else "not met"
    print(f"\n{step}: tolerance {report['tolerance']} {met}")
    for marginal in report["marginals"]:
        print(
            f"  {marginal['marginal']}: total variation {marginal['total_variation']:.5f}, "
            f"Jensen-Shannon {marginal['jensen_shannon']:.5f}"
        )
        for row in marginal["values"]:
            if row["value"] == "*" and not row["wanted"] and not row["frames"]:
                continue
            print(
                f"    {row['value']:16}wanted {row['wanted']:8.4f}  achieved "
                f"{row['achieved']:8.4f}  available {row['available']:>12,}"
            )
    for one in report["unmet"]:
        print(f"  not met: {one['marginal']} {one['value']}: {one['reason']}")


if __name__ == "__main__":
    main()
