"""Frames that cover what is lacking: greedy as computed by trying every frame, and its limits."""

import numpy as np
import pytest

from query.sets.lacking import NEW_AFTER_S, Offered, Reals, cover_lacking


def offered(frames: int, seed: int) -> Offered:
    """Frames of four scenes by two cameras, with three classes, some of them empty."""
    random = np.random.default_rng(seed)
    amounts = random.gamma(1.0, 5.0, (frames, 3)) * (random.random((frames, 3)) < 0.6)
    scenes, cameras = random.integers(0, 4, frames), random.integers(0, 2, frames)
    seconds = np.where(random.random(frames) < 0.1, np.nan, random.random(frames) * 30)
    return Offered(
        amounts, 0.5 + random.random(frames), scenes * 2 + cameras, seconds, scenes,
        random.permutation(frames).astype(np.uint64),
    )  # fmt: skip


def tried_one_by_one(of: Offered, weights: Reals, had: Reals, count: int) -> list[int]:
    """The greedy choice without any shortcut."""
    amounts = of.amounts * of.worth[:, None]
    usual = np.array([column[column > 0].mean() for column in amounts.T])
    have, taken = had / usual, list[int]()
    while len(taken) < count:
        gains = []
        for frame in range(len(amounts)):
            beside = [one for one in taken if of.views[one] == of.views[frame]]
            apart = [abs(of.seconds[one] - of.seconds[frame]) for one in beside]
            nearest = min((one for one in apart if not np.isnan(one)), default=np.inf)
            new = amounts[frame] / usual * (1 - np.exp(-nearest / NEW_AFTER_S))
            gains.append(-np.inf if frame in taken else np.log1p(new / (1 + have)) @ weights)
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        beside = [one for one in taken if of.views[one] == of.views[best]]
        apart = [abs(of.seconds[one] - of.seconds[best]) for one in beside]
        nearest = min((one for one in apart if not np.isnan(one)), default=np.inf)
        have = have + amounts[best] / usual * (1 - np.exp(-nearest / NEW_AFTER_S))
        taken.append(best)
    return taken


@pytest.mark.parametrize("seed", range(5))
def test_the_greedy_choice_is_that_of_trying_every_frame(seed: int) -> None:
    """With what is there already, weights, worth and frames near in time; gains only fall."""
    frames, weights, had = offered(60, seed), np.array([1.0, 0.3, 0.01]), np.array([0.0, 40.0, 9.0])
    covered = cover_lacking(frames, weights, had, 20)
    assert covered.positions.tolist() == tried_one_by_one(frames, weights, had, 20)
    assert (np.diff(covered.gains) <= 1e-12).all()
    assert (covered.gains > 0).all()


def test_what_adds_nothing_is_not_taken() -> None:
    """Frames without a class of weight, and twins of one that was taken; scenes have a limit."""
    seconds, views = np.array([0.0, 0.0, 9.0, 30.0, 0.0]), np.array([0, 0, 0, 0, 1])
    amounts = np.array([[4.0, 0], [4, 0], [4, 0], [0, 5], [2, 0]])
    frames = Offered(amounts, np.ones(5), views, seconds, views, np.arange(5, dtype=np.uint64))
    weights, none = np.array([1.0, 0.0]), np.zeros(2)
    assert cover_lacking(frames, weights, none, 5).positions.tolist() == [0, 2, 4]
    assert cover_lacking(frames, weights, none, 5, per_scene=1).positions.tolist() == [0, 4]
    assert cover_lacking(frames, weights, none, 1).positions.tolist() == [0]
    assert cover_lacking(frames, none, none, 5).positions.tolist() == []
