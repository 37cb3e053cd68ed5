"""Positions, rows and readers: what a staging fetches next is what training reads next."""

import numpy as np
import pytest

from pipeline.example_order import examples
from pipeline.runs.shard_order import shard_order, shard_rows
from pipeline.staging.reading_order import NEVER, ReadingOrder


@pytest.mark.parametrize(("ranks", "batch_size", "begin"), [(1, 1, 0), (2, 3, 0), (3, 2, 11)])
def test_positions_are_what_training_reads(ranks: int, batch_size: int, begin: int) -> None:
    """Each rank's examples, one by one, over three epochs."""
    order = ReadingOrder(7, 5, batch_size, ranks, begin=begin)
    for rank in range(ranks):
        own = examples(7, 5, batch_size, rank=rank, ranks=ranks, begin=begin)
        for index, example in zip(range(21), own, strict=False):
            position = order.position(rank, index)
            assert order.turn(position) == (rank, index)
            assert (order.row(position), position) == (
                example.row,
                example.epoch * 7 + example.position,
            )


@pytest.mark.parametrize("here", [None, (1,), (0, 2)])
@pytest.mark.parametrize("begin", [0, 4, 11])
@pytest.mark.parametrize("end", [15, 27, 40, None])
@pytest.mark.parametrize("low", [0, 8, 9, 13])
def test_next_readings(here: tuple[int, ...] | None, begin: int, end: int | None, low: int) -> None:
    """Against a search: the first position of a row that a reader here has not read.

    Of a row that is not read before the end of the next epoch: NEVER where the job ends by then.
    """
    order = ReadingOrder(9, 3, 2, 3, here, begin=begin, end=end)
    read = [3, 1, 4]
    found = order.next_readings(np.arange(9), low, read)
    horizon = (low // 9 + 2) * 9
    last = NEVER if end is None else end
    for row in range(9):
        later = NEVER if last <= horizon + 9 else horizon + 9
        expected = next(
            (
                position
                for position in range(max(low, begin), horizon)
                if order.row(position) == row
                and order.is_here(position)
                and order.turn(position)[1] >= read[order.turn(position)[0]]
            ),
            later,
        )
        assert found[row] == (expected if expected < last else NEVER)


def test_a_validation_reads_once_in_the_order_of_the_split() -> None:
    """Shards take turns; what was read is never read again."""
    order = ReadingOrder(5, readers=2)
    assert [order.row(position) for position in range(order.last)] == [0, 1, 2, 3, 4]
    assert [order.turn(position)[0] for position in range(5)] == [0, 1, 0, 1, 0]
    found = order.next_readings(np.arange(5), 2, [1, 1])
    assert found.tolist() == [NEVER, NEVER, 2, 3, 4]


def test_a_validation_is_read_as_its_frames_are_dealt() -> None:
    """Each shard reads the rows that are dealt to it, one after the other."""
    sizes = np.array([5, 90, 7, 80, 6, 85, 4])
    order = ReadingOrder(7, readers=3, dealt=shard_order(sizes, 3))
    for shard in range(3):
        rows = shard_rows(sizes, shard, 3).tolist()
        assert [order.row(order.position(shard, n)) for n in range(len(rows))] == rows
    assert order.next_readings(np.array([1, 3, 5]), 0, [0, 0, 0]).tolist() == [
        shard_order(sizes, 3).tolist().index(row) for row in (1, 3, 5)
    ]
