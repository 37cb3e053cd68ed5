"""Frames whose distribution is that of a target, in several marginals at once.

Frames that agree in every marginal are one cell; a set is how many frames each cell gives. Raking
finds the real numbers that are nearest to the candidates' own joint distribution (entropy), they
are rounded, and frames are exchanged until the marginals fit. Where that falls short of the
tolerance, a mixed-integer program (HiGHS) finds how near one can come.
docs/decisions/0013 says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from query.frames.sampling import Hashes, random_keys
from query.sets.distances import Distance, distance
from query.sets.rounding import Counts, systematic
from query.sets.strata import Codes
from query.sets.stratified import draw

Reals = npt.NDArray[np.float64]

SWEEPS = 300
PROGRAM_CELLS = 20_000
"""Most cells for which the program is solved in whole numbers."""

_WHOLE = 0.999
"""Frames are whole: what is off by less than one cannot come nearer."""

_NAMED = 5
"""Categories that a sentence names."""

_POOL = 20
"""Candidates kept for each frame wanted of a category, where there are more."""


@dataclass(frozen=True)
class Marginal:
    """A target of one kind, and where each candidate stands in it."""

    name: str
    """Such as "camera" or "car:0,1000"."""
    labels: tuple[str, ...]
    """Its categories, those that no candidate has included."""
    shares: Reals
    """Wanted share of each, summing to 1."""
    codes: npt.NDArray[np.integer[Any]]
    """Category of each candidate, of any type of whole numbers."""


@dataclass(frozen=True)
class Shortfall:
    """A category whose share is further from what is wanted than the tolerance allows."""

    marginal: str
    label: str
    target: float
    """Frames wanted."""
    achieved: int
    """Frames of the set."""
    available: int
    scarce: tuple[str, ...]
    """Categories of the same marginal of which there are fewer than wanted."""

    def to_json(self) -> dict[str, object]:
        """The shortfall as a mapping, with a sentence."""
        target = round(self.target)
        by = abs(self.achieved - target)
        if self.available < self.target:
            reason = f"there are {self.available:,}"
        elif self.scarce:
            more = len(self.scarce) - _NAMED
            reason = f"it stands in for what is missing of {', '.join(self.scarce[:_NAMED])}"
            reason += f" and {more} more" if more > 0 else ""
        else:
            reason = f"the other targets stand against it, of {self.available:,} that there are"
        side = "short" if self.achieved < target else "over"
        return {
            "marginal": self.marginal, "value": self.label, "wanted": target,
            "achieved": self.achieved, "available": self.available, f"{side}_by": by,
            "reason": f"wants {target:,} frames and gets {self.achieved:,}: {reason}",
        }  # fmt: skip


@dataclass(frozen=True)
class Matched:
    """Matched set, and its distances from the targets."""

    positions: npt.NDArray[np.int64]
    """The frames' positions among the candidates, rising."""
    achieved: tuple[Counts, ...]
    """Frames of each category, a row per marginal."""
    available: tuple[Counts, ...]
    distances: tuple[Distance, ...]
    """Of each marginal's shares from those wanted."""
    shortfalls: tuple[Shortfall, ...]
    """The categories that miss the tolerance, by a whole frame at least."""


@dataclass
class _Cells:
    """Candidates that agree in every marginal, taken together."""

    category: npt.NDArray[np.int64]
    """For each marginal (rows) and cell, the category, numbered through all marginals."""
    capacity: Counts
    """Candidates of each cell."""
    targets: Reals
    """Frames wanted of each category."""
    of_frame: Codes
    """Cell of each candidate."""

    def counts(self, allocation: Reals | Counts) -> Reals:
        """Frames of each category."""
        counts = np.zeros(len(self.targets))
        for row in self.category:
            counts += np.bincount(row, weights=allocation, minlength=len(counts))
        return counts


