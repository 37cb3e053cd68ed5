"""The experiment on real drives: nothing tested is chosen, and figures are those of its cells."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import next_real_frames, pixel_head
from benchmarks.frame_choices import CHOICES, Pool, reduced
from benchmarks.next_real_frames import CLASSES, START, WANTED, Pictures, intervals, table
from benchmarks.pretrained_features import FrameFeatures
from benchmarks.real_frames import FRAMES_PER_S, GUARD_S, HEIGHT_PX, WIDTH_PX, RealFrames, parts_of

ONE = pixel_head.Scale(np.zeros(1, np.float32), np.ones(1, np.float32))
DRIVES = {"0001TP": 62, "0006R0": 101, "0016E5": 204}


def drawn() -> tuple[npt.NDArray[np.str_], npt.NDArray[np.int64]]:
    """Drives with a frame each second, and 101 more of one of them every fifteenth of a second."""
    drives = [drive for drive, frames in DRIVES.items() for _ in range(frames)] + ["0016E5"] * 101
    numbers = [390 + 30 * n for frames in DRIVES.values() for n in range(frames)]
    return np.array(drives), np.array(numbers + [3001 + 2 * n for n in range(101)])


@pytest.mark.parametrize("seed", range(8))
def test_nothing_near_a_tested_frame_is_chosen_from(seed: int) -> None:
    """Of no drive; neither to begin with; and what is validated with is not near a test either."""
    drives, numbers = drawn()
    parts = parts_of(drives, numbers, START, seed)
    assert 25 < len(parts.first) <= 40
    assert {*drives[parts.first]} == {START}
    assert min(len(parts.pool), len(parts.tested), len(parts.validated)) > 20
    assert {*drives[parts.tested]} == {*DRIVES}
    for held, others in (
        (parts.tested, (parts.first, parts.pool, parts.validated)),
        (parts.validated, (parts.first, parts.pool)),
    ):
        for row in np.concatenate(others):
            beside = held[drives[held] == drives[row]]
            apart_s = np.abs(numbers[beside] - numbers[row]) / FRAMES_PER_S
            assert not len(beside) or apart_s.min() >= GUARD_S
    assert not np.isin(parts.first, parts.pool).any()
    assert (np.diff(np.sort(numbers[parts.tested][drives[parts.tested] == "0016E5"])) >= 15).all()


def test_seeds_divide_drives_otherwise() -> None:
    """No two of ten test the same frames; the same seed does at each call."""
    drives, numbers = drawn()
    tested = [tuple(parts_of(drives, numbers, START, seed).tested) for seed in range(10)]
    assert len({*tested}) == 10
    assert tuple(parts_of(drives, numbers, START, 3).tested) == tested[3]


@pytest.fixture(scope="module")
def pool() -> Pool:
    """The pool of a seed, with drawn pixels of eleven classes."""
    drives, numbers = drawn()
    parts, random = parts_of(drives, numbers, START, 0), np.random.default_rng(3)
    pixels = random.integers(0, 900, (len(drives), 11)) * (random.random((len(drives), 11)) < 0.5)
    return Pool(
        drives[parts.pool], numbers[parts.pool], pixels[parts.pool],
        random.random((len(parts.pool), 11)) * 100, random.random(len(parts.pool)),
        pixels[parts.first], np.linspace(0, 1, 11), (9, 10), 0,
    )  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_each_choice_takes_as_many_frames_once(pool: Pool, name: str) -> None:
    """The same at each call; `label` alone chooses the same whatever the labels say."""
    for count in (40, 80):
        chosen = CHOICES[name](pool, count)
        assert len({*chosen.tolist()}) == len(chosen) == count
        assert CHOICES[name](pool, count).tolist() == chosen.tolist()
    others = replace(pool, pixels=pool.pixels[::-1])
    is_same = CHOICES[name](others, 80).tolist() == chosen.tolist()
    assert is_same == (name in ("label", "random", "newest"))


def test_the_newest_are_the_last_of_the_last_drive(pool: Pool) -> None:
    """By the drive's name, then by the frame's number."""
    chosen = CHOICES["newest"](pool, 5)
    assert {*pool.drives[chosen]} == {"0016E5"}
    of_drive = np.sort(pool.numbers[pool.drives == "0016E5"])
    assert pool.numbers[chosen].tolist() == of_drive[::-1][:5].tolist()


def test_a_reduced_set_has_each_class(pool: Pool) -> None:
    """Of the frames that it keeps; as many as are asked for."""
    kept = reduced(pool.pixels, pool.codes, 30, 1)
    assert len({*kept.tolist()}) == 30
    assert (pool.pixels[kept] > 0).any(axis=0).all()


def test_intervals_are_of_paired_seeds() -> None:
    """A cell that is better by as much in each seed has an interval of no width; turned, less."""
    random = np.random.default_rng(0)
    truth = np.eye(11, dtype=np.int64) * 1_000
    matrices = [truth + random.integers(0, 300, (11, 11)) for _ in range(4)]
    one = np.array([[matrix, matrix] for matrix in matrices])
    mean, by_seed, by_both = intervals(one, one, [WANTED] * 4)
    assert (mean, by_seed, by_both) == (0, (0, 0), (0, 0))
    worse = one.copy()
    worse[..., 9, 3] += 500
    mean, by_seed, by_both = intervals(one, worse, [WANTED] * 4)
    assert 0 < by_seed[0] <= mean <= by_seed[1]
    assert 0 < by_both[0] <= by_both[1]
    assert intervals(worse, one, [WANTED] * 4)[0] == -mean


def test_the_table_is_of_the_lines_that_are_whole(tmp_path: Path) -> None:
    """A half line of a killed run is no cell; cells that lack a seed are compared without it."""
    matrix = (np.eye(11, dtype=np.int64) * 50 + 5).tolist()
    better = (np.eye(11, dtype=np.int64) * 90 + 5).tolist()
    cells = [
        {"views": 1, "seed": seed, "cell": cell, "frames": 120, "weakest": [*CLASSES[:3]],
         "matrices": {"0001TP": better if cell == "cover-40" else matrix}}
        for seed in range(3) for cell in ("random-40", "cover-40")
    ]  # fmt: skip
    lines = [json.dumps(cell) for cell in cells]
    (tmp_path / "cells.jsonl").write_text("\n".join([*lines[:5], lines[5][:40]]))
    read = next_real_frames._cells(tmp_path)
    assert [(one["seed"], one["cell"]) for one in read] == [
        (seed, cell) for seed in range(3) for cell in ("random-40", "cover-40")
    ][:5]
    (row,) = (line for line in table(read) if line.startswith("| `cover-40` - `random-40` |"))
    apart = 100 * (95 / (95 + 2 * 50) - 55 / (55 + 2 * 50))
    expected = f"{apart:+.2f} ({apart:+.2f} to {apart:+.2f})"
    assert row.split(" | ")[1:3] == ["2", expected]


def test_the_curve_has_points_of_the_same_seeds() -> None:
    """A budget that lacks a seed has no point; all frames have theirs at as many as they add."""
    matrix, better = np.eye(11, dtype=np.int64) * 50 + 5, np.eye(11, dtype=np.int64) * 90 + 5
    frames = {"first": 40, "random-20": 60, "random-40": 80, "cover-40": 80, "all": 240}
    cells = [
        {"seed": seed, "cell": cell, "frames": count + seed,
         "matrices": {"0001TP": (better if cell in ("cover-40", "all") else matrix).tolist()}}
        for seed in range(3) for cell, count in frames.items() if (seed, cell) != (1, "random-20")
    ]  # fmt: skip
    low, high = 100 * 55 / (55 + 2 * 50), 100 * 95 / (95 + 2 * 50)
    expected = {"random": [(0, low), (40, low)], "cover": [(0, low), (40, high)]}
    curve = next_real_frames._curve(cells)
    assert {*curve} == {*expected, "all"}
    for name, points in {**expected, "all": [(200, high)]}.items():
        whole = [(added, *[pytest.approx(score)] * 3) for added, score in points]
        assert curve[name] == whole


def test_strips_have_what_their_frames_have() -> None:
    """Each pixel that is learned from is in one strip, and counts add up to the frames'."""
    random = np.random.default_rng(5)
    labels = random.integers(0, 11, (3, HEIGHT_PX, WIDTH_PX)).astype(np.uint8)
    labels[1, :, :40] = 255
    frames = RealFrames(
        np.array(["a", "ab", "b"]), np.array(["d"] * 3), np.arange(3),
        np.zeros((3, HEIGHT_PX, WIDTH_PX, 3), np.uint8), labels,
    )  # fmt: skip
    rows, columns = np.repeat([0, 1, 2], 50), random.integers(0, WIDTH_PX, 150)
    pixels = pixel_head.Pixels(
        np.arange(150, dtype=np.float16)[:, None], np.zeros(150, np.uint8), np.ones(150, np.float32)
    )
    features = FrameFeatures(np.zeros((3, 2, 4, 1), np.float16), ONE, pixels, rows, columns)
    whole, strips = (Pictures(frames, features, views) for views in (1, 4))
    assert strips.of(np.array([2, 0])).tolist() == [8, 9, 10, 11, 0, 1, 2, 3]
    assert strips.pixels[4].sum() == 0
    assert (strips.pixels.reshape(3, 4, 11).sum(axis=1) == whole.pixels).all()
    assert whole.pixels[0].tolist() == np.bincount(labels[0].ravel(), minlength=11).tolist()
    for strip in range(12):
        learned = strips.learned(np.array([strip])).features[:, 0].astype(int)
        expected = np.flatnonzero((rows == strip // 4) & (columns // 40 == strip % 4))
        assert learned.tolist() == expected.tolist()
    assert len(whole.learned(np.array([0, 2])).labels) == 100


def test_the_classifier_learns_what_its_slopes_say() -> None:
    """Slopes are those of the loss, by differences; training on two clouds tells them apart."""
    random = np.random.default_rng(6)
    weights = [one.astype(np.float64) for one in pixel_head.fresh(5, 3, 1)]
    features, labels = random.normal(size=(40, 5)), random.integers(0, 3, 40).astype(np.uint8)
    counts = random.random(40)

    def loss() -> float:
        shares = pixel_head._softmax(pixel_head._layers(weights, features)[-1])
        return float(-(counts * np.log(shares[np.arange(40), labels])).sum() / counts.sum())

    slopes = pixel_head._slopes(weights, features, labels, counts)
    for weight, slope in zip(weights, slopes, strict=True):
        before = weight.flat[1]
        weight.flat[1] = before + 1e-6
        above = loss()
        weight.flat[1] = before - 1e-6
        below = loss()
        weight.flat[1] = before
        assert slope.flat[1] == pytest.approx((above - below) / 2e-6, abs=1e-6)
    clouds = (labels[:, None] * 3 + random.normal(0, 0.3, (40, 5))).astype(np.float16)
    scale = pixel_head.Scale(np.full(5, 3, np.float32), np.full(5, 2, np.float32))
    learned = pixel_head.train(
        pixel_head.Pixels(clouds, labels, np.ones(40, np.float32)), scale,
        pixel_head.fresh(5, 3, 2), 80, 0.02, 0,
    )  # fmt: skip
    assert (pixel_head.shares(clouds, scale, learned).argmax(-1) == labels).mean() > 0.9


def test_without_the_frames_it_says_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence, and nothing is written."""
    next_real_frames.run(None, tmp_path / "out", 1)
    said = capsys.readouterr().out
    assert said.startswith("CAMVID_ROOT is unset: it is the folder with CamVid's images/")
    assert not (tmp_path / "out").exists()
