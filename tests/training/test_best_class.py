"""The best class at full size: equal to interpolating every class, by NumPy and by TensorFlow."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

from catalog.errors import BadFile
from training.network.best_class import BestClass

Float32 = npt.NDArray[np.float32]


def interpolated(logits: Float32, height_px: int, width_px: int) -> Float32:
    """(height_px, width_px, C) float32: every class, half-pixel centres, along rows first."""

    def places(small_px: int, large_px: int) -> tuple[npt.NDArray[np.intp], Float32]:
        scale = np.float32(small_px) / np.float32(large_px)
        positions = (np.arange(large_px, dtype=np.float32) + np.float32(0.5)) * scale - np.float32(
            0.5
        )
        neighbours = np.clip([np.floor(positions), np.ceil(positions)], 0, small_px - 1).astype(
            np.intp
        )
        return neighbours, (positions - np.floor(positions)).astype(np.float32)

    (up, down), row_weight = places(logits.shape[0], height_px)
    (left, right), column_weight = places(logits.shape[1], width_px)
    across, along = row_weight[:, None, None], column_weight[None, :, None]
    top = logits[up][:, left] + (logits[up][:, right] - logits[up][:, left]) * along
    bottom = logits[down][:, left] + (logits[down][:, right] - logits[down][:, left]) * along
    whole: Float32 = top + (bottom - top) * across
    return whole


SIZES = st.integers(1, 40)
# Few different numbers: equal logits, and blocks with one best class, come often.
LOGITS = drawn.arrays(
    np.float32,
    st.tuples(st.integers(1, 7), st.integers(1, 7), st.integers(1, 5)),
    elements=st.sampled_from([-3.0, 0.0, 0.125, 0.125 + 2**-20, 1.0, 7.5, 1e6]),
)


@pytest.mark.wide
@given(logits=LOGITS, height_px=SIZES, width_px=SIZES)
def test_equals_interpolating_every_class(logits: Float32, height_px: int, width_px: int) -> None:
    """Proves that no pixel differs, ties, larger, smaller and one-pixel sizes included."""
    whole = interpolated(logits, height_px, width_px)
    assert (BestClass(logits).at_size(height_px, width_px) == whole.argmax(axis=-1)).all()


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("seed", range(8))
def test_random_logits_of_many_classes(seed: int, spread: float) -> None:
    """Proves no pixel differs where every block has rivals: noise of 38 classes, near and far."""
    random = np.random.default_rng(seed)
    height, width = random.integers(2, 12, 2)
    logits = random.normal(3, spread, size=(height, width, 38)).astype(np.float32)
    size_px = (int(random.integers(1, 90)), int(random.integers(1, 90)))
    assert (
        BestClass(logits).at_size(*size_px) == interpolated(logits, *size_px).argmax(axis=-1)
    ).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    """Proves that a broken model is named and gives no classes."""
    logits = np.zeros((2, 2, 3), np.float32)
    logits[1, 0, 2] = bad
    with pytest.raises(BadFile, match="not finite"):
        BestClass(logits).at_size(4, 4)


@pytest.mark.training
@pytest.mark.parametrize("size_px", [(1208, 1920), (37, 301), (8, 5)])
@pytest.mark.parametrize("kind", ["noise", "areas"])
def test_equals_tensorflow(kind: str, size_px: tuple[int, int]) -> None:
    """Proves that no pixel of a frame with 38 classes differs from TensorFlow's resize."""
    import tensorflow as tf

    random = np.random.default_rng(3)
    logits = random.normal(size=(38, 60, 38)).astype(np.float32)
    if kind == "areas":
        logits = 0.1 * logits + 5 * np.repeat(np.repeat(logits[::8, ::8], 8, 0), 8, 1)[:38, :60]
    theirs = tf.argmax(tf.image.resize(logits[None], size_px)[0], axis=-1)
    assert (BestClass(logits).at_size(*size_px) == theirs.numpy()).all()
