"""Strata: frames divided by a column's values, or by bins of a number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput
from query.sets.stratifier import Stratifier

Codes = npt.NDArray[np.int64]

MISSING = "none"
"""Label of frames that have no value."""

ABSENT, PRESENT = "absent", "present"
"""Labels of a class without edges."""

MOST_VALUES = 100_000
"""A number with more values than these needs bins."""

_COUNTED = 10_000_000
"""So many combinations are counted in an array; of more, those that occur are sorted."""


@dataclass(frozen=True)
class Strata:
    """The stratum of each frame."""

    codes: Codes
    """Position of each frame's stratum in ``labels``."""
    labels: tuple[tuple[str, ...], ...]
    """The strata that have frames, each a label per stratifier, in an order that does not depend on
    that of the frames.
    """

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Frames of each stratum."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64)


def strata_of(
    rows: pa.Table, stratifiers: Sequence[Stratifier], classes: Mapping[str, str]
) -> Strata:
    """The stratum of every row; one stratum for all where there is no stratifier.

    Args:
        rows: One row per frame, with the stratifiers' columns.
        classes: The tags of classes and class groups: without edges they are divided by presence.
    """
    if not stratifiers:
        return Strata(np.zeros(rows.num_rows, np.int64), ((),) if rows.num_rows else ())
    return reduce(_joined, (one_stratum(rows, each, classes) for each in stratifiers))


def one_stratum(rows: pa.Table, stratifier: Stratifier, classes: Mapping[str, str]) -> Strata:
    """The strata of one stratifier: see strata_of."""
    column = rows[stratifier.tag]
    by_presence = not stratifier.edges and stratifier.tag in classes
    edges = (1.0,) if by_presence else stratifier.edges
    if not edges:
        return _by_value(column, stratifier)
    if not _is_number(column.type):
        raise InvalidInput(f"stratum '{stratifier.to_text()}': {stratifier.tag} is no number")
    absent = np.asarray(column.is_null())
    values = np.asarray(pc.fill_null(column, 0)).astype(np.float64, copy=False)
    bins = np.searchsorted(np.asarray(edges), values, side="right")
    bins[absent] = len(edges) + 1
    labels = [ABSENT, PRESENT] if by_presence else bin_labels(edges)
    return _compact(bins.astype(np.int64), [(label,) for label in (*labels, MISSING)])


def bin_labels(edges: Sequence[float]) -> list[str]:
    """Labels of the bins: ":0", "0:1000" (from 0 to below 1000), "1000:"."""
    ends = ["", *(f"{edge:.12g}" for edge in edges), ""]
    return [f"{low}:{high}" for low, high in pairwise(ends)]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _by_value(column: pa.ChunkedArray, stratifier: Stratifier) -> Strata:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([]).dictionary_encode()
    values = encoded.dictionary.to_pylist()
    if len(values) > MOST_VALUES:
        raise InvalidInput(
            f"stratum '{stratifier.to_text()}': it has {len(values):,} values; give edges of bins, "
            f"such as {stratifier.tag}:0,10,100"
        )
    labels = [_label(value) for value in values]
    rank = np.argsort(np.argsort(np.array(labels, dtype=np.str_), kind="stable"), kind="stable")
    rank = np.append(rank, len(labels)).astype(np.int64)
    codes = rank[np.asarray(pc.fill_null(encoded.indices, len(labels)))]
    return _compact(codes, [(label,) for label in (*sorted(labels), MISSING)])


def _label(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _joined(left: Strata, right: Strata) -> Strata:
    width = len(right.labels)
    codes = left.codes * width + right.codes
    if len(left.labels) * width <= _COUNTED:
        present, codes = _dense(codes, len(left.labels) * width)
    else:
        present, codes = np.unique(codes, return_inverse=True)
    labels = tuple(
        (*left.labels[code // width], *right.labels[code % width]) for code in present.tolist()
    )
    return Strata(codes.astype(np.int64, copy=False), labels)


def _dense(codes: Codes, number: int) -> tuple[Codes, Codes]:
    """The codes below ``number`` that occur, and every code as its position among them."""
    present = np.flatnonzero(np.bincount(codes, minlength=number))
    if len(present) and present[-1] == len(present) - 1:
        return present, codes  # they have no gaps
    index = np.zeros(number, np.int64)
    index[present] = np.arange(len(present))
    return present, index[codes]


def _compact(codes: Codes, labels: Sequence[tuple[str, ...]]) -> Strata:
    """Without the strata that have no frame."""
    present, dense = _dense(codes, len(labels))
    return Strata(dense, tuple(labels[code] for code in present.tolist()))
