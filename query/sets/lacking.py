"""Frames that cover what is lacking: a greedy cover of amounts, less of what was just taken.

The value of a set of frames is the sum over classes of the class's weight times the logarithm of
its amount, so that a class of which there is little gains most; a frame that lies near in time to
one that was taken, in the same view, counts for the part that is new. The value is submodular, so
that the greedy choice reaches at least 63 % of the best (Nemhauser, Wolsey and Fisher 1978), and a
value computed earlier bounds the later one (Minoux 1978), which saves most of the work.
"""

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from query.frames.sampling import Hashes
from query.sets.strata import Codes

Reals = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]

NEW_AFTER_S = 4.0
"""Frames of a view so far apart repeat 37 % of each other, 1/e [s]."""


@dataclass(frozen=True)
class Offered:
    """Frames to choose from, n of them."""

    amounts: Reals
    """(n, C) float64, of each class."""
    worth: Reals
    """(n,) float64, above 0: what each frame's amounts count, 1 as usual."""
    views: Codes
    """(n,) of the same scene and camera."""
    seconds: Reals
    """(n,) float64: time within the view; NaN where nobody knows."""
    scenes: Codes
    """(n,)."""
    keys: Hashes
    """(n,): decide between frames of equal value, the least first."""


@dataclass(frozen=True)
class Covered:
    """The frames that were taken."""

    positions: Positions
    """In the order in which they were."""
    gains: Reals
    """The value that each added; above 0."""


def cover_lacking(
    offered: Offered, weights: Reals, had: Reals, count: int, per_scene: int | None = None
) -> Covered:
    """As many frames as are wanted, fewer where no other adds anything.

    Args:
        offered: The frames.
        weights: (C,) how much each class counts.
        had: (C,) the amount of each that there is already.
        count: How many.
        per_scene: Most of one scene; no limit when None.
    """
    amounts = offered.amounts * offered.worth[:, None]
    frames = np.count_nonzero(amounts, axis=0)
    usual = np.where(frames > 0, amounts.sum(axis=0) / np.maximum(frames, 1), 1.0)
    have = had / usual
    amounts = amounts / usual
    first = np.log1p(amounts / (1 + have)) @ weights
    queue = [
        (-gain, key, position)
        for position, (gain, key) in enumerate(
            zip(first.tolist(), offered.keys.tolist(), strict=True)
        )
        if gain > 0
    ]
    heapq.heapify(queue)
    taken: list[int] = []
    gains: list[float] = []
    times: dict[int, list[float]] = {}
    of_scene: dict[int, int] = {}
    while queue and len(taken) < count:
        _, key, position = queue[0]
        scene, view = int(offered.scenes[position]), int(offered.views[position])
        if per_scene is not None and of_scene.get(scene, 0) >= per_scene:
            heapq.heappop(queue)
            continue
        new = amounts[position] * _new_share(offered.seconds[position], times.get(view))
        gain = float(np.log1p(new / (1 + have)) @ weights)
        if gain <= 0:
            heapq.heappop(queue)
            continue
        heapq.heapreplace(queue, (-gain, key, position))
        if queue[0][2] != position:
            continue
        heapq.heappop(queue)
        taken.append(position)
        gains.append(gain)
        have = have + new
        times.setdefault(view, []).append(float(offered.seconds[position]))
        of_scene[scene] = of_scene.get(scene, 0) + 1
    return Covered(np.array(taken, np.int64), np.array(gains))


def _new_share(time: float, times: list[float] | None) -> float:
    """The share of a frame that those taken of its view have not shown, 0 to 1."""
    if not times:
        return 1.0
    apart = np.abs(np.array(times) - time)
    nearest = np.nanmin(apart) if not np.isnan(apart).all() else np.nan
    return 1.0 if np.isnan(nearest) else float(1 - np.exp(-nearest / NEW_AFTER_S))
