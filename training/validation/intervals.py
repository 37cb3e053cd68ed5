"""Intervals of 95 % of scores, by drawing the validated scenes again and again.

Frames of one drive resemble each other: a thousand of one street say little more than one. So
whole scenes are drawn, with replacement, as many as there are, and the scores of each draw are
computed; between the 2.5th and the 97.5th percentile of them lies the interval. It says how the
scores would vary with other scenes of the same kind, and nothing of kinds that are not there. A
class that a draw lacks has the IoU of all scenes in that draw's mean: left out, a rare class that
scores badly would raise the mean whenever it is not drawn.

A part of the validation, such as a camera, has the intervals of its frames alone: the scenes that
it has frames of are drawn as if nothing else had been validated. So a part of one scene has none,
nor has a scene itself.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13; Field and
Welsh, "Bootstrapping clustered data", JRSS B 69, 2007 (drawing the clusters).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from training.validation.scores import Float64, Int64

DRAWS = 1_000
LEAST_SCENES = 2
"""With fewer there is nothing to draw from."""

_SEED = 20
_PERCENTILES = (2.5, 97.5)
_AT_ONCE = 50
"""Draws in memory at once: of 1,000 scenes and 38 classes 0.4 MB."""

RIGHT, TRUTH, PREDICTED = range(3)
"""Rows of `class_sums`."""

Interval = tuple[float, float] | None


def class_sums(matrices: Int64) -> Int64:
    """All that scores are made of: (..., 3, C) pixels of matrices (..., C, C).

    Of each class the pixels that are right, those that are it, and those that were taken for it.
    """
    right = np.diagonal(matrices, axis1=-2, axis2=-1)
    return np.stack((right, matrices.sum(axis=-1), matrices.sum(axis=-2)), axis=-2)


def score_intervals(scenes: Mapping[str, Int64], classes: int) -> dict[str, Any]:
    """The intervals of a validation's scores.

    Args:
        scenes: The (C, C) confusion matrix of each scene.
        classes: C.

    Returns:
        `scenes`, `draws`, and the 95 % intervals `miou`, `pixel_accuracy` (low and high) and
        `iou` (one for each class, in the order of their ids). None where there are fewer than two
        scenes, and for a class whose truth lies in fewer than two.
    """
    sums = _sums_of(scenes.values(), classes)
    result: dict[str, Any] = {
        "scenes": len(sums),
        "draws": 0,
        "miou": None,
        "pixel_accuracy": None,
        "iou": [None] * classes,
    }
    if not _can_draw(sums):
        return result
    return result | _intervals(np.concatenate(list(_drawn_scores(sums))), sums)


def part_intervals(sums: Int64) -> dict[str, Any]:
    """The intervals of the scores of a part of a validation.

    Args:
        sums: (scenes, 3, C) the `class_sums` of the part's frames, of each scene that it is in.

    Returns:
        `scenes`, and the 95 % intervals `miou` and `pixel_accuracy`, as `score_intervals` has them
        of these scenes.
    """
    result: dict[str, Any] = {"scenes": len(sums), "miou": None, "pixel_accuracy": None}
    if not _can_draw(sums):
        return result
    draws = np.concatenate([one[:, :2] for one in _drawn_scores(sums)])
    return result | {"miou": _interval(draws[:, 0]), "pixel_accuracy": _interval(draws[:, 1])}


def difference_intervals(
    scenes: Mapping[str, Int64], other_scenes: Mapping[str, Int64], classes: int
) -> dict[str, Any]:
    """The intervals of one model's scores less another's, of the same frames.

    Both are scored in each draw of scenes, so that what makes a draw hard for both falls out.

    Args:
        scenes: The (C, C) confusion matrix of each scene.
        other_scenes: The other model's, of the same scenes.
        classes: C.

    Returns:
        As `score_intervals`.
    """
    result = score_intervals({}, classes) | {"scenes": len(scenes)}
    ours, theirs = (
        _sums_of([of[scene] for scene in scenes], classes) for of in (scenes, other_scenes)
    )
    if not _can_draw(ours):
        return result
    # The same seed and number of scenes: both are of the same draws.
    pairs = zip(_drawn_scores(ours), _drawn_scores(theirs), strict=True)
    return result | _intervals(np.concatenate([one - other for one, other in pairs]), ours)


def _sums_of(matrices: Iterable[Int64], classes: int) -> Int64:
    """(S, 3, C) `class_sums` of matrices (C, C)."""
    sums = [class_sums(matrix) for matrix in matrices]
    return np.array(sums, np.int64).reshape(-1, 3, classes)


def _can_draw(sums: Int64) -> bool:
    return len(sums) >= LEAST_SCENES and bool(sums[:, TRUTH].any())


def _intervals(draws: Float64, sums: Int64) -> dict[str, Any]:
    """Those of draws (draws, 2 + C); a class needs truth in two of the scenes (S, 3, C)."""
    scenes_with_class = (sums[:, TRUTH] > 0).sum(axis=0)
    return {
        "draws": DRAWS,
        "miou": _interval(draws[:, 0]),
        "pixel_accuracy": _interval(draws[:, 1]),
        "iou": [
            _interval(draws[:, 2 + c]) if number >= LEAST_SCENES else None
            for c, number in enumerate(scenes_with_class.tolist())
        ],
    }


def _drawn_scores(sums: Int64) -> Iterator[Float64]:
    """(draws, 2 + C) float64 of some draws: mean IoU, pixel accuracy, IoU of each class."""
    random = np.random.default_rng(_SEED)
    scenes, _, classes = sums.shape
    total = sums.sum(axis=0)
    with_truth = total[TRUTH] > 0
    of_all = _iou(total.astype(np.float64))
    # Pixels below 2**53 are exact as float64, and float64 multiplies at the speed of BLAS.
    flat = sums.reshape(scenes, -1).astype(np.float64)
    for begin in range(0, DRAWS, _AT_ONCE):
        number = min(_AT_ONCE, DRAWS - begin)
        times = random.multinomial(scenes, np.full(scenes, 1 / scenes), size=number)
        drawn = (times @ flat).reshape(number, 3, classes)
        right, truth = drawn[:, RIGHT], drawn[:, TRUTH]
        iou = np.where(truth > 0, _iou(drawn), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            accuracy = right.sum(axis=1) / truth.sum(axis=1)
        miou = np.where(np.isfinite(iou), iou, of_all)[:, with_truth].mean(axis=1)
        yield np.column_stack((miou, accuracy, iou))


def _iou(sums: Float64) -> Float64:
    """(..., C) IoU of sums (..., 3, C); not finite where a class has no pixel."""
    right, truth, predicted = sums[..., RIGHT, :], sums[..., TRUTH, :], sums[..., PREDICTED, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        iou: Float64 = right / (truth + predicted - right)
    return iou


def _interval(values: Float64) -> Interval:
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, _PERCENTILES)
    return float(low), float(high)
