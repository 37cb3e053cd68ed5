"""Dividing a selection into splits that share nothing they should not: the leakage guard."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.schema import GIVEN_SPLIT
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.datasets.split import assign_splits
from query.frames.candidates import DUPLICATE
from query.frames.sampling import Hashes
from query.sets.leakage_guard import DRIVE, chains, frame_times, joined_groups, smallest_gap_s
from query.sets.min_gap import MIN_GAP_S
from query.sets.strata import Codes, one_stratum, strata_of
from query.sets.stratifier import Stratifier

FRAME = "frame"
"""Split by single frames."""

GIVEN_SPLITS = ("train", "validation", "test")
"""Splits of a dataset that keeps its makers'."""

_AS_GIVEN = {
    "train": "train", "training": "train",
    "val": "validation", "valid": "validation", "validation": "validation",
    "test": "test", "testing": "test",
}  # fmt: skip
"""What makers call their splits."""

_MOST_SHOWN = 5


@dataclass(frozen=True)
class Division:
    """The division of a selection into splits."""

    shares: Mapping[str, Fraction] = field(default_factory=dict)
    """Share of each split (sums to 1); empty for one split "all"."""
    by: str = "scene"
    """Column whose values stay whole, or FRAME."""
    stratify: tuple[str, ...] = ()
    """Stratifiers whose shares every split should have."""
    min_gap_s: float = MIN_GAP_S
    """Frames nearer in time than this stay on one side [s]."""
    allow_leakage: bool = False
    """Keep nothing together but what ``by`` says."""
    seed: int = 0
    """Decides between groups that do equally well."""
    given: bool = False
    """Keep the splits of the data set's makers, in place of shares."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return GIVEN_SPLITS if self.given else tuple(self.shares) or (UNDIVIDED,)

    @property
    def is_divided(self) -> bool:
        """False where all frames are one split."""
        return self.given or bool(self.shares)

    def columns(self) -> list[str]:
        """The columns that it looks at, beside DRIVE and DUPLICATE where there are any."""
        if self.given:
            return [GIVEN_SPLIT, "scene", "frame_number"]
        by = [] if self.by == FRAME else [self.by]
        tags = [Stratifier.parse(text).tag for text in self.stratify]
        return list(dict.fromkeys([*by, *tags, "scene", "frame_number"]))

    def to_json(self) -> dict[str, Any]:
        """Return the division as JSON: a part of what a dataset's id is the digest of."""
        if self.given:
            return {"split": {}, "split_by": GIVEN_SPLIT, "split_seed": None}
        if not self.shares:
            return {"split": {}, "split_by": None, "split_seed": None}
        return {
            "split": {name: str(share) for name, share in self.shares.items()},
            "split_by": self.by,
            "split_seed": self.seed,
            "stratify_splits": list(self.stratify),
            "min_gap_s": self.min_gap_s,
            "allow_leakage": self.allow_leakage,
        }


def divide(
    frames: pa.Table, hashes: Hashes, division: Division, classes: Mapping[str, str]
) -> tuple[Codes, dict[str, Any]]:
    """The split of each frame, by its position in the shares, and what is to be said about it.

    Args:
        hashes: Each frame's fkey_hash.

    Raises:
        UnknownName: The frames lack a column of the division.
        InvalidInput: The makers' splits are to be kept, and frames have none, or another one.
    """
    for name in division.columns():
        if name not in frames.column_names:
            raise UnknownName("column", name, [*frames.column_names, FRAME], "The splits need it.")
    if division.given:
        sides = _given_sides(frames)
        return sides, {"leakage": leakage(frames, sides, division)}
    groups = _groups(frames, division)
    strata = strata_of(frames, [Stratifier.parse(text) for text in division.stratify], classes)
    sides = assign_splits(hashes, groups, strata.codes, division.shares, division.seed)
    report: dict[str, Any] = {"leakage": leakage(frames, sides, division)}
    report["leakage"]["groups"] = int(groups.max(initial=-1)) + 1
    if division.stratify:
        report["split_strata"] = _strata_report(
            strata.codes, strata.labels, sides, list(division.shares)
        )
    return sides, report


