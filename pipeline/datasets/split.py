"""Divides frames among splits: whole groups on one side, strata as even as these allow."""

import re
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput
from query.frames.sampling import Hashes, random_keys
from query.sets.rounding import largest_remainder
from query.sets.strata import Codes

Reals = npt.NDArray[np.float64]

# Fraction alone would also take 1e999999999 and count for minutes.
_SHARE = re.compile(r"\d{1,9}(\.\d{0,9})?|\.\d{1,9}|\d{1,9}/\d{1,9}", re.ASCII)

MOST_NAME_CHARACTERS = 64
"""Longest name of a split [characters]; each frame of the split has it."""

_SHOWN = 200

_EXCHANGED_GROUPS = 1_500
"""So many groups are also exchanged in pairs; more are only moved."""


def parse_split(text: str) -> dict[str, Fraction]:
    """Shares per split, from ``train=0.8,validation=0.2``.

    Raises:
        InvalidInput: Not written so, a name twice or too long, or the shares do not sum to 1.
    """
    shares: dict[str, Fraction] = {}
    for entry in text.split(","):
        name, sign, share = (piece.strip() for piece in entry.partition("="))
        value = _share(share)
        if len(name) > MOST_NAME_CHARACTERS:
            raise InvalidInput(
                f"split '{name[:MOST_NAME_CHARACTERS]}...': its name has {len(name):,} characters, "
                f"expected at most {MOST_NAME_CHARACTERS}"
            )
        if not sign or not name.isidentifier() or value <= 0 or name in shares:
            raise InvalidInput(
                f"split '{text[:_SHOWN]}': expected names with shares above 0, each once, such as "
                "train=0.8,validation=0.2"
            )
        shares[name] = value
    if sum(shares.values()) != 1:
        raise InvalidInput(
            f"split '{text[:_SHOWN]}': the shares sum to {float(sum(shares.values())):g}, not 1"
        )
    return shares


def _share(text: str) -> Fraction:
    """The share; 0 where the text is none."""
    try:
        return Fraction(text) if _SHARE.fullmatch(text) else Fraction(0)
    except ZeroDivisionError:
        return Fraction(0)


def assign_splits(
    hashes: Hashes, groups: Codes, strata: Codes, shares: Mapping[str, Fraction], seed: int
) -> Codes:
    """The split of each frame, so that the frames of one group share it.

    Single frames are divided exactly: in every stratum to within one frame, and in all together.
    Whole groups are taken by falling size and each goes where the squares of what splits and strata
    have above or below their shares grow least; with strata, groups are then moved and exchanged
    until none brings that sum down.

    Args:
        hashes: The frames' fkey_hash.
        groups: Group of each frame, numbered from 0.
        strata: Stratum of each frame, numbered from 0.
        shares: Wanted share of each split (sums to 1).
        seed: Decides between groups, or frames, that do equally well.

    Returns:
        Position of each frame's split in ``shares``, whatever the order of the frames.

    Raises:
        InvalidInput: There are fewer groups than splits, so one would stay empty.
    """
    number = int(groups.max(initial=-1)) + 1
    if number < len(shares):
        raise InvalidInput(
            f"{number} groups cannot be divided among {len(shares)} splits "
            f"({', '.join(shares)}): choose more frames, or divide single ones "
            "(--split-by frame --allow-leakage)"
        )
    parts = np.array([float(share) for share in shares.values()])
    if number == len(hashes):
        sides = _divided(random_keys(hashes, seed), strata, parts)
        if len(np.unique(sides)) == len(parts):  # else there are too few frames for a small share
            return sides
    # A group's place is that of its frame with the smallest hash.
    first = np.full(number, 2**64 - 1, np.uint64)
    np.minimum.at(first, groups, hashes)
    sizes = _sizes(groups, strata, number)
    order = np.lexsort((random_keys(first, seed), -sizes[:, 0]))
    sides = np.empty(number, np.int64)
    sides[order] = _placed(sizes[order], parts)
    if sizes.shape[1] > 2:
        sides[order] = _improved(sizes[order], sides[order], parts)
    return sides[groups]


