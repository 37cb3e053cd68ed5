"""Probabilities of a frame's classes: whether they are some, and say what the class ids say."""

from typing import Any

import numpy as np
import numpy.typing as npt

_ROUNDING = 1 / 512
"""Difference of two probabilities that half floats or 8 bits may have made."""

_SUM_ROUNDING = 0.02
_EDGE_SHARE = 0.01
"""Share of the pixels inside areas that interpolation of another kind may have changed."""

Array = npt.NDArray[Any]


def check_probabilities(probabilities: Array, ids: npt.NDArray[np.uint8], classes: int) -> None:
    """Accept probabilities of a frame whose class ids are known.

    At the ids' own size each pixel's class must have the largest probability. At another size the
    ids may have been enlarged from these: then those pixels count whose neighbours all have the
    same largest class, which interpolation leaves as it is.

    Args:
        probabilities: (classes, h, w).
        ids: (H, W) [class id]; no class counts as none.
        classes: Number of classes.

    Raises:
        ValueError: They are none, or say another class.
    """
    if probabilities.ndim != 3 or probabilities.shape[0] != classes or not probabilities.size:
        raise ValueError(
            f"probabilities of shape {probabilities.shape}; expected ({classes}, h, w), a layer "
            "for each class"
        )
    if probabilities.dtype.kind != "f":
        raise ValueError(f"probabilities of type {probabilities.dtype}; expected floats, 0 to 1")
    # Sums that are no numbers, too, where one of these is none.
    total = probabilities.sum(axis=0, dtype=np.float32)
    if not np.isfinite(total).all():
        raise ValueError("probabilities that are no numbers (NaN or infinite)")
    if probabilities.min() < -_ROUNDING or abs(total - 1).max() > _SUM_ROUNDING:
        raise ValueError(
            f"probabilities from {probabilities.min():.3g} to {probabilities.max():.3g}, whose sum "
            f"at a pixel is {total.min():.3g} to {total.max():.3g}; expected 0 to 1, whose sum is "
            "1 (softmax)"
        )
    size = probabilities.shape[1], probabilities.shape[2]
    is_same_size = size == ids.shape
    near = ids if is_same_size else nearest_of(ids[None], size)[0]
    best = probabilities.argmax(axis=0)
    counts = near < classes
    if not is_same_size:
        counts &= _inside(best)
    own = np.take_along_axis(probabilities, np.where(counts, near, 0)[None].astype(np.intp), 0)[0]
    largest = np.take_along_axis(probabilities, best[None], 0)[0]
    wrong = counts & (largest.astype(np.float32) - own > _ROUNDING)
    number, of = int(wrong.sum()), int(counts.sum())
    if number > (0 if is_same_size else _EDGE_SHARE * of):
        y, x = (int(at[0]) for at in np.nonzero(wrong))
        raise ValueError(
            f"probabilities say another class than the class ids at {number:,} of {of:,} pixels: "
            f"at row {y}, column {x} class {best[y, x]}, and the ids {near[y, x]}"
        )


def nearest_of(layers: Array, size: tuple[int, int]) -> Array:
    """Layers (n, H, W) at another size (h, w), each pixel the nearest one's."""
    rows, columns = (
        (np.arange(small) * 2 + 1) * large // (2 * small)
        for small, large in zip(size, layers.shape[1:], strict=True)
    )
    return layers[:, rows[:, None], columns]


def _inside(best: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Whether a pixel and its eight neighbours are the same; False at the image's edge."""
    inside = np.zeros(best.shape, np.bool_)
    height, width = best.shape
    if height < 3 or width < 3:
        return inside
    middle = best[1:-1, 1:-1]
    same = np.ones(middle.shape, np.bool_)
    for y in range(3):
        for x in range(3):
            same &= middle == best[y : height - 2 + y, x : width - 2 + x]
    inside[1:-1, 1:-1] = same
    return inside
