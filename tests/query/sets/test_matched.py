"""Sets that follow a target."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.schemas.unmet import unmet_sentences
from query.sets.distances import distance
from query.sets.matched import Marginal, Matched, match, report
from tests.query.sets.test_stratified import hashes


def marginal(name: str, codes: list[int], shares: list[float]) -> Marginal:
    """A target over categories 0, 1..."""
    labels = tuple(str(code) for code in range(len(shares)))
    return Marginal(name, labels, np.array(shares), np.array(codes, np.int64))


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Marginal], int, float]:
    """Up to 24 frames in two or three marginals of two or three values."""
    kinds = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    count = draw(st.integers(1, 24))
    targets = []
    for number, size in enumerate(kinds):
        weights = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any))
        codes = draw(st.lists(st.integers(0, size - 1), min_size=count, max_size=count))
        targets.append(marginal(str(number), codes, [w / sum(weights) for w in weights]))
    return targets, draw(st.integers(1, 8)), draw(st.sampled_from([0.0, 0.1, 0.2, 0.34]))


def allowed(tolerance: float, frames: int) -> float:
    """The tolerance in frames; less than a whole frame is no miss."""
    return max(tolerance * frames + 1e-9, 0.9995)


def _feasible(targets: list[Marginal], frames: int, tolerance: float) -> bool:
    """Whether any set is within the tolerance, by trying how many frames each cell gives."""
    cells: dict[tuple[int, ...], int] = {}
    for cell in zip(*(target.codes.tolist() for target in targets), strict=True):
        cells[cell] = cells.get(cell, 0) + 1
    names = list(cells)

    def fits(taken: list[int]) -> bool:
        for position, target in enumerate(targets):
            for code, share in enumerate(target.shares):
                got = sum(n for n, name in zip(taken, names, strict=True) if name[position] == code)
                if abs(got - share * frames) > allowed(tolerance, frames):
                    return False
        return True

    def try_all(taken: list[int], left: int) -> bool:
        if len(taken) == len(names):
            return left == 0 and fits(taken)
        most = min(left, cells[names[len(taken)]])
        return any(try_all([*taken, n], left - n) for n in range(most + 1))

    return try_all([], frames)


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 3))
def test_within_the_tolerance_wherever_any_set_is(
    problem: tuple[list[Marginal], int, float], seed: int
) -> None:
    """Compared with every way to take so many frames; what is missed is listed, and only that."""
    targets, frames, tolerance = problem
    count = len(targets[0].codes)
    frames = min(frames, count)
    cells = len(set(zip(*(target.codes.tolist() for target in targets), strict=True)))
    matched = match(hashes(count), targets, frames, tolerance, seed)
    assert len(set(matched.positions.tolist())) == frames
    for target, achieved in zip(targets, matched.achieved, strict=True):
        got = np.bincount(target.codes[matched.positions], minlength=len(target.labels))
        assert achieved.tolist() == got.tolist()
        missed = np.abs(got - target.shares * frames) > allowed(tolerance, frames)
        listed = [one.label for one in matched.shortfalls if one.marginal == target.name]
        assert [target.labels[code] for code in np.flatnonzero(missed)] == listed
    if cells <= 8:
        assert (not matched.shortfalls) is _feasible(targets, frames, tolerance)


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(0, 3))
def test_the_order_of_the_rows_plays_no_part(
    problem: tuple[list[Marginal], int, float], seed: int
) -> None:
    """The same frames, however they are listed."""
    targets, frames, tolerance = problem
    names = hashes(len(targets[0].codes))
    order = np.random.default_rng(seed).permutation(len(names))
    shuffled = [Marginal(t.name, t.labels, t.shares, t.codes[order]) for t in targets]
    one = match(names, targets, frames, tolerance, seed)
    other = match(names[order], shuffled, frames, tolerance, seed)
    assert set(names[one.positions]) == set(names[order][other.positions])


def _skewed(count: int) -> list[Marginal]:
    """Cameras, times of day and three amounts of cars that hang together."""
    random = np.random.default_rng(7)
    camera = random.choice(4, count, p=[0.7, 0.2, 0.07, 0.03])
    hour = (camera + random.choice(3, count, p=[0.8, 0.15, 0.05])) % 3
    cars = np.minimum(random.poisson(0.3 + hour), 2)
    return [
        marginal("camera", camera.tolist(), [0.25, 0.25, 0.25, 0.25]),
        marginal("hour", hour.tolist(), [0.2, 0.3, 0.5]),
        marginal("cars", cars.tolist(), [0.5, 0.1, 0.4]),
    ]


def _largest(matched: Matched) -> float:
    return max(one.largest_difference for one in matched.distances)


def test_three_targets_far_from_the_candidates() -> None:
    """2,000 of 100,000 frames: every share within a frame or two of its target."""
    targets = _skewed(100_000)
    matched = match(hashes(100_000), targets, 2_000, 0.002, 0)
    assert not matched.shortfalls
    assert _largest(matched) <= 0.001
    assert set(matched.positions) != set(match(hashes(100_000), targets, 2_000, 0.002, 1).positions)


def test_what_is_not_there_is_told() -> None:
    """2,000 frames of a value are wanted, there are 212: so many short, all others on target."""
    random = np.random.default_rng(1)
    bicycle = np.zeros(50_000, int)
    bicycle[random.choice(50_000, 212, replace=False)] = 1
    camera = random.choice(2, 50_000)
    targets = [
        marginal("bicycle", bicycle.tolist(), [0.6, 0.4]),
        marginal("camera", camera.tolist(), [0.9, 0.1]),
    ]
    matched = match(hashes(50_000), targets, 5_000, 0.01, 0)
    told = report(targets, matched, 0.01)
    assert told["tolerance_met"] is False
    assert [one.label for one in matched.shortfalls] == ["0", "1"]
    short = matched.shortfalls[1].to_json()
    assert short["short_by"] == 2_000 - 212
    assert "wants 2,000 frames and gets 212: there are 212" in str(short["reason"])
    assert matched.distances[1].largest_difference < 0.001


def test_what_is_met_to_the_frame_is_not_listed() -> None:
    """Of 70 rare values half a frame each is wanted; those that differ stand first, worst first."""
    values = [number // 20 for number in range(1_400)]
    values += [70] * 5 + [71] * 60
    shares = [0.5 / 400] * 70 + [40 / 400, 325 / 400]
    targets = [marginal("sign", values, shares)]
    matched = match(hashes(len(values)), targets, 400, 0.0001, 0)
    told = report(targets, matched, 0.0001)
    sentences = unmet_sentences(told)
    assert sentences[0] == "sign 71: wants 325 frames and gets 60: there are 60"
    assert sentences[1] == "sign 70: wants 40 frames and gets 5: there are 5"
    assert "it stands in for what is missing of 70, 71" in sentences[2]
    off = [one.get("short_by") or one.get("over_by") for one in told["unmet"]]  # type: ignore[attr-defined]
    assert off == sorted(off, reverse=True)
    assert all(off)
    enough = [marginal("sign", values, [0.5 / 400] * 70 + [5 / 400, 360 / 400])]
    fitting = match(hashes(len(values)), enough, 66, 0.0001, 0)
    assert report(enough, fitting, 0.0001)["unmet"] == []


def test_targets_that_contradict_each_other() -> None:
    """Every front frame is by day, so half front and no day cannot be: both are named."""
    front = [0, 1] * 500
    targets = [marginal("front", front, [0.5, 0.5]), marginal("day", front, [1.0, 0.0])]
    matched = match(hashes(1_000), targets, 100, 0.05, 0)
    assert {one.marginal for one in matched.shortfalls} <= {"front", "day"}
    missed = sum(abs(one.achieved - one.target) for one in matched.shortfalls)
    assert missed > 0
    assert "the other targets stand against it" in str(matched.shortfalls[0].to_json()["reason"])


def test_distances() -> None:
    """Equal ones, disjoint ones, and one known value."""
    for one, other, expected in (
        ([1, 3], [2, 6], (0, 0, 0)),
        ([1, 0], [0, 1], (1, 1, 1)),
        ([0.5, 0.5], [0.75, 0.25], (0.25, 0.2209, 0.25)),
    ):
        measured = distance(one, other)
        assert (
            measured.total_variation, measured.jensen_shannon, measured.largest_difference
        ) == pytest.approx(expected, abs=1e-4)  # fmt: skip


def test_every_cell_at_its_limit() -> None:
    """All frames wanted are all frames there are, whatever the target."""
    codes = [code for code, _ in product(range(3), range(4))]
    matched = match(hashes(12), [marginal("a", codes, [1, 0, 0])], 50, 0.1, 0)
    assert matched.positions.tolist() == list(range(12))