def match(
    hashes: Hashes, marginals: Sequence[Marginal], frames: int, tolerance: float, seed: int
) -> Matched:
    """Choose frames so that every category's share is within the tolerance of its target.

    Args:
        frames: How many to choose; all candidates where there are no more.
        tolerance: Largest absolute difference of a share (0 to 1).
        seed: Decides between candidates that fit equally.

    Returns:
        The same set for the same candidates, in whatever order they are given.
    """
    requested, frames = frames, min(frames, len(hashes))
    pool = _pool(hashes, marginals, frames, seed)
    chosen = _choose(hashes, marginals, frames, tolerance, seed, pool)
    best = _judged(marginals, requested, tolerance, chosen)
    if len(pool) < len(hashes) and _contradicted(best):
        everyone = np.arange(len(hashes))
        chosen = _choose(hashes, marginals, frames, tolerance, seed, everyone)
        best = min(best, _judged(marginals, requested, tolerance, chosen), key=_missing)
    return best


def _contradicted(match_: Matched) -> bool:
    """Return whether a marginal is missed though each category has candidates enough."""
    missed = {one.marginal for one in match_.shortfalls}
    rare = {one.marginal for one in match_.shortfalls if one.available < one.target}
    return bool(missed - rare)


def _missing(match_: Matched) -> float:
    return sum(abs(one.achieved - one.target) for one in match_.shortfalls)


def _pool(
    hashes: Hashes, marginals: Sequence[Marginal], frames: int, seed: int
) -> npt.NDArray[np.int64]:
    """Candidates enough: all of a category that is rare, some by the seed's order of a common one.

    A candidate stays if one of its categories would keep it, so what is rare is never thinned out.
    """
    keep = np.full(len(hashes), min(1.0, _POOL * frames / max(len(hashes), 1)))
    for marginal in marginals:
        sizes = np.bincount(marginal.codes, minlength=len(marginal.labels))
        targets = marginal.shares * frames
        rate = np.where(sizes > 0, _POOL * targets / np.maximum(sizes, 1), 0.0)
        np.maximum(keep, rate[marginal.codes], out=keep)
    return np.flatnonzero(random_keys(hashes, seed) < np.where(keep >= 1, np.inf, keep * 2.0**64))


