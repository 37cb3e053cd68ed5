"""What a choice of frames is worth on real drives: weak classes after training, over seeds.

    CAMVID_ROOT=FOLDER python -m benchmarks.next_training_data --data camvid --out DIR

Each seed trains a network on the frames that it begins with, and goes on from that one, for equal
steps, on these and a budget more, chosen in each way of benchmarks.frame_choices; on all frames;
and on half of them. Frames are chosen for the classes WANTED. A cell that has its line in
cells.jsonl is not run again, so that a killed run goes on; what matters most comes first.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.curve_picture import draw_curve
from benchmarks.frame_choices import CHOICES, Pool, reduced
from benchmarks.real_frames import RealFrames, parts_of, prepared

if TYPE_CHECKING:
    from benchmarks.small_segmenter import SmallSegmenter

CLASSES = (
    "sky", "building", "pole", "road", "pavement", "tree", "sign_symbol", "fence", "car",
    "pedestrian", "bicyclist",
)  # fmt: skip
WANTED = ("bicyclist", "pedestrian")
BUDGETS = (40, 80)
SEEDS = 10
FIRST_STEPS, STEPS = 600, 200
FIRST_RATE, RATE = 3e-3, 2e-3
RESAMPLES = 10_000

Matrix = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
PAIRS = (
    *(
        (f"cover-{n}", f"{other}-{n}")
        for other in ("random", "pixels", "balanced", "spread", "newest")
        for n in BUDGETS
    ),
    ("cover-40", "random-80"), ("cover-40", "all"),
    *((f"label-{n}", f"random-{n}") for n in BUDGETS),
    ("reduced", "half"), ("reduced", "all"),
)  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """What the cells of a seed have in common: its first network and what that one says."""

    pool: Pool
    first: Ints
    rows: Ints
    """Of the pool's frames."""
    tested: Ints
    weights: list[npt.NDArray[np.float32]]
    weakest: tuple[str, ...]
    """The three classes that the validation finds weakest."""
    matrices: Mapping[str, Matrix]


def run(root: Path | None, out: Path, seeds: int) -> None:
    """Run the cells that have no result yet, and write the table and the curve."""
    if root is None:
        print("CAMVID_ROOT is unset: it is the folder with CamVid's images/ and labels/; skipped")
        return
    os.environ |= {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    out.mkdir(parents=True, exist_ok=True)
    frames = prepared(root, out / "frames.npz", len(CLASSES))
    cells = {(cell["seed"], cell["cell"]) for cell in _cells(out)}
    missing = [one for one in _order(seeds) if one not in cells]
    if missing:
        _run_cells(frames, out, missing)
    results = _cells(out)
    text = "\n".join(table(results))
    (out / "table.txt").write_text(text + "\n")
    (out / "curve.svg").write_text(draw_curve(_curve(results)))
    print(text)


def _order(seeds: int) -> Iterator[tuple[int, str]]:
    """Each cell, those of the comparison that matters first."""
    choices = (("random", "cover"), ("balanced", "spread"), ("label", "newest"), ("pixels",))
    others: tuple[list[str], ...] = (["first"], ["all"], ["half", "reduced"], [])
    for names, also in zip(choices, others, strict=True):
        cells = [*also, *(f"{name}-{budget}" for name in names for budget in BUDGETS)]
        for seed in range(seeds):
            yield from ((seed, cell) for cell in cells)


def _cells(out: Path) -> list[dict[str, Any]]:
    """The results, each cell once; a line that a killed run left half is no result."""
    path, cells = out / "cells.jsonl", dict[tuple[int, str], dict[str, Any]]()
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            cell = json.loads(line)
        except json.JSONDecodeError:
            continue
        cells[cell["seed"], cell["cell"]] = cell
    return [*cells.values()]


def _run_cells(frames: RealFrames, out: Path, missing: Sequence[tuple[int, str]]) -> None:
    import tensorflow as tf

    from benchmarks.small_segmenter import SmallSegmenter

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    network = SmallSegmenter(len(CLASSES))
    pixels = frames.pixels(len(CLASSES))
    of_seed: dict[int, Seed] = {}
    for seed, cell in missing:
        began = time.process_time()
        if seed not in of_seed:
            of_seed = {seed: _seed(network, frames, pixels, out, seed)}  # one at a time in memory
        its = of_seed[seed]
        chosen = _chosen(its, pixels, cell)
        matrices = its.matrices
        if cell != "first":
            weights = network.train(
                frames.images[chosen], frames.labels[chosen], its.weights, steps=STEPS,
                learning_rate=RATE, seed=seed, classes=len(CLASSES),
            )  # fmt: skip
            matrices = _matrices(network, frames, its.tested, weights)
        line = {
            "seed": seed, "cell": cell, "frames": len(chosen), "weakest": its.weakest,
            "cpu_s": round(time.process_time() - began, 1),
            "pixels": pixels[chosen].sum(axis=0).tolist(),
            "matrices": {drive: matrix.tolist() for drive, matrix in matrices.items()},
        }  # fmt: skip
        with (out / "cells.jsonl").open("a") as file:
            file.write("\n" * _is_torn(out / "cells.jsonl") + json.dumps(line) + "\n")
        total = sum(matrices.values(), np.zeros((len(CLASSES),) * 2, np.int64))
        scores = f"{100 * _of(total, WANTED):.1f} wanted, {100 * _of(total, CLASSES):.1f} all"
        print(f"seed {seed} {cell}: IoU {scores}; {line['cpu_s']} s of CPU", flush=True)


def _is_torn(path: Path) -> bool:
    """Return whether a killed run left half a line at the file's end."""
    content = path.read_bytes() if path.exists() else b""
    return bool(content) and not content.endswith(b"\n")


def _seed(
    network: "SmallSegmenter", frames: RealFrames, pixels: Matrix, out: Path, seed: int
) -> Seed:
    parts = parts_of(frames.drives, frames.numbers, seed)
    path = out / f"first-{seed}.npz"
    if path.exists():
        with np.load(path) as stored:
            weights = [stored[name] for name in stored.files]
    else:
        weights = network.train(
            frames.images[parts.first], frames.labels[parts.first], network.fresh(seed),
            steps=FIRST_STEPS, learning_rate=FIRST_RATE, seed=seed, classes=len(CLASSES),
        )  # fmt: skip
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, *weights)
        partial.replace(path)
    validated = _matrices(network, frames, parts.validated, weights)
    matrix = sum(validated.values(), np.zeros((len(CLASSES),) * 2, np.int64))
    ious = iou(matrix)
    shares = network.shares(frames.images[parts.pool], weights)
    predicted = [np.bincount(one.argmax(-1).ravel(), minlength=len(CLASSES)) for one in shares]
    meant = matrix / np.maximum(matrix.sum(axis=0), 1)
    pool = Pool(
        frames.drives[parts.pool], frames.numbers[parts.pool], pixels[parts.pool],
        np.array(predicted) @ meant.T,
        np.array([1 - float(one.max(-1).mean()) for one in shares]),
        pixels[parts.first], 1 - np.nan_to_num(ious),
        tuple(CLASSES.index(name) for name in WANTED), seed,
    )  # fmt: skip
    weakest = [CLASSES[one] for one in np.argsort(ious)[:3]]
    tested = _matrices(network, frames, parts.tested, weights)
    return Seed(pool, parts.first, parts.pool, parts.tested, weights, tuple(weakest), tested)


