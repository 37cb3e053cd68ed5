"""Which frames each worker sees when, and at what learning rate."""

import doctest
from itertools import islice

import pytest

from training import example_order, learning_rate
from training.example_order import examples, own_rows
from training.learning_rate import learning_rate_at


@pytest.mark.parametrize("frames", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_workers_share_all_frames(frames: int, size: int) -> None:
    """Proves every frame belongs to exactly one worker, and no worker is without frames."""
    shares = [own_rows(frames, rank, size) for rank in range(size)]
    assert all(shares)
    owned = sorted(row for share in shares[: min(size, frames)] for row in share)
    assert owned == list(range(frames))
    assert all(0 <= row < frames for share in shares for row in share)


def test_a_worker_without_frames_repeats_another_s() -> None:
    """Proves the workers beyond the frames take different ones of them, in turn."""
    assert [own_rows(2, rank, 5) for rank in range(5)] == [[0], [1], [0], [1], [0]]


def test_workers_do_not_shuffle_alike() -> None:
    """Proves the rank is part of what order and mirroring are drawn by."""
    rows = list(range(40))
    mine, other = (list(islice(examples(rows, 1, rank), 40)) for rank in (0, 1))
    assert [row for row, _ in mine] != [row for row, _ in other]
    by_row, by_row_there = dict(mine), dict(other)
    assert [by_row[row] for row in rows] != [by_row_there[row] for row in rows]


def test_an_epoch_is_every_frame_once() -> None:
    """Proves a worker goes through all its frames before it repeats one, in changing order."""
    rows = own_rows(11, 1, 2)
    stream = [row for row, _ in islice(examples(rows, seed=3, rank=1), 3 * len(rows))]
    epochs = [stream[i : i + len(rows)] for i in range(0, len(stream), len(rows))]
    assert all(sorted(epoch) == rows for epoch in epochs)
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("skip", [0, 1, 4, 5, 13])
def test_a_run_goes_on_where_it_stopped(skip: int) -> None:
    """Proves skipped examples leave the rest of the order as it was, mirroring included."""
    rows = [0, 2, 4, 6, 8]
    whole = list(islice(examples(rows, seed=1, rank=0), 30))
    rest = list(islice(examples(rows, seed=1, rank=0, skip=skip), 30 - skip))
    assert rest == whole[skip:]
    assert {mirrored for _, mirrored in whole} == {True, False}


def test_learning_rate_rises_then_falls() -> None:
    """Proves warm-up to the rate times the workers, then a fall to a fiftieth of it."""
    rates = [learning_rate_at(step, 200, 0.001, workers=4) for step in range(1, 201)]
    peak = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.004)
    assert peak == 9
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert rates[-1] == pytest.approx(0.02 * 0.004)


def test_a_single_step_has_a_learning_rate() -> None:
    """Proves the shortest run does not divide by zero."""
    assert learning_rate_at(1, 1, 0.001, 1) == pytest.approx(0.001)


@pytest.mark.parametrize("module", [example_order, learning_rate])
def test_docstring_examples(module: object) -> None:
    """Proves the examples in the docstrings say what happens."""
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted
    assert not result.failed
