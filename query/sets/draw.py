"""A question and a method to the frames of a set, and what is to be said about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from query.frames.candidates import (
    DUPLICATE,
    candidates,
    columns_of,
    holds,
    mark_column,
    once,
)
from query.frames.sampling import Hashes
from query.question.question import Question
from query.sets import matched
from query.sets.coverage import Covered, cover, packed
from query.sets.leakage_guard import DRIVE, LeakageGuard, frame_times
from query.sets.methods import REST, Cover, Demand, Match, Method, Sample, Uncertain, fractions_of
from query.sets.strata import Codes, Strata, one_stratum, strata_of
from query.sets.stratified import allocate, draw
from query.sets.stratifier import Stratifier
from query.sets.uncertain import most_uncertain, spread_out, standardised

Report = dict[str, Any]

MOST_LISTED = 1_000
"""Strata that a report lists, the largest first."""


@dataclass(frozen=True)
class Drawn:
    """Frames of a set, and the report of how they were chosen."""

    hashes: Hashes
    """Their fkey_hash, rising."""
    report: Report
    """Achieved against wanted, as JSON."""


@dataclass(frozen=True)
class Frames:
    """The frames that sets are drawn from."""

    snapshot: Snapshot
    relation: FramesRelation
    question: Question
    """Its conditions say which frames; it has neither limit nor sample."""
    leakage_guard: LeakageGuard | None = None

    def fetch(
        self, columns: Sequence[str], holding: Sequence[Question] = ()
    ) -> tuple[pa.Table, int]:
        """The frames with these columns, and how many were left out for being too near.

        Of frames that are the same there is one.
        """
        guards = guard_columns(self.snapshot, self.relation) if self.leakage_guard else []
        rows = self.fetch_all([*columns, *guards, *mark_column(self.snapshot)], holding)
        if self.leakage_guard is None:
            return once(rows), 0
        near = near_rows(rows, self.leakage_guard)
        return once(rows.filter(pa.array(~near))), int(near.sum())

    def fetch_all(self, columns: Sequence[str], holding: Sequence[Question] = ()) -> pa.Table:
        """The frames with these columns, every one of those that are the same, too."""
        return candidates(
            self.snapshot, self.relation, self.question, columns, holding,
        ).rows  # fmt: skip


def guard_columns(snapshot: Snapshot, relation: FramesRelation) -> list[str]:
    """The columns that say whether frames are the same, of one scene or drive, or near in time."""
    drive = [DRIVE] if DRIVE in relation.tags else []
    return ["scene", "frame_number", *drive, *mark_column(snapshot)]


def near_rows(rows: pa.Table, leakage_guard: LeakageGuard) -> npt.NDArray[np.bool_]:
    """Return which rows, with guard_columns, are too near to another set."""
    drives = rows[DRIVE] if DRIVE in rows.column_names else None
    times = frame_times(rows["scene"], rows["frame_number"])
    near = leakage_guard.near(hashes_of(rows), rows["scene"], drives, times)
    if DUPLICATE in rows.column_names:
        near |= leakage_guard.same(rows[DUPLICATE])
    return near


def hashes_of(rows: pa.Table) -> Hashes:
    """Each row's fkey_hash."""
    return cast(Hashes, rows[FKEY_HASH].to_numpy())


def draw_set(frames: Frames, method: Method, seed: int) -> Drawn:
    """The frames that a method chooses.

    Args:
        method: How; a Match has its targets.

    Raises:
        InvalidInput: A number is asked of a text, or the question has a limit or a sample.
    """
    question = frames.question
    if question.limit is not None or question.sample is not None:
        raise InvalidInput(
            f"method {method.method} says itself how many frames; leave out the question's limit "
            "and sample"
        )
    drawn: Drawn
    if isinstance(method, Sample):
        drawn = _sample(frames, method, seed)
    elif isinstance(method, Match):
        drawn = _match(frames, method, seed)
    elif isinstance(method, Cover):
        drawn = _cover(frames, method, seed)
    else:
        drawn = _uncertain(frames, method, seed)
    return Drawn(np.sort(drawn.hashes), {"method": method.method, **drawn.report})


