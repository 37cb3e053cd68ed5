"""What `improve` and `dataset reduce` are worth: mean IoU after training, over seeds.

    nice .venv/bin/python -m benchmarks.next_training_data --seeds 5 --out FOLDER

Sample frames are drawn once, at a quarter of their size, and shared by the seeds. Each seed holds
30 % of the scenes for validation, and trains equal networks for equal steps on: a few frames of the
others; these and a budget more, chosen by `improve`, at random, or class-balanced (always a frame
of the class that is in the fewest frames); all frames of the others; and half of them, chosen by
`reduce` or at random. Differences are paired by seed, with intervals of 95 % by Student's t. A seed
that has its result is not run again; each takes two to three minutes of CPU.

`--data camvid` does the like on real frames: benchmarks.next_real_frames.
"""

import argparse
import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

from api.schemas.new_datasets import NewDataset
from api.services.datasets.new_dataset import make_dataset, stores_of
from benchmarks import next_real_frames
from catalog.tags.model_scores import write_scores
from pipeline.datasets.improve import HeldOutSplit, Improvement, improve_dataset
from pipeline.datasets.reduce import Reduction, reduce_dataset
from pipeline.datasets.row_counts import class_matrix
from pipeline.manifest import Manifest
from query.question.question import Question
from sample_data.generate import write_sample_data
from tests.pipeline.homes import add_source, open_home
from training import main as training_program
from training import merge_predictions, merge_scores

FRAMES, FIRST, BUDGET = 96, 12, 16
STEPS = 300
SEEDS = 5
SMALLER = 4
HEIGHT_PX, WIDTH_PX = 64, 104
PAIRS = (
    ("improve", "random"), ("improve", "balanced"), ("improve", "first"),
    ("reduced", "all"), ("reduced", "half"),
)  # fmt: skip


