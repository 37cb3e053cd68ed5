"""Which frame goes to which split."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.errors import InvalidInput
from pipeline.split import assign_splits, parse_split

SPLIT_NAMES = ("train", "validation", "test", "held_out")


@st.composite
def divisions(draw: Callable[..., object]) -> tuple[list[str], dict[str, Fraction]]:
    """Items with their groups, and shares of no more splits than groups."""
    weights = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    assert isinstance(weights, list)
    shares = {
        name: Fraction(weight, sum(weights))
        for name, weight in zip(SPLIT_NAMES, weights, strict=False)
    }
    sizes = draw(st.lists(st.integers(1, 40), min_size=len(shares), max_size=25))
    assert isinstance(sizes, list)
    groups = [f"scene-{number}" for number, size in enumerate(sizes) for _ in range(size)]
    shuffled = draw(st.permutations(groups))
    assert isinstance(shuffled, list)
    return shuffled, shares


@given(divisions(), st.integers(0, 5))
def test_groups_stay_whole_and_no_split_is_empty(
    division: tuple[list[str], dict[str, Fraction]], seed: int
) -> None:
    """Frames of one group never meet on two sides, and every split gets something."""
    groups, shares = division
    splits = assign_splits(groups, shares, seed)
    sides: dict[str, set[str]] = {}
    for group, split in zip(groups, splits, strict=True):
        sides.setdefault(group, set()).add(split)
    assert all(len(found) == 1 for found in sides.values())
    assert set(splits) == set(shares)


@given(divisions(), st.integers(0, 5))
def test_shares_are_met_as_well_as_whole_groups_allow(
    division: tuple[list[str], dict[str, Fraction]], seed: int
) -> None:
    """No split is above its share by more than the largest group."""
    groups, shares = division
    held = Counter(assign_splits(groups, shares, seed))
    largest = max(Counter(groups).values())
    for name, share in shares.items():
        assert held[name] <= share * len(groups) + largest


@given(st.integers(20, 300), st.integers(0, 3))
def test_single_frames_meet_their_shares_to_within_one(frames: int, seed: int) -> None:
    """Divided by frame, a split's size is its share rounded."""
    shares = {"train": Fraction(4, 5), "validation": Fraction(1, 10), "test": Fraction(1, 10)}
    held = Counter(assign_splits([str(n) for n in range(frames)], shares, seed))
    for name, share in shares.items():
        assert abs(held[name] - share * frames) < 1


@given(divisions(), st.integers(0, 5))
def test_the_seed_decides_and_the_order_of_items_does_not(
    division: tuple[list[str], dict[str, Fraction]], seed: int
) -> None:
    """The same groups and seed give the same sides, however the items are ordered."""
    groups, shares = division
    sides = dict(zip(groups, assign_splits(groups, shares, seed), strict=True))
    again = dict(zip(sorted(groups), assign_splits(sorted(groups), shares, seed), strict=True))
    assert sides == again


def test_another_seed_divides_otherwise() -> None:
    """Between groups of equal size the seed decides."""
    groups = [f"scene-{number}" for number in range(20)]
    halves = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert len({tuple(assign_splits(groups, halves, seed)) for seed in range(8)}) > 1


def test_fewer_groups_than_splits_is_refused() -> None:
    """One split would stay empty: an error that says what to do."""
    with pytest.raises(
        InvalidInput, match=r"1 groups cannot be divided among 2 splits.*--split-by"
    ):
        assign_splits(["one"] * 9, {"a": Fraction(1, 2), "b": Fraction(1, 2)}, 0)


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
