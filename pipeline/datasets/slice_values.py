"""Values of tags that divide a split into slices; a validation scores each slice by itself.

A tag with few values is divided by its values; a number with many into four ranges with as many
frames each. Frames without a value are a part, too: "unknown".
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput
from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.derive import described
from pipeline.datasets.stores import Stores
from pipeline.manifest import Manifest
from query.frames.sampling import hashes_of

ALL = "all"
"""Every tag with few values."""

MOST_TAGS = 32
UNKNOWN = "unknown"

_FEW = 12
_RANGES = 4
_TO = " to "


def slice_values(stores: Stores, manifest: Manifest, split: str, names: Sequence[str]) -> pa.Table:
    """The part that each frame of a split is in, by each tag.

    Args:
        names: Of tags; ALL for each that has few values in this split, more than one and fewer
            than frames.

    Returns:
        A column of text for each tag, a row for each frame in the split's order.

    Raises:
        InvalidInput: They are too many.
    """
    rows = manifest.split(split).frames
    classes = tags_of(manifest)
    hashes = hashes_of(rows["fkey"].to_pylist())
    named = [name for name in dict.fromkeys(names) if name != ALL]
    if len(named) > MOST_TAGS:
        raise InvalidInput(f"slices: {len(named)} tags; expected at most {MOST_TAGS}")
    columns = [*named]
    if ALL in names:
        with stores.catalog.reading() as snapshot:
            columns += [tag for tag in snapshot.tags if tag not in (*named, *classes)]
    # Tags come after the dataset: they are those of now.
    values = described(stores, rows, classes, hashes, None, columns)
    parts = {name: _parts(values[name]) for name in named}
    for name in columns[len(named) :]:
        known = values[name].drop_null()
        distinct = pc.unique(known)
        # As many values as frames, such as names of files, divide nothing.
        is_few = 2 <= len(distinct) <= _FEW and len(distinct) < len(known)
        if is_few and len(parts) < MOST_TAGS:
            parts[name] = _parts(values[name])
    return pa.table(parts)


def known_slices(column: pa.ChunkedArray, names: Collection[str]) -> list[str | None]:
    """The slice of these that each row is in, as `slice_values` named them; None for none."""
    ranges = {
        name: (float(ends[0]), float(ends[1]))
        for name in names
        if len(ends := name.split(_TO)) == 2 and all(map(_is_number, ends))
    }
    number = column.type if ranges else pa.null()
    values = column.to_pylist() if _is_numeric(number) else []
    slices: list[str | None] = []
    for row, text in enumerate(_texts(column).to_pylist()):
        name = text if text in names else None
        if name is None and values and values[row] is not None:
            inside = (one for one, (low, high) in ranges.items() if low <= values[row] <= high)
            name = next(inside, None)
        slices.append(name)
    return slices


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """The values as names of slices."""
    column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.fill_null(pc.cast(column, pa.string()), UNKNOWN)


def _parts(column: pa.ChunkedArray) -> pa.Array:
    """The part of each row, as text."""
    if _is_numeric(column.type) and len(pc.unique(column.drop_null())) > _FEW:
        return _ranges(pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False))
    return _texts(column)


def _ranges(values: npt.NDArray[np.float64]) -> pa.Array:
    known = np.isfinite(values)
    edges = np.unique(np.quantile(values[known], np.linspace(0, 1, _RANGES + 1)))
    range_numbers = np.clip(
        np.searchsorted(edges, values, side="right") - 1, 0, max(len(edges) - 2, 0)
    )
    ends: list[Any] = [f"{edge:.4g}" for edge in edges.tolist()]
    names = [f"{low}{_TO}{high}" for low, high in pairwise(ends)] or ends
    texts = np.array([*names, UNKNOWN], dtype=object)
    return pa.array(texts[np.where(known, range_numbers, len(names))], pa.string())
