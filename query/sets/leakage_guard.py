"""Frames that must stay on one side: of one scene, of one drive, near in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.text.scene_name import SCENE
from query.frames.sampling import Hashes
from query.sets.strata import Codes

Seconds = npt.NDArray[np.float64]


FRAMES_PER_S = 30.0
"""Rate at which frame numbers rise within an A2D2 scene, to a few per cent."""

DRIVE = "drive"
"""A tag of this name, where the catalog has it, says which scenes are of one drive."""

_STAMP = f"^{SCENE}$"
_DATE = "%Y%m%d_%H%M%S"


def frame_times(scenes: pa.ChunkedArray, frame_numbers: pa.ChunkedArray) -> Seconds:
    """The time of each frame [s since 1970, the recording's clock]; NaN where names do not say.

    The scene's name says when it began, the frame's number how long after that.
    """
    encoded = _encoded(scenes)
    names = encoded.dictionary.cast(pa.string())
    stamped = pc.if_else(pc.match_substring_regex(names, _STAMP), names, None)
    began = pc.strptime(stamped, _DATE, "s", error_is_null=True).cast(pa.int64())
    start = np.append(pc.fill_null(began.cast(pa.float64()), np.nan).to_numpy(False), np.nan)
    of_frame = start[np.asarray(pc.fill_null(encoded.indices, len(names)))]
    numbers = pc.fill_null(frame_numbers.cast(pa.float64()), np.nan).to_numpy()
    return cast(Seconds, of_frame + numbers / FRAMES_PER_S)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    return encoded.chunk(0) if isinstance(encoded, pa.ChunkedArray) else encoded


def chains(times: Seconds, min_gap_s: float) -> Codes:
    """Number of the run of frames that each belongs to; between runs lie ``min_gap_s`` or more.

    Frames without a time are each a run of their own.
    """
    order = np.argsort(times, kind="stable")  # NaN comes last, and differs from everything
    with np.errstate(invalid="ignore"):
        begins = ~(np.diff(times[order], prepend=-np.inf) < min_gap_s)
    codes = np.empty(len(times), np.int64)
    codes[order] = np.cumsum(begins) - 1
    return codes


def joined_groups(groupings: Sequence[Codes]) -> Codes:
    """Number of the smallest group that shares no code of any grouping with another group."""
    of_frame = _combined(groupings)
    some = np.empty(int(of_frame.max(initial=-1)) + 1, np.int64)
    some[of_frame] = np.arange(len(of_frame))  # a frame of each combination of codes
    tuples = [_ranks(codes[some]).astype(np.int32) for codes in groupings]
    least = np.arange(len(some))  # of each combination: the first that is known to go with it
    while True:
        before = least
        for codes in tuples:
            of_code = np.full(int(codes.max(initial=-1)) + 1, len(some))
            np.minimum.at(of_code, codes, least)
            least = of_code[codes]
        np.minimum.at(least, before, least.copy())
        least = least[least]
        if (least == before).all():
            groups: Codes = _ranks(least).astype(np.int64)[of_frame]
            return groups


def _combined(groupings: Sequence[Codes]) -> Codes:
    """Number of the combination of codes that each frame has."""
    of_frame = np.zeros(len(groupings[0]), np.int64)
    for codes in groupings:
        dense = _ranks(codes)
        dense += of_frame * (int(dense.max(initial=0)) + 1)
        of_frame = _ranks(dense)
    return of_frame


def _ranks(codes: Codes) -> Codes:
    """The place of each code among all that there are, from 0; no code is below 0."""
    greatest = int(codes.max(initial=-1))
    if greatest >= 4 * len(codes):
        return np.unique(codes, return_inverse=True)[1]
    # Without an order of all: of 637,000 frames 0.3 s and 17 MB less.
    places = np.zeros(greatest + 1, np.int64)
    places[codes] = 1
    np.cumsum(places, out=places)
    places -= 1
    return places[codes]


def smallest_gap_s(times: Seconds, sides: Codes) -> float | None:
    """Time between the nearest two frames of different sides; None where there are none."""
    known = np.flatnonzero(~np.isnan(times))
    order = known[np.argsort(times[known], kind="stable")]
    differs = np.diff(sides[order]) != 0
    gaps = np.diff(times[order])[differs]
    return float(gaps.min()) if len(gaps) else None


@dataclass(frozen=True)
class LeakageGuard:
    """Frames of another set, and how far a new one must stay from them."""

    hashes: Hashes
    scenes: frozenset[str]
    drives: frozenset[str]
    times: Seconds
    """When they were taken [s]."""
    min_gap_s: float
    """Nothing nearer in time than this."""
    marks: frozenset[str] = frozenset()
    """The marks of those that are there more than once: see catalog.frames.duplicates."""

    def same(self, marks: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
        """Return which frames, by their marks, are the same as one of the set."""
        return _among(marks, self.marks)

    def near(
        self,
        hashes: Hashes,
        scenes: pa.ChunkedArray,
        drives: pa.ChunkedArray | None,
        times: Seconds,
    ) -> npt.NDArray[np.bool_]:
        """Return which frames are the same, of the same scene or drive, or near in time."""
        near = np.isin(hashes, self.hashes)
        near |= _among(scenes, self.scenes)
        if drives is not None:
            near |= _among(drives, self.drives)
        known = np.sort(self.times[~np.isnan(self.times)])
        if len(known):
            after = np.searchsorted(known, times)
            left = known[np.maximum(after - 1, 0)]
            right = known[np.minimum(after, len(known) - 1)]
            with np.errstate(invalid="ignore"):
                near |= np.minimum(np.abs(times - left), np.abs(right - times)) < self.min_gap_s
        return near


def _among(column: pa.ChunkedArray, names: frozenset[str]) -> npt.NDArray[np.bool_]:
    encoded = _encoded(column)
    values = [value in names for value in encoded.dictionary.cast(pa.string()).to_pylist()]
    belongs = np.array([*values, False])[np.asarray(pc.fill_null(encoded.indices, len(values)))]
    return cast(npt.NDArray[np.bool_], belongs)
