"""Samples with so many frames of each stratum."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from query.frames.sampling import Hashes, random_keys
from query.sets.rounding import largest_remainder
from query.sets.strata import MISSING, Strata, strata_of
from query.sets.stratified import allocate, draw
from query.sets.stratifier import Stratifier, parse_stratifiers


def hashes(count: int, seed: int = 0) -> Hashes:
    """So many hashes, as good as random."""
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def ranked(frames: Hashes, codes: np.ndarray, counts: np.ndarray, seed: int) -> list[int]:  # type: ignore[type-arg]
    """The same sample by ranking every frame."""
    order = random_keys(frames, seed)
    positions: list[int] = []
    for stratum, count in enumerate(counts):
        of_it = np.flatnonzero(codes == stratum)
        positions += of_it[np.argsort(order[of_it], kind="stable")][:count].tolist()
    return sorted(positions)


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=6),
    st.integers(0, 2**40),
    st.floats(0, 1),
    st.integers(0, 9),
)
def test_the_filter_changes_nothing(sizes: list[int], seed: int, share: float, drawn: int) -> None:
    """Ranking only what is below a threshold finds what ranking every frame finds."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    codes = np.random.default_rng(drawn).permutation(codes)
    counts = np.array([int(share * size) for size in sizes])
    frames = hashes(len(codes), drawn)
    assert draw(frames, codes, counts, seed).tolist() == ranked(frames, codes, counts, seed)


def test_the_filter_changes_nothing_where_it_is_at_work() -> None:
    """The same with a threshold far below all frames, and one stratum taken whole."""
    codes = np.random.default_rng(1).choice(4, 300_000, p=[0.7, 0.29, 0.0099, 0.0001])
    frames = hashes(len(codes))
    counts = np.array([50, 1_000, 1, int((codes == 3).sum())])
    assert draw(frames, codes, counts, 3).tolist() == ranked(frames, codes, counts, 3)


@given(st.permutations(range(60)), st.integers(0, 5))
def test_the_order_of_the_rows_plays_no_part(order: list[int], seed: int) -> None:
    """The same frames are drawn however they are listed."""
    frames, codes = hashes(60), np.arange(60) % 3
    counts = np.array([5, 6, 7])
    one = set(frames[draw(frames, codes, counts, seed)].tolist())
    other = frames[order]
    assert set(other[draw(other, codes[order], counts, seed)].tolist()) == one


def test_a_larger_sample_holds_the_smaller_one_and_seeds_differ() -> None:
    """Of one seed; another seed draws others."""
    frames, codes = hashes(1_000), np.arange(1_000) % 2
    small, large = (set(draw(frames, codes, np.array([n, n]), 1).tolist()) for n in (20, 60))
    assert small < large
    assert small != set(draw(frames, codes, np.array([20, 20]), 2).tolist())


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 40)), min_size=1, max_size=8),
    st.integers(0, 200),
)
def test_largest_remainder(pairs: list[tuple[int, int]], total: int) -> None:
    """Everything is given out that can be; without limits every quota is rounded up or down."""
    weights = np.array([weight for weight, _ in pairs], float)
    capacity = np.array([most for _, most in pairs])
    given_ = largest_remainder(weights, total, capacity)
    assert given_.sum() == min(total, capacity.sum())
    assert (given_ >= 0).all()
    assert (given_ <= capacity).all()
    if weights.sum():
        free = largest_remainder(weights, total, np.full(len(pairs), total))
        assert free.sum() == total
        assert (np.abs(free - weights / weights.sum() * total) < 1 + 1e-6).all()


def _strata(*sizes: int) -> Strata:
    return Strata(
        np.repeat(np.arange(len(sizes)), sizes), tuple((f"s{n}",) for n in range(len(sizes)))
    )


def test_allocations() -> None:
    """Proportional, equal with what small strata lack given to others, and by shares."""
    strata = _strata(700, 290, 10)
    assert allocate(strata, 100, "proportional", 0).tolist() == [70, 29, 1]
    assert allocate(strata, 100, "equal", 0).tolist() in ([45, 45, 10], [46, 44, 10])
    shares = {"s0": Fraction(3, 10), "s1": Fraction(7, 10)}
    assert allocate(strata, 100, shares, 0).tolist() == [30, 70, 0]
    assert allocate(strata, 1_000, shares, 0).tolist() == [700, 290, 0]
    with pytest.raises(InvalidInput, match="no frame is of stratum 'S0'"):
        allocate(strata, 9, {"S0": Fraction(1)}, 0)


def test_few_frames_of_many_strata_are_not_all_of_the_largest() -> None:
    """300 of 2,000 scenes, those of one camera a little larger: cameras keep their parts."""
    sizes = [9] * 1_000 + [10] * 1_000
    strata = Strata(
        np.repeat(np.arange(2_000), sizes),
        tuple((camera, f"s{n}") for camera in ("front", "rear") for n in range(1_000)),
    )
    taken = [allocate(strata, 300, "proportional", seed) for seed in range(40)]
    for number in taken:
        assert number.sum() == 300
        assert number.max() == 1
        assert abs(number[:1_000].sum() - 300 * 9 / 19) < 1
    assert len({tuple(number.tolist()) for number in taken}) > 6


def test_ties_between_strata_are_the_seeds() -> None:
    """5 frames of 1,000 equal strata: other seeds, other strata; not always the first ones."""
    strata = _strata(*[2] * 1_000)
    allocations = [tuple(np.flatnonzero(allocate(strata, 5, "equal", n))) for n in range(5)]
    assert len(set(allocations)) == 5


ROWS = pa.table(
    {
        "camera": ["front", "rear", None, "front", "front"],
        "car": pa.array([0, 5, 1_000, None, 999], pa.int32()),
        "front": pa.array([1, 0, 1, 1, 0], pa.int8()),
        "wet": [True, False, None, True, True],
    }
)


def _labels(*texts: str) -> list[str]:
    strata = strata_of(ROWS, [Stratifier.parse(text) for text in texts], {"car": "Car"})
    return ["/".join(strata.labels[code]) for code in strata.codes]


def test_strata() -> None:
    """Values, bins that hold their lower end, presence of a class, and missing values."""
    assert _labels("camera") == ["front", "rear", MISSING, "front", "front"]
    assert _labels("car:0,1000") == ["0:1000", "0:1000", "1000:", MISSING, "0:1000"]
    assert _labels("car") == ["absent", "present", "present", MISSING, "present"]
    assert _labels("front") == ["1", "0", "1", "1", "0"]
    assert _labels("wet") == ["true", "false", MISSING, "true", "true"]
    assert _labels("camera", "front")[:2] == ["front/1", "rear/0"]
    assert _labels() == [""] * 5


@pytest.mark.parametrize("text", ["", ":1", "car:", "car:2,1", "car:1,1", "car:x", "car:nan"])
def test_what_is_no_stratum_is_refused(text: str) -> None:
    """On one line that repeats it."""
    with pytest.raises(InvalidInput, match="expected a tag"):
        Stratifier.parse(text)
    with pytest.raises(InvalidInput, match="camera is no number"):
        _labels("camera:1")


def test_stratifiers_in_one_text() -> None:
    """A number after a comma is another edge, anything else another tag."""
    stratifiers = parse_stratifiers("camera,car:0,1000,1e4,scene")
    assert [one.to_text() for one in stratifiers] == ["camera", "car:0,1000,10000", "scene"]
