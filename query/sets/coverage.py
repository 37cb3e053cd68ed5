"""The smallest set in which everything that is wanted occurs often enough: greedy multicover."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from query.frames.sampling import Hashes, random_keys

Words = npt.NDArray[np.uint64]
"""A row per 64 demands, a column per frame: bit i of row w says that demand 64 w + i is in it."""

Counts = npt.NDArray[np.int64]

_STEP = 4_096


@dataclass(frozen=True)
class Covered:
    """A set that covers what can be covered."""

    positions: npt.NDArray[np.int64]
    """The frames' positions, rising."""
    targets: Counts
    """Frames wanted for each demand."""
    available: Counts
    """Candidates that hold it."""
    achieved: Counts
    """Frames of the set that hold it."""
    lower_bound: int
    """No set that achieves as much is smaller than this [frames]."""
    factor: float
    """The set is at most so many times as large as the smallest one: 1 + 1/2 + ... + 1/d, d the
    most demands that one frame holds; never above 1 + ln d.
    """


def packed(members: Iterable[npt.NDArray[np.bool_]], frames: int) -> Words:
    """The demands that each frame holds, as bits.

    Args:
        members: For each demand, whether each frame holds it.
    """
    words: list[npt.NDArray[np.uint64]] = []
    for number, holds in enumerate(members):
        if number % 64 == 0:
            words.append(np.zeros(frames, np.uint64))
        words[-1] |= holds.astype(np.uint64) << np.uint64(number % 64)
    return np.array(words) if words else np.zeros((1, frames), np.uint64)


def cover(words: Words, hashes: Hashes, targets: Counts, seed: int) -> Covered:
    """Take the frame that serves most unmet demands, until all are met that can be.

    The gain of a frame only falls, and only when a demand is met. So an old gain is an upper bound,
    and only frames that might be the best by it are counted again: the lazy updates of the greedy
    algorithm (Minoux 1978), for all frames of a gain at once.

    Args:
        words: Which frame holds what, see `packed`.
        targets: Frames wanted for each demand.
        seed: Decides between frames of equal gain.
    """
    order = random_keys(hashes, seed)
    available = np.array(
        [_holding(words, number).sum() for number in range(len(targets))], np.int64
    )
    reachable = np.minimum(targets, available)
    unmet = reachable.copy()
    counted = _bits(words & _mask(unmet)[:, None])
    most = int(counted.max(initial=1)) or 1
    gains = cast(
        npt.NDArray[np.unsignedinteger[Any]],
        counted.astype(np.uint8 if most < 256 else np.uint32),
    )
    phases: list[npt.NDArray[np.int64]] = []
    while (unmet > 0).any():
        phases.append(_phase(words, gains, order, unmet))
    chosen = np.concatenate(phases) if phases else np.empty(0, np.int64)
    chosen = np.sort(_without_needless(words, chosen, reachable))
    achieved = np.array(
        [_holding(words[:, chosen], number).sum() for number in range(len(targets))], np.int64
    )
    factor = float((1 / np.arange(1, most + 1)).sum())
    bound = _lower_bound(words, reachable, available, len(chosen))
    return Covered(chosen, targets, available, achieved, bound, factor)


def _phase(
    words: Words, gains: npt.NDArray[np.unsignedinteger[Any]], order: Hashes, unmet: Counts
) -> npt.NDArray[np.int64]:
    """The frames taken until one more demand is met; lowers ``unmet`` by what they serve.

    ``gains`` may be old and are brought up to date where they matter; of frames taken they are 0.
    """
    chosen_portions: list[npt.NDArray[np.int64]] = []
    mask = _mask(unmet)[:, None]
    for gain in range(int(gains.max()), 0, -1):
        level = np.flatnonzero(gains == gain)
        gains[level] = _bits(words[:, level] & mask)
        level = level[gains[level] == gain]
        # A level may hold millions of frames and a few be needed: rank those few only.
        while len(level):
            portion = _first(level, order, _STEP)
            served = np.cumsum(_rows(words[:, portion], len(unmet)), axis=1)
            met = (served >= unmet[:, None]) & (unmet[:, None] > 0)
            end = int(met.any(axis=0).argmax()) if met.any() else len(portion) - 1
            np.maximum(unmet - served[:, end], 0, out=unmet)
            chosen_portions.append(portion[: end + 1])
            gains[chosen_portions[-1]] = 0
            if met.any():
                return np.concatenate(chosen_portions)
            level = np.setdiff1d(level, portion, assume_unique=True)
    raise AssertionError("every demand left can be met")  # left is at most what is available


def _first(level: npt.NDArray[np.int64], order: Hashes, count: int) -> npt.NDArray[np.int64]:
    some = level
    if count < len(level):
        some = level[np.argpartition(order[level], count - 1)[:count]]
    return some[np.argsort(order[some], kind="stable")]


def _mask(unmet: Counts) -> Words:
    words = np.zeros(-(-len(unmet) // 64) or 1, np.uint64)
    for number in np.flatnonzero(unmet > 0).tolist():
        words[number // 64] |= np.uint64(1 << (number % 64))
    return words


def _holding(words: Words, number: int) -> npt.NDArray[np.bool_]:
    bits = words[number // 64] >> np.uint64(number % 64)
    return cast(npt.NDArray[np.bool_], (bits & np.uint64(1)).astype(bool))


def _rows(words: Words, demands: int) -> npt.NDArray[np.int64]:
    return np.array([_holding(words, number) for number in range(demands)], np.int64)


def _bits(words: Words) -> npt.NDArray[np.int64]:
    """Number of bits of each column."""
    total = np.zeros(words.shape[1], np.int64)
    for word in words:
        x = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
        x = (x & np.uint64(0x3333333333333333)) + (
            (x >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
    return total


def _without_needless(
    words: Words, chosen: npt.NDArray[np.int64], targets: Counts
) -> npt.NDArray[np.int64]:
    """Without the frames that later ones made needless, the last taken looked at first."""
    rows = _rows(words[:, chosen], len(targets))
    spare = rows.sum(axis=1) - targets
    needed = np.ones(len(chosen), bool)
    for index in range(len(chosen) - 1, -1, -1):
        holds = rows[:, index] > 0
        if (spare[holds] > 0).all():
            spare[holds] -= 1
            needed[index] = False
    return cast(npt.NDArray[np.int64], chosen[needed])


def _lower_bound(words: Words, targets: Counts, available: Counts, size: int) -> int:
    """A number of frames that no set can do with less of, by duality.

    For any group of demands: their sum, less what frames that serve several of them can save. The
    group takes the rarest first, each as long as that raises the bound.
    """
    if not size:
        return 0
    # So many frames of the most useful ones are needed in any case.
    served = _bits(words & _mask(targets)[:, None])
    top = np.sort(np.partition(served, len(served) - size)[len(served) - size :])[::-1]
    best = int(np.searchsorted(np.cumsum(top), targets.sum())) + 1
    best = max(best, int(targets.max()))
    bound = 0
    served_before = np.zeros(words.shape[1], bool)
    order = np.lexsort((np.arange(len(targets)), available))
    for number in order[targets[order] > 0].tolist():
        holds = _holding(words, number)
        saved = int(np.count_nonzero(holds & served_before))
        if targets[number] > saved:
            bound += int(targets[number]) - saved
            served_before |= holds
    return min(max(best, bound), size)
