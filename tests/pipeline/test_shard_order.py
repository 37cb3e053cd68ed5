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


def test_the_largest_frame_goes_to_the_shard_that_has_least() -> None:
    """By hand: of each pair, the larger to the lighter; equal ones in the order of their rows."""
    sizes = np.array([1, 9, 2, 8, 3, 7])
    assert [shard_rows(sizes, n, 2).tolist() for n in range(2)] == [[1, 2, 4], [0, 3, 5]]
    assert [shard_rows(np.full(5, 4), n, 2).tolist() for n in range(2)] == [[0, 2, 4], [1, 3]]
    sizes = np.array([10, 1, 1, 9, 1, 8])
    assert [shard_rows(sizes, n, 3).tolist() for n in range(3)] == [[0, 4], [2, 3], [1, 5]]
