"""Small sets in which everything occurs often enough."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from query.sets.coverage import Covered, cover, packed
from tests.query.sets.test_stratified import hashes


def covered(rows: list[list[bool]], demand: list[int], seed: int = 0) -> Covered:
    """The cover of frames (rows) that hold demands (columns)."""
    table = np.array(rows, bool).reshape(len(rows), len(demand))
    return cover(packed(list(table.T), len(rows)), hashes(len(rows)), np.array(demand), seed)


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[list[bool]], list[int]]:
    """A few frames, a few demands."""
    demands = draw(st.integers(1, 4))
    row = st.lists(st.booleans(), min_size=demands, max_size=demands)
    rows = draw(st.lists(row, min_size=1, max_size=9))
    return rows, draw(st.lists(st.integers(0, 3), min_size=demands, max_size=demands))


def _smallest(rows: list[list[bool]], demand: list[int]) -> int:
    """Size of the smallest set that does what can be done, by trying all."""
    table = np.array(rows, bool).reshape(len(rows), len(demand))
    reachable = np.minimum(demand, table.sum(axis=0))
    return next(
        size
        for size in range(len(rows) + 1)
        for some in combinations(range(len(rows)), size)
        if (table[list(some)].sum(axis=0) >= reachable).all()
    )


@given(problems())
def test_against_every_set(problem: tuple[list[list[bool]], list[int]]) -> None:
    """All is met that can be; the set is within the stated factor, the bound below the best."""
    rows, demand = problem
    cover_found = covered(rows, demand)
    table = np.array(rows, bool).reshape(len(rows), len(demand))
    reachable = np.minimum(demand, table.sum(axis=0))
    assert (cover_found.achieved >= reachable).all()
    assert cover_found.available.tolist() == table.sum(axis=0).tolist()
    smallest = _smallest(rows, demand)
    assert cover_found.lower_bound <= smallest <= len(cover_found.positions)
    assert len(cover_found.positions) <= cover_found.factor * smallest + 1e-9


@given(problems(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_plays_no_part(
    problem: tuple[list[list[bool]], list[int]], seed: int, random: object
) -> None:
    """The same frames, however they are listed."""
    rows, demand = problem
    table = np.array(rows, bool).reshape(len(rows), len(demand))
    order = np.random.default_rng(seed).permutation(len(rows))
    names = hashes(len(rows))
    one = cover(packed(table.T, len(rows)), names, np.array(demand), seed)
    other = cover(packed(table[order].T, len(rows)), names[order], np.array(demand), seed)
    assert set(names[one.positions]) == set(names[order][other.positions])


def test_many_frames_and_more_than_64_demands() -> None:
    """100,000 frames and 70 demands, the rarest of which a few frames hold."""
    random = np.random.default_rng(3)
    rates = np.geomspace(0.5, 5e-5, 70)
    table = random.random((100_000, 70)) < rates
    demand = np.full(70, 40)
    solution = cover(packed(table.T, 100_000), hashes(100_000), demand, 0)
    reachable = np.minimum(demand, table.sum(axis=0))
    assert (solution.achieved >= reachable).all()
    assert (solution.targets > solution.available).any()
    assert solution.lower_bound <= len(solution.positions) <= 2 * solution.lower_bound
    # Nothing is in it that is not needed.
    held_rows = table[solution.positions]
    needed = (held_rows & (held_rows.sum(axis=0) <= reachable)).any(axis=1)
    assert needed.all()


def test_nothing_wanted_is_an_empty_set() -> None:
    """Demands that no frame can meet, and demands of 0 frames."""
    for demand in ([0, 0], [2, 0]):
        solution = covered([[False, True], [False, True]], demand)
        assert solution.positions.tolist() == []
        assert solution.lower_bound == 0