def _choose(
    hashes: Hashes,
    marginals: Sequence[Marginal],
    frames: int,
    tolerance: float,
    seed: int,
    pool: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    frames = min(frames, len(pool))
    cells = _cells([marginal.codes[pool] for marginal in marginals], marginals, frames)
    raked = _raked(cells, frames)
    ties = np.argsort(random_keys(np.arange(len(raked), dtype=np.uint64), seed), kind="stable")
    allocation = _exchanged(cells, systematic(raked, frames, seed), ties)
    allowed = _allowed(tolerance, frames)
    if _excess(cells, allocation, allowed) > 0:
        better = _program(cells, frames, allowed)
        if better is not None and _excess(cells, better, allowed) < _excess(
            cells, allocation, allowed
        ):
            allocation = better
    # Another seed than the pool's would do as well: within a cell all frames are equal.
    return pool[draw(hashes[pool], cells.of_frame, allocation, seed)]


def _allowed(tolerance: float, frames: int) -> float:
    """The number of frames by which a category may be off."""
    return max(tolerance * frames, _WHOLE)


def _cells(
    codes: Sequence[npt.NDArray[np.integer[Any]]], marginals: Sequence[Marginal], frames: int
) -> _Cells:
    joint = np.zeros(len(codes[0]), np.int64)
    for code, marginal in zip(codes, marginals, strict=True):
        # Made dense after each marginal: the product of them all may not fit into 64 bits.
        joint = np.unique(joint * len(marginal.labels) + code, return_inverse=True)[1]
    capacity = cast(Counts, np.bincount(joint))
    some = np.empty(len(capacity), np.int64)
    some[joint] = np.arange(len(joint))  # any frame of a cell tells its categories
    starts = np.cumsum([0, *(len(marginal.labels) for marginal in marginals)])
    category = np.array(
        [
            code[some].astype(np.int64) + start
            for code, start in zip(codes, starts[:-1], strict=True)
        ]
    )
    targets = cast(Reals, np.concatenate([one.shares for one in marginals]) * frames)
    return _Cells(category, capacity, targets, joint.astype(np.int64))


def _raked(cells: _Cells, frames: int) -> Reals:
    """Frames of each cell, as real numbers: candidates' proportions, times a factor per category.

    Factors are found by turns (iterative proportional fitting); a cell gives no more than it has.
    """
    base = cells.capacity * (frames / cells.capacity.sum())
    factor = np.zeros(len(cells.targets))  # logarithms
    of_cell = np.zeros(len(base))  # the sum of its factors
    allocation = base
    targets = np.maximum(cells.targets, 1e-9)
    best, since = np.inf, 0
    for _ in range(SWEEPS):
        worst = 0.0
        for row in cells.category:
            present = np.bincount(row, weights=allocation, minlength=len(factor))
            some = np.zeros(len(factor), bool)
            some[row] = True
            step = np.log(targets[some]) - np.log(np.maximum(present[some], 1e-12))
            worst = max(worst, float(np.abs(present - cells.targets)[some].max()))
            change = np.zeros(len(factor))
            change[some] = np.clip(factor[some] + step, -60, 60) - factor[some]
            factor += change
            of_cell += change[row]
            allocation = np.minimum(cells.capacity, base * np.exp(of_cell))
        if worst < 0.05:
            break
        since = 0 if worst < 0.99 * best else since + 1
        best = min(best, worst)
        if since >= 20:  # the targets contradict each other, or ask for more than there is
            break
    return _summing_to(allocation, cells.capacity, frames)


def _summing_to(allocation: Reals, capacity: Counts, frames: int) -> Reals:
    total = allocation.sum()
    if total >= frames:
        return cast(Reals, allocation * (frames / total))
    room = capacity - allocation
    return cast(Reals, allocation + room * ((frames - total) / room.sum()))


def _excess(cells: _Cells, allocation: Counts, allowed: float) -> float:
    missed = np.abs(cells.counts(allocation) - cells.targets) - allowed
    return float(missed[missed > 1e-9].sum())


def _exchanged(cells: _Cells, allocation: Counts, ties: npt.NDArray[np.int64]) -> Counts:
    """Give one frame back and take another, as long as the marginals come nearer by it."""
    category, capacity = cells.category[:, ties], cells.capacity[ties]
    allocation = np.minimum(allocation[ties], capacity)
    off = cells.counts(allocation[np.argsort(ties)]) - cells.targets
    exchanges = 10 * len(cells.targets) + 2_000
    # Some cells to take from are as good as all, until they are not.
    for most in (_OPEN_CELLS, len(allocation)):
        scope = np.flatnonzero((allocation > 0) | (np.arange(len(allocation)) < most))
        few, room = category[:, scope], capacity[scope]
        while exchanges and np.abs(off).max() > 1:
            step = _best_exchange(few, room, allocation[scope], off)
            if step is None:
                break
            giver, got = scope[step[0]], scope[step[1]]
            allocation[giver] -= 1
            allocation[got] += 1
            off[category[:, giver]] -= 1
            off[category[:, got]] += 1
            exchanges -= 1
    counts = np.empty_like(allocation)
    counts[ties] = allocation
    return counts


_OPEN_CELLS = 10_000


def _best_exchange(
    category: npt.NDArray[np.int64], capacity: Counts, allocation: Counts, off: Reals
) -> tuple[int, int] | None:
    """Cells of an exchange that brings the sum of squares of what is off down most."""
    # Squares and not amounts: they also tell two half-missed categories from one missed whole.
    less = (-2 * off + 1)[category].sum(axis=0)
    more = (2 * off + 1)[category].sum(axis=0)
    less[allocation == 0] = np.inf
    more[allocation >= capacity] = np.inf
    best: tuple[float, int, int] = (-1e-9, -1, -1)
    # What both cells share is counted twice as 2 though it changes nothing.
    for giver in np.argsort(less, kind="stable")[:_TRIED]:
        if not np.isfinite(less[giver]):
            break
        shared = (category == category[:, giver : giver + 1]).sum(axis=0)
        change = more - 2 * shared
        got = int(np.argmin(change))
        if less[giver] + change[got] < best[0]:
            best = (float(less[giver] + change[got]), int(giver), got)
    return None if best[1] < 0 else (best[1], best[2])


_TRIED = 8


def _program(cells: _Cells, frames: int, allowed: float) -> Counts | None:
    """The whole numbers whose marginals miss the tolerance least; None where they are not found."""
    from scipy.optimize import (  # type: ignore[import-untyped,unused-ignore]
        Bounds,
        LinearConstraint,
        milp,
    )
    from scipy.sparse import (  # type: ignore[import-untyped,unused-ignore]
        csr_array,
        eye_array,
        hstack,
        vstack,
    )

    number, kinds = len(cells.capacity), len(cells.targets)
    width = len(cells.category)
    member = csr_array(
        (np.ones(number * width), (cells.category.ravel(), np.tile(np.arange(number), width))),
        shape=(kinds, number),
    )
    # Variables: frames of each cell, what a category is off by, what of that the tolerance allows.
    one = eye_array(kinds)
    rows = vstack([hstack([member, -one, -one]), hstack([-member, -one, -one])])
    total = hstack([csr_array(np.ones((1, number))), csr_array((1, 2 * kinds))])
    limits = np.concatenate([cells.targets, -cells.targets])
    solved = milp(
        np.concatenate([np.zeros(number), np.ones(kinds), np.full(kinds, 1e-4)]),
        integrality=np.concatenate(
            [np.full(number, int(number <= PROGRAM_CELLS)), np.zeros(2 * kinds)]
        ),
        bounds=Bounds(
            0,
            np.concatenate([cells.capacity, np.full(kinds, np.inf), np.full(kinds, allowed)]),
        ),
        constraints=[
            LinearConstraint(rows.tocsc(), -np.inf, limits),
            LinearConstraint(total.tocsc(), frames, frames),
        ],
        # Nodes and not seconds: a slower machine must find the same.
        options={"node_limit": 2_000},
    )
    if solved.x is None:
        return None
    return np.minimum(systematic(np.maximum(solved.x[:number], 0), frames, 0), cells.capacity)


def _judged(
    marginals: Sequence[Marginal],
    requested: int,
    tolerance: float,
    chosen: npt.NDArray[np.int64],
) -> Matched:
    frames = len(chosen)
    achieved, available, distances, shortfalls = [], [], [], []
    for marginal in marginals:
        size = len(marginal.labels)
        got = np.bincount(marginal.codes[chosen], minlength=size)
        there = np.bincount(marginal.codes, minlength=size)
        achieved.append(got)
        available.append(there)
        distances.append(distance(got.tolist(), marginal.shares.tolist()))
        scarce = np.flatnonzero(there < np.floor(marginal.shares * requested * (1 - tolerance)))
        off = np.abs(got - marginal.shares * frames)
        for code in np.flatnonzero(off > _allowed(tolerance, frames) + 1e-9):
            shortfalls.append(
                Shortfall(
                    marginal.name,
                    marginal.labels[code],
                    float(marginal.shares[code] * requested),
                    int(got[code]),
                    int(there[code]),
                    tuple(marginal.labels[few] for few in scarce),
                )
            )
    return Matched(chosen, tuple(achieved), tuple(available), tuple(distances), tuple(shortfalls))


def report(marginals: Sequence[Marginal], match_: Matched, tolerance: float) -> dict[str, object]:
    """Achieved against wanted, as a mapping: marginals, distances, what is missed, worst first."""
    frames = len(match_.positions)
    tables = []
    for marginal, achieved, available, apart in zip(
        marginals, match_.achieved, match_.available, match_.distances, strict=True
    ):
        values = [
            {
                "value": label,
                "wanted": round(float(share), 6),
                "achieved": round(int(got) / frames, 6) if frames else 0.0,
                "frames": int(got),
                "available": int(there),
            }
            for label, share, got, there in zip(
                marginal.labels, marginal.shares, achieved, available, strict=True
            )
        ]
        tables.append({"marginal": marginal.name, "values": values, **apart.to_json()})
    return {
        "tolerance": tolerance,
        "tolerance_met": not match_.shortfalls,
        "marginals": tables,
        "unmet": [
            one.to_json()
            for one in sorted(match_.shortfalls, key=lambda one: -abs(one.achieved - one.target))
        ],
    }