def _chosen(its: Seed, pixels: Matrix, cell: str) -> Ints:
    """The rows that a cell trains on."""
    every = np.append(its.first, its.rows)
    if cell in ("first", "all"):
        return its.first if cell == "first" else every
    if cell == "half":
        return np.random.default_rng([its.pool.seed, 4]).permutation(every)[: len(every) // 2]
    if cell == "reduced":
        drives = np.zeros(len(every), np.int64)
        return every[reduced(pixels[every], drives, len(every) // 2, its.pool.seed)]
    choice, _, budget = cell.partition("-")
    chosen = CHOICES[choice](its.pool, int(budget))
    return np.append(its.first, its.rows[chosen])


def _matrices(
    network: "SmallSegmenter", frames: RealFrames, rows: Ints, weights: Any
) -> dict[str, Matrix]:
    """Confusion matrix of each drive: rows truth, columns prediction."""
    n = len(CLASSES)
    matrices = {drive: np.zeros((n, n), np.int64) for drive in np.unique(frames.drives[rows])}
    for row, shares in zip(rows, network.shares(frames.images[rows], weights), strict=True):
        label, predicted = frames.labels[row], shares.argmax(-1)
        known = label < n
        cells = label[known].astype(np.int64) * n + predicted[known]
        matrices[frames.drives[row]] += np.bincount(cells, minlength=n * n).reshape(n, n)
    return matrices


def iou(matrix: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """(..., C) IoU of each class; NaN where it has no truth."""
    right = np.diagonal(matrix, axis1=-2, axis2=-1).astype(np.float64)
    truth, taken = matrix.sum(axis=-1), matrix.sum(axis=-2)
    return np.where(truth > 0, right / np.maximum(truth + taken - right, 1), np.nan)


def _of(matrix: npt.NDArray[Any], classes: Sequence[str]) -> Any:
    """(...) mean IoU of classes, those without truth left out; NaN where none has truth."""
    ious = iou(matrix)[..., [CLASSES.index(name) for name in classes]]
    known = (~np.isnan(ious)).sum(axis=-1)
    return np.where(known > 0, np.nansum(ious, axis=-1) / np.maximum(known, 1), np.nan)


def _stacked(results: Sequence[Mapping[str, Any]], cell: str, seeds: Sequence[int]) -> Matrix:
    """(seeds, drives, C, C) confusion matrices of a cell; zeros where none is tested."""
    drives = sorted({drive for one in results for drive in one["matrices"]})
    of = {one["seed"]: one["matrices"] for one in results if one["cell"] == cell}
    none = np.zeros((len(CLASSES),) * 2, np.int64).tolist()
    return np.array([[of[seed].get(drive, none) for drive in drives] for seed in seeds])


def intervals(
    one: Matrix, other: Matrix, classes: Sequence[str]
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """The mean difference of two cells [points], and its 95 % by seeds, and by seeds and drives.

    Args:
        one: (seeds, drives, C, C).
        other: Of the same seeds and drives.
        classes: Whose mean IoU is compared.
    """
    random = np.random.default_rng(0)
    seeds, drives = one.shape[:2]
    apart = 100 * (_of(one.sum(axis=1), classes) - _of(other.sum(axis=1), classes))
    drawn = apart[random.integers(0, seeds, (RESAMPLES, seeds))].mean(axis=1)
    both = []
    for _ in range(RESAMPLES // 10):
        rows = random.integers(0, seeds, seeds)
        weight = random.multinomial(drives, np.full(drives, 1 / drives), seeds)[:, :, None, None]
        pair = [_of((matrices[rows] * weight).sum(axis=1), classes) for matrices in (one, other)]
        both.append(100 * np.nanmean(pair[0] - pair[1]))
    ends = [np.nanpercentile(values, [2.5, 97.5]).tolist() for values in (drawn, both)]
    return float(apart.mean()), tuple(ends[0]), tuple(ends[1])


def _seeds(results: Sequence[Mapping[str, Any]], *cells: str) -> list[int]:
    """The seeds that have all of these cells."""
    of = [{one["seed"] for one in results if one["cell"] == cell} for cell in cells]
    return sorted(set.intersection(*of))


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tables of scores and differences, as Markdown."""
    lines = ["| cell | seeds | frames | wanted [%] | weakest three [%] | all classes [%] |"]
    lines += ["|---|---|---|---|---|---|"]
    for cell in dict.fromkeys(cell for _, cell in _order(1)):
        seeds = _seeds(results, cell)
        if not seeds:
            continue
        matrices = _stacked(results, cell, seeds).sum(axis=1)
        rows = [one for one in results if one["cell"] == cell]
        weakest = [
            _of(matrix, _weakest(results, seed))
            for matrix, seed in zip(matrices, seeds, strict=True)
        ]
        means = [np.mean(one) for one in (_of(matrices, WANTED), weakest, _of(matrices, CLASSES))]
        frames = np.mean([one["frames"] for one in rows])
        scores = " | ".join(f"{100 * mean:.2f}" for mean in means)
        lines.append(f"| `{cell}` | {len(seeds)} | {frames:.0f} | {scores} |")
    scored = {"wanted": WANTED, **{name: (name,) for name in WANTED}, "all classes": CLASSES}
    columns = ["difference [points]", "seeds", *scored, "wanted, by seeds and drives"]
    lines += ["", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one, other in PAIRS:
        seeds = _seeds(results, one, other)
        if len(seeds) < 2:
            continue
        better, usual = (_stacked(results, cell, seeds) for cell in (one, other))
        of = {name: intervals(better, usual, classes) for name, classes in scored.items()}
        cells = [f"{mean:+.2f} ({_range(by_seed)})" for mean, by_seed, _ in of.values()]
        cells.append(_range(of["wanted"][2]))
        lines.append(f"| `{one}` - `{other}` | {len(seeds)} | {' | '.join(cells)} |")
    return lines


def _weakest(results: Sequence[Mapping[str, Any]], seed: int) -> Sequence[str]:
    return next(one["weakest"] for one in results if one["seed"] == seed)


def _range(ends: tuple[float, float]) -> str:
    return f"{ends[0]:+.2f} to {ends[1]:+.2f}"


def _curve(
    results: Sequence[Mapping[str, Any]],
) -> dict[str, list[tuple[int, float, float, float]]]:
    """Of each choice the points (frames added, mean IoU of WANTED [%], its 95 % by seeds)."""
    random, curve = np.random.default_rng(0), {}
    for choice in CHOICES:
        points = []
        for budget, cell in ((0, "first"), *((n, f"{choice}-{n}") for n in BUDGETS)):
            points += _point(results, cell, budget, random)
        if len(points) > 1:
            curve[choice] = points
    every = [one["frames"] for one in results if one["cell"] == "all"]
    first = [one["frames"] for one in results if one["cell"] == "first"]
    if every:
        curve["all"] = _point(results, "all", round(np.mean(every) - np.mean(first)), random)
    return curve


def _point(
    results: Sequence[Mapping[str, Any]], cell: str, added: int, random: np.random.Generator
) -> list[tuple[int, float, float, float]]:
    seeds = _seeds(results, cell)
    if len(seeds) < len(_seeds(results, "first")):
        return []  # a mean over other seeds is no point of the same curve
    scores = 100 * _of(_stacked(results, cell, seeds).sum(axis=1), WANTED)
    drawn = scores[random.integers(0, len(seeds), (RESAMPLES, len(seeds)))].mean(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5]).tolist()
    return [(added, float(scores.mean()), low, high)]
