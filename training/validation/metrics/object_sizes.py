"""Recall of objects by their size: connected pixels of one numbered colour.

A2D2 paints touching instances of a class in colours of their own ("Car 1" to "Car 4"). So connected
pixels (each with its four neighbours) of a numbered colour are one object, or the part of one that
is not hidden; classes without numbers, such as streets, have none. A prediction has no objects, and
so no IoU by size: what is told is which share of the objects' pixels has the right class, and how
many objects are found, which is to say by half of their pixels at least.

The borders are those of COCO (32 x 32 and 96 x 96 pixels), with one below, at the label's own size.
Source: Lin et al., "Microsoft COCO: Common Objects in Context", ECCV 2014, and its evaluation code.
"""

from collections.abc import Mapping
from typing import Any, Self

import numba as nb
import numpy as np

from ingest.labels.words import load64
from training.validation.metrics.metric import Int64, ScoredFrame, checked

SIZES = ("tiny", "small", "medium", "large")
BORDERS_PX = (16**2, 32**2, 96**2)
"""Pixels from which an object is of the next size."""

_RUNS_AT_FIRST = 4096
"""Runs that there is room for at first: a label of 1920x1208 pixels has some hundreds."""


class ObjectSizes:
    """Objects, those found, their pixels and those that are right, of each class and size."""

    def __init__(self, sums: Int64) -> None:
        self._sums = sums

    @classmethod
    def empty(cls, n_classes: int) -> Self:
        """The metric of no frame."""
        return cls(np.zeros((4, n_classes, len(SIZES)), np.int64))

    @classmethod
    def from_state(cls, state: Mapping[str, Int64], n_classes: int) -> Self:
        """The metric whose `state` this is."""
        return cls(checked(state, "sums", (4, n_classes, len(SIZES))))

    def update(self, frame: ScoredFrame) -> None:
        """Add a frame's objects; one whose colours are not known has none."""
        if frame.colours is None:
            return
        pair = frame.truth, frame.prediction
        objects, right = components(frame.colours, *pair, frame.numbered)
        classes = frame.numbered[objects[:, 0]]
        pixels = objects[:, 1]
        known = classes < self._sums.shape[1]
        size = np.searchsorted(BORDERS_PX, pixels, side="right")
        cell = (classes[known], size[known])
        for sums, values in zip(
            self._sums, (np.ones_like(pixels), 2 * right >= pixels, pixels, right), strict=True
        ):
            np.add.at(sums, cell, values[known])

    def merge(self, other: Self) -> None:
        """Add another's frames."""
        self._sums += other._sums

    def state(self) -> dict[str, Int64]:
        """All of it."""
        return {"sums": self._sums}

    def result(self) -> dict[str, Any]:
        """`sizes`, of all classes, and `per_class`, in the order of their ids; [] without objects.

        Of each size: `size`, `from_pixels`, `objects`, `found` (share of them), `pixels`, `recall`
        (share of these).
        """
        per_class = [_rows(self._sums[:, c]) for c in range(self._sums.shape[1])]
        return {"sizes": _rows(self._sums.sum(axis=1)), "per_class": per_class}


def _rows(sums: Int64) -> list[dict[str, Any]]:
    rows = zip(SIZES, (1, *BORDERS_PX), *sums.tolist(), strict=True)
    return [
        {
            "size": size,
            "from_pixels": least,
            "objects": objects,
            "found": detected / objects,
            "pixels": pixels,
            "recall": right / pixels,
        }
        for size, least, objects, detected, pixels, right in rows
        if objects
    ]


def components(colours: Any, truth: Any, prediction: Any, numbered: Any) -> tuple[Int64, Int64]:
    """The connected pixels of the colours that are numbered.

    Args:
        colours: (H, W) uint8 [colour's number].
        truth: (H, W) uint8 [class id].
        prediction: (H, W) uint8 [class id]; where it is the true one, a pixel is right.
        numbered: (256,) uint8 [class id] of each colour, 255 for one that has no objects.

    Returns:
        (n, 2) int64, of each component its colour and pixels; and (n,) int64, how many are right.
    """
    runs, parent = _runs(np.ascontiguousarray(colours), truth, prediction, numbered, _RUNS_AT_FIRST)
    if not len(runs):
        return np.empty((0, 2), np.int64), np.empty(0, np.int64)
    _, first, component = np.unique(parent, return_index=True, return_inverse=True)
    pixels = np.bincount(component, runs[:, 1]).astype(np.int64)
    right_pixels = np.bincount(component, runs[:, 2]).astype(np.int64)
    return np.column_stack((runs[first, 0], pixels)), right_pixels


@nb.njit(nogil=True, cache=True)
def _runs(colours, truth, prediction, numbered, room):  # type: ignore[no-untyped-def]
    """Runs of rows: colour, pixels, right ones; and of each the first run of its component."""
    height, width = colours.shape
    runs = np.zeros((room, 3), np.int64)
    begin = np.empty(room, np.int64)
    parent = np.arange(room)
    n = above = 0
    for y in range(height):
        first = n
        x = 0
        while x < width:
            colour, start = colours[y, x], x
            x = _run_end(colours[y], x)
            if numbered[colour] != 255:
                if n == len(begin):
                    runs = np.concatenate((runs, np.zeros_like(runs)))
                    begin = np.concatenate((begin, begin))
                    parent = np.concatenate((parent, np.arange(n, 2 * n)))
                hits = 0
                for at in range(start, x):
                    hits += truth[y, at] == prediction[y, at]
                runs[n, 0], runs[n, 1], runs[n, 2] = colour, x - start, hits
                begin[n] = start
                above = _touch(runs, begin, parent, n, above, first)
                n += 1
        above = first
    for run in range(n):
        parent[run] = _root(parent, run)
    return runs[:n], parent[:n]


@nb.njit(nogil=True, cache=True)
def _run_end(row, x):  # type: ignore[no-untyped-def]
    """Where the run of a colour ends that begins at a pixel: eight pixels are compared at once."""
    colour, width = row[x], len(row)
    eight = np.uint64(colour) * np.uint64(0x0101010101010101)
    x += 1
    while x + 8 <= width and load64(row, x) == eight:
        x += 8
    while x < width and row[x] == colour:
        x += 1
    return x


@nb.njit(nogil=True, cache=True)
def _touch(runs, begin, parent, n, above, end):  # type: ignore[no-untyped-def]
    """Join a run with those of the row above that it touches; from where the next one looks."""
    left, right = begin[n], begin[n] + runs[n, 1]
    while above < end and begin[above] + runs[above, 1] <= left:
        above += 1
    other = above
    while other < end and begin[other] < right:
        if runs[other, 0] == runs[n, 0]:
            _join(parent, n, other)
        other += 1
    return above


@nb.njit(nogil=True, cache=True)
def _root(parent, run):  # type: ignore[no-untyped-def]
    while parent[run] != run:
        parent[run] = parent[parent[run]]
        run = parent[run]
    return run


@nb.njit(nogil=True, cache=True)
def _join(parent, one, other):  # type: ignore[no-untyped-def]
    first, second = _root(parent, one), _root(parent, other)
    if first < second:
        parent[second] = first
    else:
        parent[first] = second
