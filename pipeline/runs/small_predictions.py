"""Small copies of what a model predicted, which its validation keeps: their size and place. A leaf.

The copies lie in the results of the validation's shards; an index beside its report says where.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.runs.size import Size

INDEX_FILE = "small_predictions.parquet"
"""The index, in the folder of a report."""

LONGEST_SIDE_PX = 480
"""Of a copy: half as much again as a picture of a gallery is wide."""

MOST_BYTES = 32 << 10
"""Of a copy: one that would be larger, of noise, has half the side, and so on."""

_HALVINGS = 4

INDEX_SCHEMA = pa.schema(
    [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("file", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("bytes", pa.int32(), nullable=False),
    ]
)


@dataclass(frozen=True)
class SmallPrediction:
    """The place of a frame's copy, a PNG whose palette indices are the model's class ids."""

    file: str
    """Name of the shard's result."""
    offset: int
    """Where it begins [bytes]."""
    size: int
    """Its length [bytes]."""


def small_sizes(height_px: int, width_px: int) -> list[Size]:
    """The sizes that the copy of a frame may have, the usual one first; the last has no limit."""
    longest = max(height_px, width_px)
    sides = [min(longest, LONGEST_SIDE_PX) >> n for n in range(_HALVINGS)]
    return [
        Size(max(1, round(height_px * side / longest)), max(1, round(width_px * side / longest)))
        for side in sides
    ]


def small_predictions(report: Path, fkeys: Collection[str]) -> dict[str, SmallPrediction]:
    """The copies of some frames, by fkey, as far as the validation kept them.

    Args:
        report: Folder of its report.
    """
    try:
        rows = pq.read_table(report / INDEX_FILE, filters=[("fkey", "in", [*fkeys])]).to_pylist()
    except (OSError, pa.ArrowException):
        return {}
    return {
        row["fkey"]: SmallPrediction(row["file"], row["offset"], row["bytes"])
        for row in rows
        if "/" not in row["file"]
    }
