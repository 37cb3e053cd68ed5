"""What must stay on one side."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from query.sets.leakage_guard import (
    LeakageGuard,
    Seconds,
    chains,
    frame_times,
    joined_groups,
    smallest_gap_s,
)


def _times(scenes: Sequence[str | None], numbers: Sequence[int | None]) -> Seconds:
    columns = pa.table({"scene": pa.array(scenes, pa.string()), "n": pa.array(numbers, pa.int32())})
    return frame_times(columns["scene"], columns["n"])


def test_times_are_read_off_names() -> None:
    """The scene's start and 30 frames a second; unknown where the scene is called otherwise."""
    one, later, other = _times(["20180807_145028"] * 2 + ["20180807_145038"], [30, 60, 0])
    assert (later - one, other - one) == (1.0, 9.0)
    assert np.isnan(
        _times(["city", None, "20180807_145028", "20189907_145028"], [1, 1, None, 1])
    ).all()


@given(st.lists(st.none() | st.integers(0, 60), max_size=40), st.integers(0, 9))
def test_chains(seconds: list[int | None], gap: int) -> None:
    """Frames nearer than the gap share a run; those of different runs are at least so far apart."""
    times = np.array([np.nan if second is None else second for second in seconds], float)
    groups = chains(times, gap)
    for one in range(len(times)):
        for other in range(one):
            if abs(times[one] - times[other]) < gap:
                assert groups[one] == groups[other]
            if np.isnan(times[one]):
                assert groups[one] != groups[other]
    order = np.argsort(times[~np.isnan(times)])
    runs = groups[~np.isnan(times)][order]
    steps = np.diff(times[~np.isnan(times)][order])
    assert ((np.diff(runs) == 0) == (steps < gap)).all()


_CODES = st.integers(1, 5).flatmap(
    lambda groupings: st.lists(st.tuples(*[st.integers(0, 8)] * groupings), min_size=1, max_size=30)
)


@given(_CODES)
@example([(0, 0, 5), (0, 0, 6), (1, 1, 5), (1, 1, 7)])
def test_held_together(frames: list[tuple[int, ...]]) -> None:
    """The finest groups that part no code of any of five groupings: against spreading labels."""
    groupings = [np.array(codes) for codes in zip(*frames, strict=True)]
    groups = joined_groups(groupings)
    labels = np.arange(len(frames))
    for _ in frames:
        for codes in groupings:
            for code in set(codes.tolist()):
                labels[codes == code] = labels[codes == code].min()
    same = labels[:, None] == labels[None, :]
    assert ((groups[:, None] == groups[None, :]) == same).all()


def test_smallest_gap() -> None:
    """Between frames of different sides only; unknown times play no part."""
    times = np.array([0.0, 1.0, 5.0, 7.0, np.nan])
    assert smallest_gap_s(times, np.array([0, 0, 1, 1, 0])) == 4.0
    assert smallest_gap_s(times, np.array([0, 0, 0, 0, 1])) is None


def test_leakage_guard() -> None:
    """The same frame, its scene, its drive, and what is near in time."""
    away = LeakageGuard(
        np.array([7], np.uint64), frozenset({"a"}), frozenset({"d1"}), np.array([100.0]), 10.0
    )
    scenes = pa.chunked_array([["b", "a", "b", "b", None, "b"]])
    drives = pa.chunked_array([[None, None, "d1", "d2", None, None]])
    names = np.array([7, 1, 2, 3, 4, 5], np.uint64)
    times = np.array([500.0, np.nan, np.nan, 109.9, np.nan, 110.0])
    assert away.near(names, scenes, drives, times).tolist() == [True] * 4 + [False] * 2


_MOMENTS = st.lists(st.none() | st.integers(0, 60), max_size=12)


@given(_MOMENTS, _MOMENTS, st.integers(0, 9))
@example([5, 105], [100, 0], 10)
def test_leakage_guard_looks_to_both_sides_in_time(
    seconds: list[int | None], reference_s: list[int | None], gap: int
) -> None:
    """Near is what lies nearer than the gap to any kept frame, before it or after it."""
    times, kept_times = (
        np.array([np.nan if second is None else second for second in seconds_or_none], float)
        for seconds_or_none in (seconds, reference_s)
    )
    away = LeakageGuard(np.array([], np.uint64), frozenset(), frozenset(), kept_times, gap)
    scenes = pa.chunked_array([pa.nulls(len(times), pa.string())])
    near = away.near(np.arange(len(times), dtype=np.uint64), scenes, None, times)
    assert near.tolist() == [any(abs(one - other) < gap for other in kept_times) for one in times]
