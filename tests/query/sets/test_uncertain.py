"""The least certain frames, unlike each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from catalog.store import CatalogStore
from query.frames.sampling import hashes_of
from query.question.question import Question
from query.sets.draw import Frames, draw_set
from query.sets.methods import Uncertain
from query.sets.uncertain import most_uncertain, spread_out, standardised
from tests.query.catalogs import DrawnFrame, class_names
from tests.query.sets.test_stratified import hashes


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(1, 70),
    st.none() | st.integers(1, 5),
    st.integers(0, 4),
)
def test_the_highest_scores_within_each_scenes_limit(
    frames: list[tuple[int, int]], count: int, per_scene: int | None, seed: int
) -> None:
    """No frame that is left out scores higher than one chosen, unless its scene is full."""
    scores = np.array([score for score, _ in frames], float)
    scores[scores == 5] = np.nan
    scenes = np.array([scene for _, scene in frames])
    chosen = most_uncertain(scores, scenes, hashes(len(frames)), count, per_scene, seed)
    per_scene_counts = np.bincount(scenes[chosen], minlength=4)
    assert len(chosen) <= count
    assert per_scene is None or per_scene_counts.max(initial=0) <= per_scene
    assert not np.isnan(scores[chosen]).any()
    assert (np.diff(scores[chosen]) <= 0).all()
    left = set(np.flatnonzero(~np.isnan(scores)).tolist()) - set(chosen.tolist())
    for frame in left:
        full = per_scene is not None and per_scene_counts[scenes[frame]] == per_scene
        assert full or (len(chosen) == count and scores[frame] <= scores[chosen].min())


@given(st.permutations(range(30)), st.integers(0, 3), st.none() | st.integers(1, 4))
def test_the_order_of_the_rows_plays_no_part(
    order: list[int], seed: int, per_scene: int | None
) -> None:
    """The same frames in the same order, however they are listed; the seed settles ties."""
    names, scores, scenes = hashes(30), np.arange(30.0) // 5, np.arange(30) % 7
    one = most_uncertain(scores, scenes, names, 12, per_scene, seed)
    other = most_uncertain(scores[order], scenes[order], names[order], 12, per_scene, seed)
    assert names[one].tolist() == names[order][other].tolist()


def test_spread_out_is_greedy_k_center() -> None:
    """Each next one is the furthest from those chosen: compared with the definition."""
    vectors = np.random.default_rng(2).random((80, 3))
    chosen = spread_out(vectors, np.arange(80), 12, None)
    assert chosen[0] == 0
    for step in range(1, 12):
        apart = np.linalg.norm(vectors[:, None] - vectors[chosen[:step]], axis=2).min(axis=1)
        assert np.isclose(apart[chosen[step]], apart.max())


def test_twins_and_limits() -> None:
    """Equal rows are each chosen once; a scene's limit holds, and ends the choice early."""
    twins = np.zeros((6, 2))
    assert sorted(spread_out(twins, np.arange(6), 6, None).tolist()) == list(range(6))
    scenes = np.array([0, 0, 0, 1, 1, 1])
    chosen = spread_out(np.random.default_rng(0).random((6, 2)), scenes, 6, 2)
    assert np.bincount(scenes[chosen]).tolist() == [2, 2]


def test_frames_are_spread_out_by_their_own_classes(
    store: CatalogStore, frames: list[DrawnFrame]
) -> None:
    """The set is what the definition gives of the frames' files: pool, class shares, k-center."""
    expected = sorted(frames, key=lambda frame: frame.fkey)
    scores = np.array([frame.tags["sky"] for frame in expected], float)
    pixels = np.array([[frame.tags[tag] for tag in class_names()] for frame in expected], float)
    names = hashes_of(frame.fkey for frame in expected)
    scenes = np.zeros(len(expected), np.int64)
    pool = most_uncertain(scores, scenes, names, 18, None, 0)
    shares = pixels[pool] / pixels[pool].sum(axis=1, keepdims=True)
    chosen = pool[spread_out(standardised(shares), scenes[pool], 6, None)]
    with store.reading() as cursor:
        candidates = Frames(cursor, cursor.relation, Question())
        drawn = draw_set(candidates, Uncertain(tag="sky", frames=6, pool=3), 0)
    assert drawn.hashes.tolist() == sorted(names[chosen].tolist())


def test_standardised() -> None:
    """Mean 0 and deviation 1; a column that never changes says nothing."""
    scaled = standardised(np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]))
    assert np.allclose(scaled.mean(axis=0), 0)
    assert np.allclose(scaled.std(axis=0), [1, 0])
