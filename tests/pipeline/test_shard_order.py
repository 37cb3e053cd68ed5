"""Lists of rows that are balanced by bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runs.shard_order import shard_order, shard_rows

SIZES = st.lists(st.integers(1, 10_000_000), max_size=200)


@given(SIZES, st.integers(1, 12))
def test_shards_are_balanced_and_have_every_row_once(sizes: list[int], shards: int) -> None:
    """Rows ascend, numbers differ by one at most, bytes by the largest frame's at most."""
    of_rows = np.array(sizes, np.int64)
    lists = [shard_rows(of_rows, shard, shards) for shard in range(shards)]
    assert sorted(np.concatenate(lists).tolist()) == list(range(len(sizes)))
    assert all((np.diff(rows) > 0).all() for rows in lists)
    assert max(map(len, lists)) - min(map(len, lists)) <= 1
    held = [int(of_rows[rows].sum()) for rows in lists]
    assert max(held) - min(held) <= max(sizes, default=0)
    order = shard_order(of_rows, shards)
    for shard, rows in enumerate(lists):
        assert order[shard::shards].tolist() == rows.tolist()
