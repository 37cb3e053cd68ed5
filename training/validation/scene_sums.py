"""Sums of the metrics over the frames of each scene, which intervals are drawn from.

Of 38 classes a scene has 800 sums, and most of objects' sizes are zero: a shard's file has the
others.
"""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from training.validation.metrics.metric import Int64, Metric
from training.validation.metrics.table import DRAWN
from training.validation.scores import Float64

SceneSums = Mapping[str, Int64]
"""Of each scene (L,) int64, the states of the metrics of DRAWN one behind the other."""

_SCHEMA = pa.schema([("scene", pa.string()), ("place", pa.int32()), ("sum", pa.int64())])


def sums_of(metrics: Mapping[str, Metric]) -> Int64:
    """(L,) int64 of the metrics of DRAWN among these."""
    states = [metrics[name].state() for name in DRAWN]
    return np.concatenate([array.ravel() for state in states for array in state.values()])


def states_of(sums: Float64, n_classes: int) -> dict[str, dict[str, Float64]]:
    """The states of the metrics of DRAWN, (..., *shape) each, of sums (..., L)."""
    states: dict[str, dict[str, Float64]] = {name: {} for name in DRAWN}
    at = 0
    for name, key, shape in _layout(n_classes):
        size = math.prod(shape)
        states[name][key] = sums[..., at : at + size].reshape(*sums.shape[:-1], *shape)
        at += size
    return states


def added(parts: Iterable[SceneSums]) -> SceneSums:
    """The sums of several parts of a validation, by scene."""
    total: dict[str, Int64] = {}
    for part in parts:
        for scene, sums in part.items():
            total[scene] = total[scene] + sums if scene in total else sums
    return total


def as_array(sums: SceneSums, scenes: Iterable[str], n_classes: int) -> Int64:
    """(S, L) int64 of these scenes, in their order; zeros for one without sums."""
    nothing = np.zeros(_length(n_classes), np.int64)
    rows = [sums.get(scene, nothing) for scene in scenes]
    return np.array(rows, np.int64).reshape(-1, len(nothing))


def as_table(sums: SceneSums) -> pa.Table:
    """The sums that are not zero, a row each."""
    rows: dict[str, list[Any]] = {"scene": [], "place": [], "sum": []}
    for scene, its in sorted(sums.items()):
        place = np.flatnonzero(its)
        rows["scene"] += [scene] * len(place)
        rows["place"] += place.tolist()
        rows["sum"] += its[place].tolist()
    return pa.table(rows, _SCHEMA)


def of_table(table: pa.Table, n_classes: int) -> SceneSums:
    """The sums of such a table.

    Raises:
        ValueError: A place is none.
    """
    names = table["scene"].combine_chunks().dictionary_encode()
    size, place = _length(n_classes), table["place"].to_numpy()
    if len(place) and not 0 <= place.min() <= place.max() < size:
        raise ValueError("a sum of a scene is of no metric")
    sums = np.zeros((len(names.dictionary), size), np.int64)
    sums[names.indices.to_numpy(), place] = table["sum"].to_numpy()
    return dict(zip(names.dictionary.to_pylist(), sums, strict=True))


@cache
def _layout(n_classes: int) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Metric, name and shape of the arrays, in their order."""
    return tuple(
        (name, key, array.shape)
        for name, metric in DRAWN.items()
        for key, array in metric.empty(n_classes).state().items()
    )


@cache
def _length(n_classes: int) -> int:
    return sum(math.prod(shape) for _, _, shape in _layout(n_classes))