def _sizes(groups: Codes, strata: Codes, number: int) -> Reals:
    """Frames of each group (rows): all, then of each stratum."""
    width = int(strata.max(initial=0)) + 1
    of_strata = np.bincount(groups * width + strata, minlength=number * width)
    table = of_strata.reshape(number, width).astype(np.float64)
    return np.hstack([table.sum(axis=1, keepdims=True), table])


def _weights(sizes: Reals) -> Reals:
    """All frames together weigh as much as all strata, and a small stratum as much as a large."""
    total = np.maximum(sizes.sum(axis=0), 1)
    weights: Reals = 1 / total**2
    weights[0] *= max(sizes.shape[1] - 1, 1)
    return weights


def _placed(sizes: Reals, parts: Reals) -> Codes:
    """The side of each group, one after the other."""
    weights = _weights(sizes)
    over = -parts[:, None] * sizes.sum(axis=0)
    sides = np.empty(len(sizes), np.int64)
    filled = np.zeros(len(parts), np.int64)
    for index, group in enumerate(sizes):
        # Keep a group for every split that has none yet.
        must = (filled == 0).sum() == len(sizes) - index
        cost = ((2 * over + group) * group * weights).sum(axis=1)
        side = int(np.argmin(np.where(filled > 0, np.inf, cost) if must else cost))
        sides[index] = side
        filled[side] += 1
        over[side] += group
    return sides


def _improved(sizes: Reals, sides: Codes, parts: Reals) -> Codes:
    """Move a group, or exchange two, as long as that brings the sum of squares down."""
    weights = _weights(sizes)
    scaled = sizes * np.sqrt(weights)
    target = parts[:, None] * scaled.sum(axis=0)
    sides = sides.copy()
    for _ in range(2 * len(sizes) + 100):
        over = np.array([scaled[sides == k].sum(axis=0) for k in range(len(parts))]) - target
        step = _best_step(scaled, sides, over)
        if step is None:
            break
        for group, side in step:
            sides[group] = side
    return sides


def _best_step(scaled: Reals, sides: Codes, over: Reals) -> list[tuple[int, int]] | None:
    best, step = -1e-12, None
    squares = (scaled**2).sum(axis=1)
    for a in range(len(over)):
        of_a = np.flatnonzero(sides == a)
        for b in range(len(over)):
            if a == b:
                continue
            gain = 2 * scaled @ (over[b] - over[a])  # linear in what goes from a to b
            moves = gain[of_a] + 2 * squares[of_a]
            if len(of_a) > 1 and moves.min() < best:
                best = float(moves.min())
                step = [(int(of_a[moves.argmin()]), b)]
            of_b = np.flatnonzero(sides == b)
            if a > b or len(of_a) + len(of_b) > _EXCHANGED_GROUPS:
                continue
            swaps = gain[of_a][:, None] - gain[of_b][None, :] - 4 * scaled[of_a] @ scaled[of_b].T
            swaps += 2 * (squares[of_a][:, None] + squares[of_b][None, :])
            if swaps.size and swaps.min() < best:
                best = float(swaps.min())
                one, other = np.unravel_index(int(swaps.argmin()), swaps.shape)
                step = [(int(of_a[one]), b), (int(of_b[other]), a)]
    return step


def _divided(order: Hashes, strata: Codes, parts: Reals) -> Codes:
    """The side of single frames: of each stratum the first ones to the first split, and so on."""
    sizes = np.bincount(strata)
    ends = np.zeros((len(sizes), len(parts)), np.int64)
    owed = np.zeros(len(parts))  # what the strata before rounded away
    for stratum, size in enumerate(sizes.tolist()):
        quota = parts * size + owed
        allotted = largest_remainder(np.maximum(quota, 0), size, np.full(len(parts), size))
        owed = quota - allotted
        ends[stratum] = np.cumsum(allotted)
    ranked = np.lexsort((order, strata))
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    rank = np.arange(len(order)) - starts[strata[ranked]]
    sides = np.empty(len(order), np.int64)
    sides[ranked] = (rank[:, None] >= ends[strata[ranked]]).sum(axis=1)
    return sides