def main() -> None:
    """Run the seeds that have no result yet, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", choices=("sample", "camvid"), default="sample")
    parser.add_argument("--seeds", type=int, help="10 of camvid, else 5.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes, of camvid.")
    parser.add_argument("--out", type=Path, default=Path("next_training_data"))
    flags = parser.parse_args()
    if flags.data == "camvid":
        root = os.environ.get("CAMVID_ROOT")
        next_real_frames.run(
            None if root is None else Path(root),
            flags.out,
            flags.seeds or next_real_frames.SEEDS,
            flags.jobs,
        )
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    write_sample_data(flags.out / "a2d2", frames=FRAMES, reduced=SMALLER)
    results = []
    for seed in range(flags.seeds or SEEDS):
        path = flags.out / f"seed-{seed}.json"
        if not path.exists():
            path.write_text(json.dumps(_seed(flags.out, seed)))
        results.append(json.loads(path.read_text()))
        print(results[-1], flush=True)
    _print(results)


def _seed(out: Path, seed: int) -> Mapping[str, float]:
    """Mean IoU of each training set."""
    folder = out / str(seed)
    workspace = open_home(folder / "home")
    add_source(workspace, "a2d2", out / "a2d2")
    whole = make_dataset(
        workspace,
        NewDataset(name="all", question=Question(), split="train=0.7,validation=0.3", seed=seed),
    )
    stores, manifest = stores_of(workspace), Manifest.read(Path(whole.manifest))
    train = np.flatnonzero(np.asarray(pc.equal(manifest.frames["split"], "train")))
    held = np.setdiff1d(np.arange(len(manifest)), train)
    random = np.random.default_rng(seed)
    first = random.choice(train, FIRST, replace=False)
    rest = np.setdiff1d(train, first)
    names = manifest.frames["fkey"].to_pylist()

    def rows_in(path: str) -> Any:
        fkeys = set(Manifest.read(Path(path)).split("train").frames["fkey"].to_pylist())
        return np.array([row for row in train if names[row] in fkeys])

    def scored(name: str, rows: Any) -> float:
        return _scored(folder / name, _subset(folder, manifest, name, rows, held), seed)

    scores = {"first": scored("first", first)}
    report = json.loads((folder / "first/report/report.json").read_text())
    small = make_dataset(
        workspace,
        NewDataset(name="small", question=Question(where=_these(manifest, first))),
    )
    unsure = _predicted(folder, _subset(folder, manifest, "rest", rest, held))
    write_scores(workspace.whole_catalog, "first", "aa", unsure, None)
    weak = {row["tag"]: 1 - (row["iou"] or 0) for row in report["per_class"]}
    cameras = {row["camera"]: 1 - (row["miou"] or 0) for row in report["slices"]["camera"]}
    wanted = Improvement(BUDGET, weak, {"camera": cameras}, "first_uncertainty", "all", seed=seed)
    grown, _ = improve_dataset(stores, small, wanted, [HeldOutSplit(whole, "validation")])
    of_grown = set(Manifest.read(Path(grown.manifest)).frames["fkey"].to_pylist())
    improved = np.array([row for row in train if names[row] in of_grown])
    assert len(improved) == FIRST + BUDGET
    half = len(train) // 2
    kept = reduce_dataset(stores, whole, Reduction(half, split="train", seed=seed))
    sets = {
        "improve": improved,
        "random": np.append(first, random.choice(rest, BUDGET, replace=False)),
        "balanced": np.append(first, _balanced(manifest, first, rest, random)),
        "all": train,
        "reduced": rows_in(kept.manifest),
        "half": random.choice(train, half, replace=False),
    }
    scores |= {name: scored(name, rows) for name, rows in sets.items()}
    workspace.close()
    return scores


def _subset(folder: Path, manifest: Manifest, name: str, rows: Any, held: Any) -> Path:
    """A manifest with some training frames and all that are held for validation."""
    chosen = manifest.frames.take(pa.array(np.sort(np.concatenate((rows, held)))))
    header = replace(manifest.header, id=f"{name}-{manifest.header.id[:12]}")
    replace(manifest, header=header, frames=chosen).write(folder / "manifests" / name)
    return folder / "manifests" / name


def _these(manifest: Manifest, rows: Any) -> str:
    names = manifest.frames["image"].take(pa.array(rows)).to_pylist()
    return "filename in (" + ", ".join(f"'{name}'" for name in names) + ")"


def _balanced(manifest: Manifest, first: Any, rest: Any, random: Any) -> list[int]:
    """Again and again a frame of the class that is in the fewest frames so far."""
    has = class_matrix(manifest.frames, len(manifest.header.classes)) > 0
    counts, left, taken = has[first].sum(axis=0), list(rest), []
    for _ in range(BUDGET):
        there = has[left].any(axis=0)
        rare = int(np.argmin(np.where(there, counts, 10**9)))
        row = int(random.choice([one for one in left if has[one, rare]]))
        taken.append(row)
        left.remove(row)
        counts = counts + has[row]
    return taken


def _scored(folder: Path, manifest: Path, seed: int) -> float:
    """Mean IoU of a network trained on a manifest's split `train`."""
    model, results, report = (str(folder / part) for part in ("model", "results", "report"))
    read = ["--manifest", str(manifest), "--model_dir", model, "--threads", "1"]
    size = ["--height", str(HEIGHT_PX), "--width", str(WIDTH_PX), "--seed", str(seed)]
    train = ["--exec_mode", "train", *read, *size, "--max_steps", str(STEPS)]
    _run(training_program.main, *train, "--learning_rate", "0.004", "--checkpoint_every", "9999")
    _run(training_program.main, "--exec_mode", "evaluate", *read, "--results_dir", results)
    _run(merge_scores.main, "--results_dir", results, "--shards", "1", "--out", report)
    return float(json.loads((folder / "report/report.json").read_text())["miou"])


def _predicted(folder: Path, manifest: Path) -> pa.Table:
    out = str(folder / "predicted")
    read = ["--manifest", str(manifest), "--model_dir", str(folder / "first/model")]
    _run(training_program.main, "--exec_mode", "predict", *read, "--threads", "1",
         "--split", "train", "--results_dir", out)  # fmt: skip
    _run(merge_predictions.main, "--results_dir", out, "--shards", "1", "--out", out)
    scores = pq.read_table(folder / "predicted/frame_scores.parquet")
    return scores.select(["fkey", "uncertainty", "margin"])


def _run(program: Callable[[Sequence[str]], int], *arguments: str) -> None:
    """A program in this process: importing TensorFlow takes longer than some of its runs."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        status = program(arguments)
    if status:
        sys.exit(f"{program.__module__} {' '.join(arguments)}: status {status}")


def _print(results: Sequence[Mapping[str, float]]) -> None:
    print(f"{len(results)} seeds; mean IoU [%]")
    for name in results[0]:
        values = 100 * np.array([one[name] for one in results])
        print(f"  {name:10} {values.mean():6.2f}   ({', '.join(f'{v:.1f}' for v in values)})")
    if len(results) < 2:
        return
    for one, other in PAIRS:
        apart = 100 * np.array([result[one] - result[other] for result in results])
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std(ddof=1) / len(apart) ** 0.5
        print(f"  {one} - {other}: {apart.mean():+.2f}, {apart.mean() - half:+.2f} to "
              f"{apart.mean() + half:+.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
