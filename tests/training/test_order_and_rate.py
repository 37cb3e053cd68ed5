"""Which frames each worker sees when, and at what learning rate."""

import doctest
from itertools import islice

import pytest

from framesift.data.epoch_order import epoch_order
from pipeline import example_order
from pipeline.example_order import Example, examples
from training.input.augmentation import is_mirrored
from training.network import learning_rate
from training.network.learning_rate import learning_rate_at


def read_by_all(
    frames: int, ranks: int, steps: int, batch_size: int = 2, begin: int = 0
) -> list[Example]:
    """What all ranks read in so many steps, in the order of the steps and their ranks."""
    orders = [
        examples(frames, 3, batch_size, rank=rank, ranks=ranks, begin=begin)
        for rank in range(ranks)
    ]
    return [e for _ in range(steps) for order in orders for e in islice(order, batch_size)]


@pytest.mark.parametrize("frames", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_each_epoch_is_every_frame_once_over_all_ranks(frames: int, ranks: int) -> None:
    """Proves it for numbers of frames that steps do not divide, and for fewer frames than ranks."""
    read = read_by_all(frames, ranks, steps=2 * frames)
    for epoch in range(3):
        rows = [example.row for example in read if example.epoch == epoch]
        assert rows == epoch_order(frames, 3, epoch).tolist()
        assert sorted(rows) == list(range(frames))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    """Proves both are part of what the order is drawn by."""
    orders = [epoch_order(40, seed, epoch).tolist() for seed in (1, 2) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("ranks_then", [1, 2, 5])
def test_a_run_goes_on_with_another_number_of_ranks(ranks: int, ranks_then: int) -> None:
    """Proves the frames of the epoch that were not read come next, each once, and none else."""
    frames, steps = 23, 3
    before = read_by_all(frames, ranks, steps)
    after = read_by_all(frames, ranks_then, frames, begin=len(before))
    rows = [example.row for example in before + after if example.epoch == 0]
    assert sorted(rows) == list(range(frames))
    alone = read_by_all(frames, 1, frames)
    whole = (before + after)[: len(alone)]
    assert whole == alone
    assert [is_mirrored(e, 3) for e in whole] == [is_mirrored(e, 3) for e in alone]
    assert {is_mirrored(e, 3) for e in alone} == {True, False}


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
