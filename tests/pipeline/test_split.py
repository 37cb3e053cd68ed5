"""Which frame goes to which split."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from pipeline.datasets.split import assign_splits, parse_split
from query.frames.sampling import Hashes
from query.sets.strata import Codes

SPLIT_NAMES = ("train", "validation", "test", "held_out")


@st.composite
def shares(draw: st.DrawFn) -> dict[str, Fraction]:
    """Shares of one to four splits."""
    weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    return {
        name: Fraction(weight, sum(weights))
        for name, weight in zip(SPLIT_NAMES, weights, strict=False)
    }


@st.composite
def divisions(draw: st.DrawFn) -> tuple[Hashes, Codes, Codes, dict[str, Fraction]]:
    """Frames with their groups and strata, and shares of no more splits than groups."""
    targets = draw(shares())
    sizes = draw(st.lists(st.integers(1, 30), min_size=len(targets), max_size=20))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    strata = random.integers(0, draw(st.integers(1, 3)), len(groups))
    order = random.permutation(len(groups))
    hashes = random.integers(0, 2**64, len(groups), dtype=np.uint64)
    return hashes, groups[order], strata[order], targets


def one_stratum(count: int) -> Codes:
    """No strata."""
    return np.zeros(count, np.int64)


@settings(deadline=None)
@given(divisions(), st.integers(0, 5))
def test_groups_stay_whole_and_no_split_is_empty(
    division: tuple[Hashes, Codes, Codes, dict[str, Fraction]], seed: int
) -> None:
    """Frames of one group never meet on two sides, and every split gets something."""
    hashes, groups, strata, targets = division
    sides = assign_splits(hashes, groups, strata, targets, seed)
    for group in range(groups.max() + 1):
        assert len(set(sides[groups == group].tolist())) == 1
    assert set(sides.tolist()) == set(range(len(targets)))


@given(divisions(), st.integers(0, 5))
def test_shares_are_met_as_well_as_whole_groups_allow(
    division: tuple[Hashes, Codes, Codes, dict[str, Fraction]], seed: int
) -> None:
    """No split is above its share by more than the largest group."""
    hashes, groups, _, targets = division
    sides = assign_splits(hashes, groups, one_stratum(len(groups)), targets, seed)
    counts = np.bincount(sides, minlength=len(targets))
    largest = np.bincount(groups).max()
    for side, share in enumerate(targets.values()):
        assert counts[side] <= share * len(groups) + largest


def off(sides: Codes, strata: Codes, targets: dict[str, Fraction]) -> tuple[float, float]:
    """Largest amount that a split is off by in all frames, and in one stratum [frames]."""
    parts = np.array([float(share) for share in targets.values()])
    table = np.zeros((strata.max() + 1, len(parts)))
    np.add.at(table, (strata, sides), 1)
    of_all = np.abs(table.sum(axis=0) - parts * len(sides)).max()
    return float(of_all), float(np.abs(table - parts * table.sum(axis=1, keepdims=True)).max())


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=8).filter(lambda sizes: sum(sizes) >= 4),
    shares(),
    st.integers(0, 3),
)
def test_single_frames_meet_their_shares(
    sizes: list[int], targets: dict[str, Fraction], seed: int
) -> None:
    """Divided by frame: to within one frame in all, to within two in each stratum.

    And what it takes that no split stays empty.
    """
    strata = np.repeat(np.arange(len(sizes)), sizes)
    hashes = np.random.default_rng(seed).integers(0, 2**64, len(strata), dtype=np.uint64)
    sides = assign_splits(hashes, np.arange(len(strata)), strata, targets, seed)
    of_all, of_one = off(sides, strata, targets)
    given_away = sum(max(0.0, 1 - float(share) * len(strata)) for share in targets.values())
    assert of_all < 1 + given_away + 1e-6
    assert of_one < 2 + given_away + 1e-6


@settings(deadline=None)
@given(divisions(), st.integers(0, 5))
def test_the_seed_decides_and_the_order_of_frames_does_not(
    division: tuple[Hashes, Codes, Codes, dict[str, Fraction]], seed: int
) -> None:
    """The same frames and seed give the same sides, however they are listed and numbered."""
    hashes, groups, strata, targets = division
    sides = dict(zip(hashes, assign_splits(hashes, groups, strata, targets, seed), strict=True))
    order = np.random.default_rng(seed).permutation(len(hashes))
    renumbered = (groups.max() - groups)[order]
    again = assign_splits(hashes[order], renumbered, strata[order], targets, seed)
    assert sides == dict(zip(hashes[order], again, strict=True))


def test_another_seed_divides_otherwise() -> None:
    """Between groups of equal size, and between frames, the seed decides."""
    hashes = np.random.default_rng(0).integers(0, 2**64, 40, dtype=np.uint64)
    halves = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    for groups in (np.arange(40) // 2, np.arange(40)):
        divisions_seen = {
            tuple(assign_splits(hashes, groups, one_stratum(40), halves, seed).tolist())
            for seed in range(8)
        }
        assert len(divisions_seen) > 1


@pytest.mark.parametrize("kinds", [2, 4])
def test_whole_groups_and_strata_at_once(kinds: int) -> None:
    """200 scenes of one kind of weather mostly: whole scenes, and every stratum near its share."""
    random = np.random.default_rng(4)
    groups = np.repeat(np.arange(200), random.integers(20, 80, 200))
    mostly = random.integers(0, kinds, 200)
    strata = np.where(
        random.random(len(groups)) < 0.8, mostly[groups], random.integers(0, kinds, len(groups))
    )
    hashes = random.integers(0, 2**64, len(groups), dtype=np.uint64)
    targets = {"train": Fraction(7, 10), "validation": Fraction(2, 10), "test": Fraction(1, 10)}
    sides = assign_splits(hashes, groups, strata, targets, 0)
    of_all, of_one = off(sides, strata, targets)
    assert of_all <= 20  # half a group
    assert of_one <= 20
    blind = assign_splits(hashes, groups, one_stratum(len(groups)), targets, 0)
    assert of_one < off(blind, strata, targets)[1] / 3


@pytest.mark.parametrize("seed", [7, 60, 102, 123])
def test_no_single_step_would_bring_the_splits_nearer(seed: int) -> None:
    """Two strata: neither moving a group nor exchanging two lowers the sum of squares.

    With most of the seeds it would not either if strata weighed more than all frames together.
    """
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(12), random.integers(1, 30, 12))
    strata = (random.random(len(groups)) < random.random(12)[groups]).astype(np.int64)
    hashes = random.integers(0, 2**64, len(groups), dtype=np.uint64)
    targets = {"train": Fraction(3, 5), "validation": Fraction(2, 5)}
    sides = assign_splits(hashes, groups, strata, targets, 0)
    of_group = np.array([sides[groups == group][0] for group in range(12)])

    def missed(by_group: Codes) -> float:
        """Squares of what the splits have too many or too few, as the docstring weighs them."""
        frames = by_group[groups]
        squares = 0.0
        for share, side in zip(targets.values(), range(2), strict=True):
            of_side = frames == side
            squares += 2 * ((of_side.sum() - float(share) * len(groups)) / len(groups)) ** 2
            for stratum in range(2):
                count = (of_side & (strata == stratum)).sum()
                size = (strata == stratum).sum()
                squares += ((count - float(share) * size) / size) ** 2
        return squares

    best = missed(of_group)
    for one in range(12):
        for other in range(12):
            changed = of_group.copy()
            changed[one], changed[other] = changed[other], changed[one]
            assert missed(changed) >= best - 1e-9
        moved = of_group.copy()
        moved[one] = 1 - moved[one]
        assert missed(moved) >= best - 1e-9 or len(set(moved.tolist())) == 1


def test_fewer_groups_than_splits_is_refused() -> None:
    """One split would stay empty: an error that says what to do."""
    with pytest.raises(
        InvalidInput, match=r"1 groups cannot be divided among 2 splits.*--split-by"
    ):
        assign_splits(
            np.arange(9, dtype=np.uint64),
            one_stratum(9),
            one_stratum(9),
            {"a": Fraction(1, 2), "b": Fraction(1, 2)},
            0,
        )


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("train=0.8,validation=0.2", {"train": Fraction(4, 5), "validation": Fraction(1, 5)}),
        ("all=1", {"all": Fraction(1)}),
        (" a = 1/3 , b = 2/3 ", {"a": Fraction(1, 3), "b": Fraction(2, 3)}),
        ("a=.5,b=0.50", {"a": Fraction(1, 2), "b": Fraction(1, 2)}),
    ],
)
def test_shares_are_read_exactly(text: str, shares: dict[str, Fraction]) -> None:
    """Decimals and fractions are exact: 0.8 and 0.2 sum to 1."""
    assert parse_split(text) == shares
    assert list(parse_split(text)) == list(shares)


@pytest.mark.parametrize(
    "text",
    [
        "", "train", "train=", "=1", "train=x", "train=0,validation=1", "train=-1,validation=2",
        "train=0.5,train=0.5", "train=0.8,validation=0.3", "train=0.8", "a b=1", "a=1/0",
        "train=1,", "a=nan", "a=inf", "a=1e0", "a=1e999", "a=1e99999999999", "a=99999", "a=\u0661",
    ],
)  # fmt: skip
def test_anything_else_is_refused_on_one_line(text: str) -> None:
    """Bad shares are an InvalidInput that repeats them; absurd numbers do not hang or crash."""
    with pytest.raises(InvalidInput, match="split '") as caught:
        parse_split(text)
    assert "\n" not in str(caught.value)