def _sample(frames: Frames, method: Sample, seed: int) -> Drawn:
    stratifiers = [Stratifier.parse(text) for text in method.stratify]
    rows, left_out = frames.fetch([one.tag for one in stratifiers])
    strata = strata_of(rows, stratifiers, frames.snapshot.classes_and_groups)
    allocation = method.allocation
    shares = fractions_of(allocation) if isinstance(allocation, dict) else allocation
    hashes = hashes_of(rows)
    counts = allocate(strata, method.frames, shares, seed)
    chosen = draw(hashes, strata.codes, counts, seed)
    sizes = strata.sizes
    listed = np.lexsort((np.arange(len(sizes)), -sizes))[:MOST_LISTED]
    return Drawn(
        hashes[chosen],
        {
            "wanted": method.frames,
            "achieved": len(chosen),
            "candidates": len(hashes),
            "left_out_as_too_near": left_out,
            "strata": len(sizes),
            "largest_strata": [
                {
                    "stratum": "/".join(strata.labels[code]),
                    "available": int(sizes[code]),
                    "frames": int(counts[code]),
                }
                for code in listed.tolist()
                if stratifiers
            ],
        },
    )


def marginal_of(
    rows: pa.Table, text: str, shares: Mapping[str, float], classes: Mapping[str, str]
) -> matched.Marginal:
    """A target and where each row stands in it; values it does not name are one category.

    Args:
        shares: Share of each value, summing to 1.
    """
    strata = one_stratum(rows, Stratifier.parse(text), classes)
    labels = [*sorted(set(shares) - {REST}), REST]
    code_of = {label: code for code, label in enumerate(labels)}
    code = np.array([code_of.get(label[0], code_of[REST]) for label in strata.labels], np.int64)
    targets = np.array([shares.get(label, 0.0) for label in labels])
    # A byte a frame: 39 marginals of 10,000,000 frames are 0.4 GB and not 3.
    narrow = code.astype(np.min_scalar_type(len(labels)))
    return matched.Marginal(
        text, tuple(labels), targets / targets.sum(), narrow[strata.codes] if len(code) else narrow
    )


def _match(frames: Frames, method: Match, seed: int) -> Drawn:
    tags = [Stratifier.parse(text).tag for text in method.targets]
    rows, left_out = frames.fetch(tags)
    hashes = hashes_of(rows)
    marginals = [
        marginal_of(rows, text, method.targets[text], frames.snapshot.classes_and_groups)
        for text in sorted(method.targets)
    ]
    report: Report = {
        "wanted": method.frames,
        "achieved": min(method.frames, len(hashes)),
        "candidates": len(hashes),
        "left_out_as_too_near": left_out,
    }
    if not len(hashes):
        return Drawn(hashes, report)
    match_ = matched.match(hashes, marginals, method.frames, method.tolerance, seed)
    return Drawn(
        hashes[match_.positions], report | matched.report(marginals, match_, method.tolerance)
    )


@dataclass(frozen=True)
class Covers:
    """Demands, one for every value where they are per tag, and the candidates that meet them.

    Attributes:
        members: For each, whether each row meets it; made when asked for.
    """

    names: list[str]
    targets: npt.NDArray[np.int64]
    rows: pa.Table
    strata: list[Strata]
    codes: list[tuple[int, int]]

    def members(self) -> Iterator[npt.NDArray[np.bool_]]:
        """For each demand, whether each row meets it."""
        for number, code in self.codes:
            holding = self.rows[holds(number)].to_numpy()
            yield holding & (self.strata[number].codes == code)


def demand_columns(demands: Sequence[Demand]) -> list[str]:
    """The columns that demands are counted per."""
    return [Stratifier.parse(text).tag for demand in demands for text in demand.per]


def covers_of(rows: pa.Table, demands: Sequence[Demand], classes: Mapping[str, str]) -> Covers:
    """Demands as sets of rows, which have demand_columns and are fetched holding the questions."""
    names, targets, strata_codes, strata = [], [], [], []
    for number, demand in enumerate(demands):
        by = strata_of(rows, [Stratifier.parse(text) for text in demand.per], classes)
        strata.append(by)
        name = demand.name or demand.question.model_dump_json(exclude_defaults=True)
        for code, label in enumerate(by.labels or ((),)):
            names.append("/".join([*label, name.rpartition("/")[2] if demand.per else name]))
            targets.append(demand.frames)
            strata_codes.append((number, code))
    return Covers(names, np.array(targets, np.int64), rows, strata, strata_codes)


