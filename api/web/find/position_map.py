"""A map of where frames were taken: cells of a grid, darker where there are more frames."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from api.web.find.url_question import UrlQuestion
from query.statistics.histogram_report import Axis, Histogram

_WIDTH = 100.0


@dataclass(frozen=True)
class Cell:
    """A cell with frames: its place in the drawing, and the page that asks for them."""

    x: float
    y: float
    width: float
    height: float
    opacity: float
    url: str
    label: str


@dataclass(frozen=True)
class PositionMap:
    """A map, north up; a kilometre to the east is as long as one to the north."""

    height: float
    """Of the drawing, which is 100 wide."""
    cells: tuple[Cell, ...]
    """Those with frames."""
    label: str
    """The same in words."""


def map_of(histogram: Histogram, search: UrlQuestion) -> PositionMap | None:
    """The map of a histogram of longitude and latitude; None where no frame has a position."""
    east, north = histogram.axes
    columns, rows = _ranges(east), _ranges(north)
    counts = {
        (i, j): int(row[place_j])  # type: ignore[index]  # of two axes
        for i, (place_i, *_) in enumerate(columns)
        for row in (histogram.counts[place_i],)
        for j, (place_j, *_) in enumerate(rows)
        if row[place_j]  # type: ignore[index]
    }
    if not counts:
        return None
    (west, eastern), (south, northern) = _extent(columns), _extent(rows)
    wide = (eastern - west) * math.cos(math.radians((south + northern) / 2)) or 1e-9
    scale = _WIDTH / max(wide, (northern - south) / 2)
    squeeze = wide / ((eastern - west) or 1e-9)
    most = max(counts.values())
    cells = []
    for (i, j), count in counts.items():
        _, left, right = columns[i]
        _, low, high = rows[j]
        here = search.without(
            *(f"{end}.{axis.tag}" for end in ("min", "max") for axis in (east, north))
        )
        ends = ((east.tag, left, right), (north.tag, low, high))
        pairs = tuple(
            pair
            for tag, least, greatest in ends
            for pair in ((f"min.{tag}", f"{least:.7g}"), (f"max.{tag}", f"{greatest:.7g}"))
        )
        cells.append(
            Cell(
                (left - west) * squeeze * scale, (northern - high) * scale,
                max((right - left) * squeeze * scale, 0.8), max((high - low) * scale, 0.8),
                0.3 + 0.7 * math.log1p(count) / math.log1p(most),
                UrlQuestion(here.pairs + pairs).url,
                f"{count:,} {'frame' if count == 1 else 'frames'} at {(low + high) / 2:.5f} "
                f"degrees north, {(left + right) / 2:.5f} east",
            )
        )  # fmt: skip
    label = (
        f"Map of {sum(counts.values()):,} frames between {south:.5f} and {northern:.5f} degrees "
        f"north, {west:.5f} and {eastern:.5f} degrees east"
    )
    return PositionMap(max((northern - south) * scale, 4.0), tuple(cells), label)


def _ranges(axis: Axis) -> list[tuple[int, float, float]]:
    """Place of each bin of a range, and its ends."""
    indices = [index for index, bin_ in enumerate(axis.bins) if bin_.kind == "range"]
    return [
        (index, float(low), float(high))
        for index, (low, high) in zip(indices, pairwise(axis.edges), strict=True)
    ]


def _extent(ranges: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    return ranges[0][1], ranges[-1][2]
