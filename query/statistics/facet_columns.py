"""Every facet's bins in memory: for each frame the position of its bin, packed for counting.

Columns of few bins are packed, as digits of one number below 65,536 (less where there are few
frames): counting three of them takes the time of one. At 1,000,000 frames of 51 tags the columns
take 40 MB, and a question of three ranges and two cameras 50 ms of CPU (benchmarks/facets.py).
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from query.statistics.bin_positions import Positions
from query.statistics.histogram_report import Axis

Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int64]

_MOST_CODES = 1 << 16

_FRAMES_A_CODE = 8
"""Counting a pack costs a step for each of its frames and for each of its codes: with as many codes
as frames the latter would take most of the time."""


@dataclass(frozen=True)
class Pack:
    """Some facets' positions as one number for each frame."""

    codes: npt.NDArray[np.uint16]
    """(frames,) uint16: the last facet's position is the lowest digit."""
    sizes: tuple[int, ...]
    """Bins of each facet."""
    totals: Counts
    """(product of sizes,) int64 [frames]: how many have each code."""

    @staticmethod
    def of(columns: Sequence[Positions], sizes: Sequence[int]) -> "Pack":
        """The facets' positions, each (frames,) uint8."""
        codes = columns[0].astype(np.uint16)
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            codes *= np.uint16(size)
            codes += column
        return Pack(codes, tuple(sizes), np.bincount(codes, minlength=int(np.prod(sizes))))

    def count(self, rows: "Rows") -> list[Counts]:
        """Frames in each bin of each facet, of those rows."""
        counts = np.bincount(self.codes[rows.fewer], minlength=len(self.totals))
        if rows.left_out:
            counts = self.totals - counts
        return self.by_facet(counts)

    def count_groups(self, groups: Sequence[npt.NDArray[np.intp]]) -> list[Counts]:
        """Frames in each bin of each facet by group, (groups, bins), of groups of rows' places."""
        counts = [np.bincount(self.codes[rows], minlength=len(self.totals)) for rows in groups]
        return self.by_facet(np.stack(counts))

    def by_facet(self, counts: Counts) -> list[Counts]:
        """The counts of each facet's bins, (..., bins), out of those of the codes, (..., codes)."""
        by_facet, rest = [], counts
        for size in self.sizes:
            of_both = rest.reshape(*counts.shape[:-1], size, -1)
            by_facet.append(of_both.sum(axis=-1))
            rest = of_both.sum(axis=-2)
        return by_facet


@dataclass(frozen=True)
class Rows:
    """Rows that are counted, by the smaller part of all rows: they themselves, or the others."""

    fewer: npt.NDArray[np.intp]
    """Their places, or the places of all others."""
    left_out: bool
    """It is the places of the others."""
    count: int

    @staticmethod
    def of(mask: Mask) -> "Rows":
        """The rows where the mask is true."""
        count = int(np.count_nonzero(mask))
        left_out = 2 * count > len(mask)
        return Rows(np.flatnonzero(~mask if left_out else mask), left_out, count)


@dataclass(frozen=True)
class RowGroups:
    """Rows that are counted in groups."""

    places: tuple[npt.NDArray[np.intp], ...]
    """Of each group its rows' places, in order."""

    @staticmethod
    def of(mask: Mask, group: npt.NDArray[np.uint8], groups: int) -> "RowGroups":
        """The rows where the mask is true.

        Args:
            mask: (frames,) bool.
            group: Each row's group, (frames,) uint8 below ``groups``.
        """
        rows = np.flatnonzero(mask)
        members = group[rows]
        ends = np.cumsum(np.bincount(members, minlength=groups))
        return RowGroups(tuple(np.split(rows[np.argsort(members, kind="stable")], ends[:-1])))

    @property
    def counts(self) -> Counts:
        """Rows of each group, (groups,) int64."""
        return np.array([len(rows) for rows in self.places], np.int64)


@dataclass(frozen=True)
class FacetColumns:
    """The bins of every facet."""

    axes: tuple[Axis, ...]
    frames: int
    packs: tuple[Pack, ...]
    """Their positions; the facets one after another."""

    @staticmethod
    def of(axes: Sequence[Axis], columns: Sequence[Positions]) -> "FacetColumns":
        """The facets' columns, packed.

        Args:
            columns: For each the positions of the frames' bins, (frames,) uint8.
        """
        frames = len(columns[0]) if columns else 0
        most_codes = min(_MOST_CODES, frames // _FRAMES_A_CODE)
        packs = [
            Pack.of(columns[first:last], [len(axis.bins) for axis in axes[first:last]])
            for first, last in _portions([len(axis.bins) for axis in axes], most_codes)
        ]
        return FacetColumns(tuple(axes), frames, tuple(packs))

    def count(self, mask: Mask, go_on: Callable[[], None]) -> list[Counts]:
        """Frames in each bin of each facet where the mask is true.

        Args:
            mask: (frames,) bool.
            go_on: Raises where nobody waits for them any more.
        """
        rows = Rows.of(mask)
        counts = []
        for pack in self.packs:
            go_on()
            counts += pack.count(rows)
        return counts

    def totals(self) -> list[Counts]:
        """Frames in each bin of each facet, of all."""
        return [counts for pack in self.packs for counts in pack.by_facet(pack.totals)]

    def count_one(self, facet: int, mask: Mask) -> Counts:
        """Frames in each bin of one facet where the mask is true."""
        pack, digit = self._pack_of(facet)
        return pack.count(Rows.of(mask))[digit]

    def count_by(self, by: "RowGroups", go_on: Callable[[], None]) -> list[Counts]:
        """Frames in each bin of each facet by group: (groups, bins) int64.

        Args:
            go_on: Raises where nobody waits for them any more.
        """
        counts = []
        for pack in self.packs:
            go_on()
            counts += pack.count_groups(by.places)
        return counts

    def count_one_by(self, facet: int, by: "RowGroups") -> Counts:
        """Frames in each bin of one facet by group: (groups, bins) int64."""
        pack, digit = self._pack_of(facet)
        return pack.count_groups(by.places)[digit]

    def in_bins(self, facet: int, bins: Collection[int]) -> Mask:
        """A mask of the frames that are in one of some bins of a facet."""
        pack, digit = self._pack_of(facet)
        later = int(np.prod(pack.sizes[digit + 1 :]))
        positions = np.arange(len(pack.totals)) // later % pack.sizes[digit]
        in_bins: Mask = np.isin(positions, list(bins))
        return in_bins[pack.codes]

    def _pack_of(self, facet: int) -> tuple[Pack, int]:
        """The pack of a facet, and its place in it."""
        for pack in self.packs:
            if facet < len(pack.sizes):
                return pack, facet
            facet -= len(pack.sizes)
        raise IndexError(facet)


def _portions(sizes: Iterable[int], most_codes: int) -> list[tuple[int, int]]:
    """First facet, and the one after the last, of each pack: as many as the codes hold, or one."""
    portions: list[tuple[int, int]] = []
    first, product, index = 0, 1, -1
    for index, size in enumerate(sizes):
        if index > first and product * size > most_codes:
            portions.append((first, index))
            first, product = index, 1
        product *= size
    if index >= first:
        portions.append((first, index + 1))
    return portions
