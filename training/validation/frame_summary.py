"""Summarises single frames for a report block by block: only a block of them is in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import BadFile
from training.validation.frame_pictures import SHOWN
from training.validation.shard_file import StoredShard

BLOCK_ROWS = 1 << 18
"""Rows of the split at once: 60 MB of scores. Each block reads every shard's scores again."""

_TABLES = 256
"""Tables of shards that are in memory before they are joined."""

_SHOWN = ("fkey", "row", "scene", "camera", "miou", "uncertainty", "accuracy", "shard")


@dataclass
class FrameSummary:
    """Count of a validation's frames, with the worst and the most uncertain of them."""

    frames: int = 0
    """Number of frames."""
    ignored_pixels: int = 0
    """Of all frames."""
    _worst: list[pa.Table] = field(default_factory=list)
    _unsure: list[pa.Table] = field(default_factory=list)

    def add(self, scores: pa.Table) -> None:
        """Add a block of `score_blocks`."""
        self.frames += len(scores)
        self.ignored_pixels += pc.sum(scores["ignored_pixels"]).as_py() or 0
        self._worst = [_extreme([*self._worst, scores], "miou", "ascending")]
        self._unsure = [_extreme([*self._unsure, scores], "uncertainty", "descending")]

    def worst(self) -> list[dict[str, Any]]:
        """The SHOWN frames with the least mean IoU, that first, each with the `shard` it is of."""
        return [row for table in self._worst for row in table.to_pylist()]

    def most_uncertain(self) -> list[dict[str, Any]]:
        """The SHOWN most uncertain frames, that first, likewise."""
        return [row for table in self._unsure for row in table.to_pylist()]


def score_blocks(shards: Sequence[StoredShard], block_rows: int = BLOCK_ROWS) -> Iterator[pa.Table]:
    """The scores of all frames in the split's order: FRAMES_SCHEMA, and of each its shard.

    Raises:
        BadFile: A shard is damaged, or two have the same frame.
    """
    for begin in range(0, shards[0].about.split_frames, block_rows):
        tables = []
        for number, shard in enumerate(shards):
            scores = shard.scores()
            rows = scores["row"].to_numpy()
            first, last = np.searchsorted(rows, (begin, begin + block_rows)).tolist()
            # A slice would keep the whole shard's scores in memory.
            in_block = scores.take(pa.array(range(first, last), pa.int64()))
            numbers = pa.array([number] * len(in_block), pa.int32())
            tables.append(in_block.append_column("shard", numbers))
            if len(tables) == _TABLES:
                tables = [_joined(tables)]
        block = _joined(tables)
        del tables
        rows = block["row"].to_numpy()
        order = np.argsort(rows, kind="stable")
        if len(rows) and not (np.diff(rows[order]) > 0).all():
            raise BadFile(
                "two shards have the same frame: they were divided by different releases; remove "
                "them and validate again",
                str(Path(shards[0].path).parent),
            )
        block = block.take(pa.array(order))
        yield block
        del block
        pa.default_memory_pool().release_unused()


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """One table of many: each would take 10 kB beside its values."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _extreme(tables: Sequence[pa.Table], name: str, order: str) -> pa.Table:
    """The frames at one end of a score, that end first; of equal ones the earlier."""
    table = pa.concat_tables([one.select(_SHOWN) for one in tables]).unify_dictionaries()
    known = table.filter(pc.is_valid(table[name]))
    if not len(known):  # of none, pyarrow 25 cannot say which are first
        return known
    first = pc.select_k_unstable(
        known, min(SHOWN, len(known)), [(name, order), ("row", "ascending")]
    )
    return known.take(first)
