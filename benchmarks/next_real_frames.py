"""What a choice of frames is worth on real drives: weak classes after training, over seeds.

    CAMVID_ROOT=FOLDER python -m benchmarks.next_training_data --data camvid --out DIR --jobs 4

Each seed trains a classifier of pixels, over features of a network that others trained, on the
frames that it begins with, and goes on from that one, for equal steps, on these and a budget more,
chosen in each way of benchmarks.frame_choices; on all frames; and on half of them. All this twice:
with whole frames, and with each frame cut into four upright strips, as of four narrow cameras, of
which a budget is a smaller part. A cell that has its line in cells.jsonl is not run again, so that
a killed run goes on; what matters most comes first.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import pixel_head
from benchmarks.curve_picture import draw_curve
from benchmarks.frame_choices import CHOICES, Pool, reduced
from benchmarks.pixel_head import Pixels, Weights
from benchmarks.pretrained_features import FrameFeatures, prepared_features
from benchmarks.real_frames import HEIGHT_PX, WIDTH_PX, Parts, RealFrames, parts_of, prepared

CLASSES = (
    "sky", "building", "pole", "road", "pavement", "tree", "sign_symbol", "fence", "car",
    "pedestrian", "bicyclist",
)  # fmt: skip
WANTED = ("bicyclist", "pedestrian")
START = "0006R0"
"""Drive that the first frames are of: it has hardly a bicyclist. 0001TP has too few frames for it,
and 0016E5 two thirds of all frames and most bicyclists."""
VIEWS = (1, 4)
BUDGETS = (40, 80)
FEW = (10, 20)
SEEDS = 10
FIRST_SEED = 10
"""The ten before had another learner, and what it got wrong was learned from them."""
FIRST_STEPS, STEPS = 500, 400
FIRST_RATE, RATE = 4e-3, 2e-3
RESAMPLES = 10_000

Matrix = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int64]
Cell = tuple[int, int, str]
"""Views, seed, name."""
PAIRS = (
    *((f"cover-{n}", f"random-{n}") for n in (*FEW, *BUDGETS)),
    *(
        (f"cover-{n}", f"{other}-{n}")
        for other in ("pixels", "balanced", "spread", "newest")
        for n in BUDGETS
    ),
    ("cover-20", "random-40"), ("cover-40", "random-80"),
    *((f"cover-{n}", "all") for n in (*FEW, *BUDGETS)),
    *((f"{other}-{n}", f"random-{n}") for other in ("weakest", "label") for n in BUDGETS),
    *(("all", f"random-{n}") for n in (*FEW, *BUDGETS)),
    ("reduced", "half"), ("reduced", "all"), ("half", "all"),
)  # fmt: skip


class Pictures:
    """The frames' pictures, as many of each as there are views, with what is known of each."""

    def __init__(self, frames: RealFrames, features: FrameFeatures, views: int) -> None:
        """Cut them."""
        self.views, self._pixels = views, features.pixels
        strip = WIDTH_PX // views
        of_pixel = features.frames * views + features.columns // strip
        self._order = np.argsort(of_pixel, kind="stable")
        count = len(frames.names) * views
        self._ends = np.searchsorted(of_pixel[self._order], np.arange(count + 1))
        labels = frames.labels.reshape(-1, HEIGHT_PX, views, strip).swapaxes(1, 2)
        flat = labels.reshape(count, -1)
        self.pixels: Matrix = np.array(
            [np.bincount(one, minlength=256)[: len(CLASSES)] for one in flat], np.int64
        )

    def of(self, frames: Ints) -> Ints:
        """The rows of all pictures of some frames."""
        rows: Ints = (frames[:, None] * self.views + np.arange(self.views)).ravel()
        return rows

    def learned(self, rows: Ints) -> Pixels:
        """The pixels that are learned from, of some pictures."""
        parts = [self._order[self._ends[row] : self._ends[row + 1]] for row in rows.tolist()]
        at, all_of = np.concatenate(parts), self._pixels
        return Pixels(all_of.features[at], all_of.labels[at], all_of.counts[at])


