"""Intervals of 95 % of scores, by drawing the validated scenes again and again.

Frames of one drive resemble each other: a thousand of one street say little more than one. So
whole scenes are drawn, with replacement, as many as there are, and the scores of each draw are
computed; between the 2.5th and the 97.5th percentile of them lies the interval. It says how the
scores would vary with other scenes of the same kind, and nothing of kinds that are not there. A
class that a draw lacks has the IoU of all scenes in that draw's mean: left out, a rare class that
scores badly would raise the mean whenever it is not drawn.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13; Field and
Welsh, "Bootstrapping clustered data", JRSS B 69, 2007 (drawing the clusters).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from training.validation import scores
from training.validation.scores import Float64, Int64

DRAWS = 1_000
LEAST_SCENES = 2
"""With fewer there is nothing to draw from."""

_SEED = 20
_PERCENTILES = (2.5, 97.5)
_AT_ONCE = 50
"""Draws whose matrices are in memory at once: 50 x 1,444 numbers of 8 bytes are 0.6 MB."""

Interval = tuple[float, float] | None


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
    matrices = np.array(list(scenes.values()), np.int64).reshape(-1, classes, classes)
    result: dict[str, Any] = {
        "scenes": len(matrices),
        "draws": 0,
        "miou": None,
        "pixel_accuracy": None,
        "iou": [None] * classes,
    }
    if len(matrices) < LEAST_SCENES or not matrices.any():
        return result
    return result | _intervals(np.concatenate(list(_drawn_scores(matrices))), matrices)


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
        np.array([of[scene] for scene in scenes], np.int64).reshape(-1, classes, classes)
        for of in (scenes, other_scenes)
    )
    if len(ours) < LEAST_SCENES or not ours.any():
        return result
    # The same seed and number of scenes: both are of the same draws.
    pairs = zip(_drawn_scores(ours), _drawn_scores(theirs), strict=True)
    return result | _intervals(np.concatenate([one - other for one, other in pairs]), ours)


def _intervals(draws: Float64, matrices: Int64) -> dict[str, Any]:
    """Those of draws (draws, 2 + C); a class needs truth in two of the scenes (S, C, C)."""
    scenes_with_class = matrices.any(axis=2).sum(axis=0)
    return {
        "draws": DRAWS,
        "miou": _interval(draws[:, 0]),
        "pixel_accuracy": _interval(draws[:, 1]),
        "iou": [
            _interval(draws[:, 2 + c]) if number >= LEAST_SCENES else None
            for c, number in enumerate(scenes_with_class.tolist())
        ],
    }


def _drawn_scores(matrices: Int64) -> Iterator[Float64]:
    """(draws, 2 + C) float64 of some draws: mean IoU, pixel accuracy, IoU of each class."""
    random = np.random.default_rng(_SEED)
    scenes, classes = matrices.shape[0], matrices.shape[1]
    total = matrices.sum(axis=0)
    of_all, with_truth = scores.iou(total), total.any(axis=1)
    # Pixels below 2**53 are exact as float64, and float64 multiplies at the speed of BLAS.
    flat = matrices.reshape(scenes, -1).astype(np.float64)
    for begin in range(0, DRAWS, _AT_ONCE):
        number = min(_AT_ONCE, DRAWS - begin)
        times = random.multinomial(scenes, np.full(scenes, 1 / scenes), size=number)
        drawn = (times @ flat).reshape(number, classes, classes)
        right = np.einsum("dcc->dc", drawn)
        truth, predicted = drawn.sum(axis=2), drawn.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            iou = np.where(truth > 0, right / (truth + predicted - right), np.nan)
            accuracy = right.sum(axis=1) / truth.sum(axis=1)
        miou = np.where(np.isfinite(iou), iou, of_all)[:, with_truth].mean(axis=1)
        yield np.column_stack((miou, accuracy, iou))


def _interval(values: Float64) -> Interval:
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, _PERCENTILES)
    return float(low), float(high)
