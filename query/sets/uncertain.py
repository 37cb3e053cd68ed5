"""Frames a model is least sure of, and unlike each other."""

from typing import cast

import numpy as np
import numpy.typing as npt

from query.frames.sampling import Hashes, random_keys
from query.sets.strata import Codes

Reals = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]


def most_uncertain(
    scores: Reals, scenes: Codes, hashes: Hashes, count: int, per_scene: int | None, seed: int
) -> Positions:
    """Positions of the highest scores, so many of a scene at most; the highest first.

    Args:
        scores: One per frame; NaN where there is none, which is never chosen.
        per_scene: Most of one scene; no limit when None.
    """
    ranked = np.flatnonzero(~np.isnan(scores))
    if per_scene is None and count < len(ranked):
        # All that score as the last one chosen stay in, so that the seed decides among them.
        edge = np.partition(scores[ranked], len(ranked) - count)[len(ranked) - count]
        ranked = ranked[scores[ranked] >= edge]
    ranked = ranked[np.lexsort((random_keys(hashes[ranked], seed), -scores[ranked]))]
    if per_scene is not None:
        ranked = ranked[_rank_within(scenes[ranked]) < per_scene]
    return cast(Positions, ranked[:count])


def _rank_within(groups: Codes) -> Positions:
    """The number of earlier ones of the same group, for each."""
    by_group = np.argsort(groups, kind="stable")
    sorted_groups = groups[by_group]
    starts = np.flatnonzero(np.diff(sorted_groups, prepend=-1))
    rank = np.empty(len(groups), np.int64)
    rank[by_group] = np.arange(len(groups)) - np.repeat(starts, np.diff(starts, append=len(groups)))
    return rank


def standardised(vectors: Reals) -> Reals:
    """Columns shifted and scaled to mean 0 and deviation 1; constant ones to 0.

    What is not known (NaN) becomes 0, and each column has a value that is.
    """
    unknown = np.isnan(vectors)
    known = ~unknown if unknown.any() else True
    deviation = vectors.std(axis=0, where=known)
    centred = np.where(unknown, 0.0, vectors - vectors.mean(axis=0, where=known))
    return cast(Reals, np.divide(centred, deviation, where=deviation > 0, out=0 * centred))


def spread_out(vectors: Reals, scenes: Codes, count: int, per_scene: int | None) -> Positions:
    """Greedy k-center: from the first row on, always the row furthest from those chosen.

    Its radius, the largest distance of a row from the chosen ones, is at most twice the smallest
    possible where no scene's limit interferes (Gonzalez 1985).

    Args:
        vectors: A row per frame, the most wanted first.
        per_scene: Most of one scene; no limit when None.

    Returns:
        Positions in the order chosen; fewer than ``count`` where the limits allow no more.
    """
    chosen: list[int] = []
    nearest = np.full(len(vectors), np.inf)
    chosen_of_scene = np.zeros(int(scenes.max(initial=-1)) + 1, np.int64)
    squares = (vectors * vectors).sum(axis=1)
    while len(chosen) < min(count, len(vectors)):
        next_ = int(np.argmax(nearest))
        if nearest[next_] < 0:
            break
        chosen.append(next_)
        apart = squares + squares[next_] - 2 * (vectors @ vectors[next_])
        # Rounding must not put an unchosen twin of a chosen row below the chosen ones.
        np.minimum(nearest, np.maximum(apart, 0), out=nearest)
        nearest[next_] = -1
        chosen_of_scene[scenes[next_]] += 1
        if per_scene is not None and chosen_of_scene[scenes[next_]] >= per_scene:
            nearest[scenes == scenes[next_]] = -1
    return np.array(chosen, np.int64)