@dataclass(frozen=True)
class Seed:
    """What the cells of a seed have in common: its first classifier and what that one says."""

    number: int
    frames: RealFrames
    features: FrameFeatures
    pictures: Pictures
    parts: Parts

    @property
    def first(self) -> Ints:
        """Pictures that the first classifier is trained on."""
        every = self.pictures.of(self.parts.first)
        drawn = np.random.default_rng([self.number, 8]).permutation(every)
        return np.sort(drawn[: len(self.parts.first)])

    @property
    def rows(self) -> Ints:
        """Pictures of the pool; where frames are cut, what is left of the first ones' too."""
        frames = np.append(self.parts.first, self.parts.pool)
        return np.setdiff1d(self.pictures.of(frames), self.first)

    @cached_property
    def weights(self) -> Weights:
        """Of the first classifier."""
        untrained = pixel_head.fresh(self.features.grid.shape[-1], len(CLASSES), self.number)
        return pixel_head.train(
            self.pictures.learned(self.first),
            self.features.scale,
            untrained,
            FIRST_STEPS,
            FIRST_RATE,
            self.number,
        )

    @cached_property
    def validated(self) -> Matrix:
        """Confusion matrix of the validation."""
        matrices = _matrices(self, self.parts.validated, self.weights)
        return sum(matrices.values(), np.zeros((len(CLASSES),) * 2, np.int64))

    @property
    def weakest(self) -> tuple[str, ...]:
        """The three classes that the validation finds weakest."""
        return tuple(CLASSES[one] for one in np.argsort(iou(self.validated))[:3])

    def pool(self, wanted: Sequence[str], *, predicted: bool) -> Pool:
        """What is known of the pictures to choose from; predictions only where they are asked."""
        expected, unsure = np.zeros((len(self.rows), len(CLASSES))), np.zeros(len(self.rows))
        if predicted:
            expected, unsure = self._predicted()
        frame = self.rows // self.pictures.views
        return Pool(
            self.frames.drives[frame], self.frames.numbers[frame], self.pictures.pixels[self.rows],
            expected, unsure, self.pictures.pixels[self.first],
            1 - np.nan_to_num(iou(self.validated)),
            tuple(CLASSES.index(name) for name in wanted), self.number,
            self.rows % self.pictures.views,
        )  # fmt: skip

    def _predicted(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Of the pool's pictures the pixels that predictions let expect, and the uncertainty."""
        meant = self.validated / np.maximum(self.validated.sum(axis=0), 1)
        views, expected, unsure = self.pictures.views, [], []
        for row in self.rows.tolist():
            grid = self.features.grid[row // views]
            width = grid.shape[1] // views
            at = (row % views) * width
            shares = pixel_head.shares(grid[:, at : at + width], self.features.scale, self.weights)
            count = np.bincount(shares.argmax(-1).ravel(), minlength=len(CLASSES))
            expected.append(4 * count)  # the grid has every second pixel each way
            unsure.append(1 - float(shares.max(-1).mean()))
        return np.array(expected) @ meant.T, np.array(unsure)


def run(root: Path | None, out: Path, seeds: int, jobs: int = 1) -> None:
    """Run the cells that have no result yet, and write the tables and the curves."""
    if root is None:
        print("CAMVID_ROOT is unset: it is the folder with CamVid's images/ and labels/; skipped")
        return
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "pixels.npz").exists():
        # Once, in a process of its own: the others do without TensorFlow.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            process.submit(_prepare, root, out).result()
    done = {(cell["views"], cell["seed"], cell["cell"]) for cell in _cells(out)}
    missing = [one for one in _order(seeds) if one not in done]
    # Each process has its seeds, and a line at a time is appended to the results.
    of_job = [[one for one in missing if one[1] % jobs == job] for job in range(jobs)]
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as processes:
        for each in [processes.submit(_run_cells, root, out, cells) for cells in of_job if cells]:
            each.result()
    results = _cells(out)
    parts = []
    for views in VIEWS:
        of_views = [one for one in results if one["views"] == views]
        if of_views:
            parts.append(f"{views} to a frame\n\n" + "\n".join(table(of_views)))
            (out / f"curve-{views}.svg").write_text(draw_curve(_curve(of_views)))
    (out / "table.txt").write_text("\n\n".join(parts) + "\n")
    print("\n\n".join(parts))


def _order(seeds: int) -> Iterator[Cell]:
    """Each cell, those of the comparison that matters first."""
    stages = [
        ["first", *(f"{name}-{n}" for name in ("random", "cover") for n in BUDGETS)],
        ["all", *(f"{name}-{n}" for name in ("random", "cover") for n in FEW)],
        [f"{name}-{n}" for name in ("weakest", "balanced", "newest") for n in BUDGETS],
        ["half", "reduced", *(f"{name}-{n}" for name in ("label", "spread") for n in BUDGETS)],
        [f"pixels-{n}" for n in BUDGETS],
    ]
    for cells in stages:
        for views in VIEWS:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                yield from ((views, seed, cell) for cell in cells)


def _cells(out: Path) -> list[dict[str, Any]]:
    """The results, each cell once; a line that a killed run left half is no result."""
    path, cells = out / "cells.jsonl", dict[Cell, dict[str, Any]]()
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            cell = json.loads(line)
        except json.JSONDecodeError:
            continue
        cells[cell["views"], cell["seed"], cell["cell"]] = cell
    return [*cells.values()]


def _prepare(root: Path, out: Path) -> None:
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3"}
    frames = prepared(root, out / "frames.npz", len(CLASSES))
    prepared_features(frames, root, out, START)


def _run_cells(root: Path, out: Path, missing: Sequence[Cell]) -> None:
    frames = prepared(root, out / "frames.npz", len(CLASSES))
    features = prepared_features(frames, root, out, START)
    pictures = {views: Pictures(frames, features, views) for views in VIEWS}
    for (views, number), group in groupby(missing, key=lambda one: one[:2]):
        parts = parts_of(frames.drives, frames.numbers, START, number)
        its = Seed(number, frames, features, pictures[views], parts)
        for _, _, cell in group:
            began = time.process_time()
            chosen, weights = _chosen(its, cell), its.weights
            if cell != "first":
                weights = pixel_head.train(
                    its.pictures.learned(chosen), features.scale, weights, STEPS, RATE, number
                )
            matrices = _matrices(its, parts.tested, weights)
            line = {
                "views": views, "seed": number, "cell": cell, "frames": len(chosen),
                "weakest": its.weakest, "cpu_s": round(time.process_time() - began, 1),
                "pixels": its.pictures.pixels[chosen].sum(axis=0).tolist(),
                "matrices": {drive: matrix.tolist() for drive, matrix in matrices.items()},
            }  # fmt: skip
            with (out / "cells.jsonl").open("a") as file:
                file.write("\n" * _is_torn(out / "cells.jsonl") + json.dumps(line) + "\n")
            total = sum(matrices.values(), np.zeros((len(CLASSES),) * 2, np.int64))
            scores = f"{100 * _of(total, WANTED):.1f} wanted, {100 * _of(total, CLASSES):.1f} all"
            said = f"{views} to a frame, seed {number} {cell}: IoU {scores}; {line['cpu_s']} s"
            print(said, flush=True)


def _is_torn(path: Path) -> bool:
    """Return whether a killed run left half a line at the file's end."""
    content = path.read_bytes() if path.exists() else b""
    return bool(content) and not content.endswith(b"\n")


def _chosen(its: Seed, cell: str) -> Ints:
    """The pictures that a cell trains on."""
    every = np.append(its.first, its.rows)
    if cell in ("first", "all"):
        return its.first if cell == "first" else every
    if cell == "half":
        return np.random.default_rng([its.number, 4]).permutation(every)[: len(every) // 2]
    if cell == "reduced":
        drives = np.zeros(len(every), np.int64)
        pixels = its.pictures.pixels[every]
        return every[reduced(pixels, drives, len(every) // 2, its.number)]
    choice, _, budget = cell.partition("-")
    wanted = its.weakest if choice == "weakest" else WANTED
    pool = its.pool(wanted, predicted=choice in ("label", "spread"))
    chosen = CHOICES["cover" if choice == "weakest" else choice](pool, int(budget))
    return np.append(its.first, its.rows[chosen])


def _matrices(its: Seed, rows: Ints, weights: Weights) -> dict[str, Matrix]:
    """Confusion matrix of each drive of some frames: rows truth, columns prediction."""
    n, drives = len(CLASSES), its.frames.drives
    matrices = {drive: np.zeros((n, n), np.int64) for drive in np.unique(drives[rows])}
    for row in rows.tolist():
        label = its.frames.labels[row][::2, ::2]
        predicted = pixel_head.predicted(its.features.grid[row], its.features.scale, weights)
        known = label < n
        cells = label[known].astype(np.int64) * n + predicted[known]
        matrices[drives[row]] += np.bincount(cells, minlength=n * n).reshape(n, n)
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


def _each(matrices: Matrix, classes: Sequence[Sequence[str]]) -> npt.NDArray[np.float64]:
    """(seeds,) mean IoU of each seed's classes, of matrices (seeds, C, C)."""
    return np.array([_of(one, names) for one, names in zip(matrices, classes, strict=True)])


def _stacked(results: Sequence[Mapping[str, Any]], cell: str, seeds: Sequence[int]) -> Matrix:
    """(seeds, drives, C, C) confusion matrices of a cell; zeros where none is tested."""
    drives = sorted({drive for one in results for drive in one["matrices"]})
    of = {one["seed"]: one["matrices"] for one in results if one["cell"] == cell}
    none = np.zeros((len(CLASSES),) * 2, np.int64).tolist()
    return np.array([[of[seed].get(drive, none) for drive in drives] for seed in seeds])


def intervals(
    one: Matrix, other: Matrix, classes: Sequence[Sequence[str]]
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """The mean difference of two cells [points], and its 95 % by seeds, and by seeds and drives.

    Args:
        one: (seeds, drives, C, C).
        other: Of the same seeds and drives.
        classes: Of each seed, whose mean IoU is compared.
    """
    random = np.random.default_rng(0)
    seeds, drives = one.shape[:2]
    whole = [_each(matrices.sum(axis=1), classes) for matrices in (one, other)]
    apart = 100 * (whole[0] - whole[1])
    drawn = apart[random.integers(0, seeds, (RESAMPLES, seeds))].mean(axis=1)
    both = []
    for _ in range(RESAMPLES // 10):
        rows = random.integers(0, seeds, seeds)
        weight = random.multinomial(drives, np.full(drives, 1 / drives), seeds)[:, :, None, None]
        drawn_classes = [classes[row] for row in rows.tolist()]
        pair = [
            _each((matrices[rows] * weight).sum(axis=1), drawn_classes) for matrices in (one, other)
        ]
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
    for cell in dict.fromkeys(cell for _, _, cell in _order(1)):
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
    names = ["wanted", *WANTED, "weakest three", "all classes"]
    columns = ["difference [points]", "seeds", *names, "wanted, by seeds and drives"]
    lines += ["", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one, other in PAIRS:
        seeds = _seeds(results, one, other)
        if len(seeds) < 2:
            continue
        better, usual = (_stacked(results, cell, seeds) for cell in (one, other))
        scored: list[Sequence[Sequence[str]]] = [
            [WANTED] * len(seeds), *([(name,)] * len(seeds) for name in WANTED),
            [_weakest(results, seed) for seed in seeds], [CLASSES] * len(seeds),
        ]  # fmt: skip
        of = [intervals(better, usual, classes) for classes in scored]
        cells = [f"{mean:+.2f} ({_range(by_seed)})" for mean, by_seed, _ in of]
        cells.append(_range(of[0][2]))
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
        for budget, cell in ((0, "first"), *((n, f"{choice}-{n}") for n in (*FEW, *BUDGETS))):
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
