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

from training.validation.metrics.metric import Float64, Int64, ScoredFrame, UInt8, checked, share
from training.validation.pair_runs import run_begins

SIZES = ("tiny", "small", "medium", "large")
BORDERS_PX = (16**2, 32**2, 96**2)
"""Pixels from which an object is of the next size."""


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
        objects, right = components(frame.colours, frame.prediction, frame.numbered)
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

    @staticmethod
    def drawn(sums: Mapping[str, Float64], whole: Mapping[str, Float64]) -> dict[str, Float64]:  # noqa: ARG004
        """`found` and `recall` of each size (D, 4), and of each class, too (D, C, 4)."""
        objects, detected, pixels, right = np.moveaxis(sums["sums"], -3, 0)
        return {
            "found": share(detected.sum(axis=-2), objects.sum(axis=-2)),
            "recall": share(right.sum(axis=-2), pixels.sum(axis=-2)),
            "class_found": share(detected, objects),
            "class_recall": share(right, pixels),
        }


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


def components(colours: UInt8, prediction: UInt8, numbered: UInt8) -> tuple[Int64, Int64]:
    """The connected pixels of the colours that are numbered.

    Args:
        colours: (H, W) uint8 [colour's number].
        prediction: (H, W) uint8 [class id]; where it is that of the colour, a pixel is right.
        numbered: (256,) uint8 [class id] of each colour, 255 for one that has no objects.

    Returns:
        (n, 2) int64, of each component its colour and pixels; and (n,) int64, how many are right.
    """
    begins = run_begins(colours, prediction)
    flat_colours, flat_prediction = (
        np.ascontiguousarray(ids).reshape(-1) for ids in (colours, prediction)
    )
    sums = _components(flat_colours, flat_prediction, numbered, begins, colours.shape[1])
    return sums[:, :2], sums[:, 2]


@nb.njit(nogil=True, cache=True)
def _components(colours, prediction, numbered, begins, width):  # type: ignore[no-untyped-def]
    """Colour, pixels and right ones of each component, in the order of their first pixels."""
    runs, begin, end = _colour_runs(colours, prediction, numbered, begins, width)
    n = len(runs)
    parent = np.arange(n)
    above = 0
    for run in range(n):
        # Those of the row above that it touches have pixels a width before its own.
        first, last = begin[run] - width, end[run] - width
        while end[above] <= first:
            above += 1
        other = above
        while begin[other] < last:
            if runs[other, 0] == runs[run, 0]:
                _join(parent, run, other)
            other += 1
    many = 0
    for run in range(n):
        root = _root(parent, run)
        if root == run:  # the first of its component
            runs[many] = runs[run]
            begin[run] = many
            many += 1
        else:
            runs[begin[root], 1:] += runs[run, 1:]
    return runs[:many]


@nb.njit(nogil=True, cache=True)
def _colour_runs(colours, prediction, numbered, begins, width):  # type: ignore[no-untyped-def]
    """Colour, pixels and right ones of the runs of numbered colours; where each begins and ends."""
    runs = np.empty((len(begins), 3), np.int64)
    begin, end = np.empty(len(begins), np.int64), np.empty(len(begins), np.int64)
    n = 0
    for pair in range(len(begins) - 1):
        at, until = begins[pair], begins[pair + 1]
        colour = colours[at]
        if numbered[colour] == 255:
            continue
        # Of one colour and two predictions are two runs of pairs.
        if n == 0 or end[n - 1] != at or runs[n - 1, 0] != colour or at % width == 0:
            runs[n, 0], runs[n, 1], runs[n, 2] = colour, 0, 0
            begin[n] = at
            n += 1
        end[n - 1] = until
        runs[n - 1, 1] += until - at
        if prediction[at] == numbered[colour]:
            runs[n - 1, 2] += until - at
    return runs[:n], begin[:n], end[:n]


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