def _given_sides(frames: pa.Table) -> Codes:
    """The position in GIVEN_SPLITS of each frame's split."""
    encoded = frames[GIVEN_SPLIT].cast(pa.string()).combine_chunks().dictionary_encode()
    if encoded.null_count:
        raise InvalidInput(
            f"split given: {encoded.null_count:,} of {len(frames):,} frames have no {GIVEN_SPLIT}: "
            "their layout has no {split}; ask for those that have: "
            f"--where '{GIVEN_SPLIT} is not null'"
        )
    names = encoded.dictionary.to_pylist()
    if others := [name for name in names if name.lower() not in _AS_GIVEN]:
        raise InvalidInput(
            f"split given: {GIVEN_SPLIT} is {', '.join(others[:_MOST_SHOWN])} for some frames; "
            f"expected {', '.join(_AS_GIVEN)}; leave the others out, or divide by --split"
        )
    sides = np.array([GIVEN_SPLITS.index(_AS_GIVEN[name.lower()]) for name in names], np.int64)
    of_frames: Codes = sides[np.asarray(encoded.indices)]
    return of_frames


def _groups(frames: pa.Table, division: Division) -> Codes:
    count = frames.num_rows
    groupings = [np.arange(count) if division.by == FRAME else _codes(frames, division.by)]
    if not division.allow_leakage:
        times = frame_times(frames["scene"], frames["frame_number"])
        groupings += [_codes(frames, "scene"), chains(times, division.min_gap_s)]
        of_some = [name for name in (DRIVE, DUPLICATE) if name in frames.column_names]
        groupings += [_codes(frames, name) for name in of_some]
    return joined_groups(groupings) if count else groupings[0]


def _codes(frames: pa.Table, column: str) -> Codes:
    """A number for every value; each frame that has none gets one of its own."""
    codes = one_stratum(frames, Stratifier(column), {}).codes
    absent = np.asarray(frames[column].is_null())
    return np.where(absent, len(codes) + np.arange(len(codes)), codes)


def leakage(frames: pa.Table, sides: Codes, division: Division) -> dict[str, Any]:
    """Scenes, drives and duplicates that the splits share, measured on the divided frames."""
    times = frame_times(frames["scene"], frames["frame_number"])
    gap = smallest_gap_s(times, sides)
    shared: dict[str, Any] = {
        "guard": not division.allow_leakage,
        "min_gap_s": division.min_gap_s,
        "shared_scenes": _shared(frames, "scene", sides),
        "smallest_gap_s": None if gap is None else round(gap, 3),
        "frames_without_time": int(np.isnan(times).sum()),
    }
    if DRIVE in frames.column_names:
        shared["shared_drives"] = _shared(frames, DRIVE, sides)
    if DUPLICATE in frames.column_names:
        shared["shared_duplicates"] = _shared(frames, DUPLICATE, sides)
    return shared


def _shared(frames: pa.Table, column: str, sides: Codes) -> int:
    """Number of values of a column that are on more than one side."""
    table = pa.table({"value": frames[column].cast(pa.string()), "side": sides})
    table = table.filter(pc.is_valid(table["value"]))
    counts = table.group_by("value").aggregate([("side", "count_distinct")])
    return int(pc.sum(pc.greater(counts["side_count_distinct"], 1)).as_py() or 0)


def _strata_report(
    strata: Codes, labels: tuple[tuple[str, ...], ...], sides: Codes, splits: list[str]
) -> list[dict[str, Any]]:
    """Frames of each stratum in each split."""
    counts = np.bincount(strata * len(splits) + sides, minlength=len(labels) * len(splits)).reshape(
        len(labels), len(splits)
    )
    return [
        {"stratum": "/".join(label), **dict(zip(splits, row.tolist(), strict=True))}
        for label, row in zip(labels, counts, strict=True)
    ]