def _cover(frames: Frames, method: Cover, seed: int) -> Drawn:
    demands = method.demands
    rows, left_out = frames.fetch(demand_columns(demands), [one.question for one in demands])
    covers = covers_of(rows, demands, frames.snapshot.classes_and_groups)
    hashes = hashes_of(rows)
    covered = cover(packed(covers.members(), len(hashes)), hashes, covers.targets, seed)
    return Drawn(
        hashes[covered.positions],
        {
            "candidates": len(hashes),
            "left_out_as_too_near": left_out,
            **covered_report(covers.names, covered),
        },
    )


def covered_report(names: Sequence[str], covered: Covered) -> Report:
    """The cover's frames, bounds and unmet demands, as JSON."""
    demands = [
        {"demand": name, "wanted": target, "achieved": achieved, "available": available}
        for name, target, achieved, available in zip(
            names, covered.targets.tolist(), covered.achieved.tolist(), covered.available.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return {
        "achieved": len(covered.positions),
        "lower_bound": covered.lower_bound,
        "bound_factor": round(covered.factor, 4),
        "demands": demands,
        "unmet": [
            {**one, "short_by": one["wanted"] - one["achieved"]}
            for one in demands
            if one["achieved"] < one["wanted"]
        ],
    }


def _uncertain(frames: Frames, method: Uncertain, seed: int) -> Drawn:
    tag = method.tag.lower()
    rows, left_out = frames.fetch([tag, "scene"])
    column = rows[tag]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidInput(f"uncertain {tag}: it is no number, so that nothing is its highest")
    scores = pc.fill_null(column.cast(pa.float64()), np.nan).to_numpy()
    hashes = hashes_of(rows)
    scenes = one_stratum(rows, Stratifier("scene"), {}).codes
    sign = -1.0 if method.lowest else 1.0
    pool = most_uncertain(
        sign * scores, scenes, hashes, int(method.frames * method.pool),
        None if method.per_scene is None else int(method.per_scene * method.pool), seed,
    )  # fmt: skip
    vectors = _class_shares(frames, hashes[pool])
    chosen = pool[spread_out(vectors, scenes[pool], method.frames, method.per_scene)]
    return Drawn(
        hashes[chosen],
        {
            "wanted": method.frames,
            "achieved": len(chosen),
            "candidates": len(hashes),
            "left_out_as_too_near": left_out,
            "without_score": int(np.isnan(scores).sum()),
            "pool": len(pool),
            "scenes": len(np.unique(scenes[chosen])),
            "scores": _range_of(scores[chosen]),
            "scores_of_all": _range_of(scores[~np.isnan(scores)]),
        },
    )


def _class_shares(frames: Frames, hashes: Hashes) -> npt.NDArray[np.float64]:
    """Standardised shares of the classes in each frame, in the order of the hashes.

    A class that a frame's data set does not have brings it no nearer to any other.
    """
    classes = list(frames.snapshot.classes)
    rows = columns_of(frames.snapshot, frames.relation, hashes, classes).rows
    classes = [tag for tag in classes if rows[tag].null_count < len(rows)]
    fetched = hashes_of(rows)
    order = np.argsort(fetched)[np.argsort(np.argsort(hashes))]
    pixels = np.array(
        [pc.fill_null(rows[tag].cast(pa.float64()), np.nan).to_numpy() for tag in classes]
    ).reshape(len(classes), len(rows))
    total = np.maximum(np.nansum(pixels, axis=0), 1)
    return standardised((pixels / total)[:, order].T)


def _range_of(scores: npt.NDArray[np.float64]) -> dict[str, float]:
    if not len(scores):
        return {}
    return {
        "lowest": float(scores.min()),
        "mean": float(scores.mean()),
        "highest": float(scores.max()),
    }


def shares_of(
    rows: pa.Table, stratifiers: Sequence[str], classes: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """The distribution of rows, as the targets of a Match."""
    shares: dict[str, dict[str, float]] = {}
    for text in stratifiers:
        strata = one_stratum(rows, Stratifier.parse(text), classes)
        sizes: Codes = strata.sizes
        shares[text] = {
            label[0]: int(size) / rows.num_rows
            for label, size in zip(strata.labels, sizes, strict=True)
        }
    return shares
