"""Intervals of 95 % of scores, by drawing the validated scenes again and again.

Frames of one drive resemble each other: a thousand of one street say little more than one. So
whole scenes are drawn, with replacement, as many as there are, and the scores of each draw are
computed; between the 2.5th and the 97.5th percentile of them lies the interval. It says how the
scores would vary with other scenes of the same kind, and nothing of kinds that are not there. A
class that a draw lacks has the IoU of all scenes in that draw's mean: left out, a rare class that
scores badly would raise the mean whenever it is not drawn.

Every score of a validation is computed of the same draws. One that fewer than two of the scenes
have, such as that of a class with truth in one scene, has no interval.

A part of the validation, such as a camera, has the intervals of its frames alone: the scenes that
it has frames of are drawn as if nothing else had been validated. So a part of one scene has none,
nor has a scene itself.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 13; Field and
Welsh, "Bootstrapping clustered data", JRSS B 69, 2007 (drawing the clusters).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from training.validation.metrics.metric import class_mean, share
from training.validation.metrics.table import DRAWN
from training.validation.scene_sums import SceneSums, as_array, states_of
from training.validation.scores import Float64, Int64, share_correlation

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

Scores = Mapping[str, Float64]
"""(D, ...) by name: of each of D draws a score, or one of each class; NaN for none."""

Score = Callable[[Float64, Float64], Scores]
"""Gives the scores of the sums of draws, (D, *shape), and of those of all scenes, (*shape) or
(D, *shape).
"""


def class_sums(matrices: Int64) -> Int64:
    """All that scores are made of: (..., 3, C) pixels of matrices (..., C, C).

    Of each class the pixels that are right, those that are it, and those that were taken for it.
    """
    right = np.diagonal(matrices, axis1=-2, axis2=-1)
    return np.stack((right, matrices.sum(axis=-1), matrices.sum(axis=-2)), axis=-2)


def score_intervals(scenes: Mapping[str, Int64], classes: int) -> dict[str, Any]:
    """The intervals of the scores that follow from a validation's confusion matrices.

    Args:
        scenes: The (C, C) confusion matrix of each scene.
        classes: C.

    Returns:
        `scenes`, `draws`, and the 95 % intervals (low and high) `miou`, `pixel_accuracy`,
        `frequency_weighted_iou`, `baseline_miou`, `baseline_pixel_accuracy`, `share_correlation`,
        and of each class, in the order of their ids, `iou`, `recall` and `precision`. None where
        fewer than two scenes have the score.
    """
    sums = _sums_of(scenes.values(), classes)
    intervals = _intervals(sums, _scores)
    return {"scenes": len(sums), "draws": DRAWS if intervals["miou"] else 0, **intervals}


def metric_intervals(sums: SceneSums, scenes: Iterable[str], classes: int) -> dict[str, Any]:
    """The intervals of the metrics that shards add up by scene: by metric and score.

    Args:
        sums: Of each scene.
        scenes: Their names, in the order of `score_intervals`: the draws are the same.
        classes: C.
    """

    def scores(sums: Float64, whole: Float64) -> Scores:
        of, of_all = states_of(sums, classes), states_of(whole, classes)
        return {
            f"{name}.{key}": values
            for name, metric in DRAWN.items()
            for key, values in metric.drawn(of[name], of_all[name]).items()
        }

    result: dict[str, Any] = {name: {} for name in DRAWN}
    for full_name, intervals in _intervals(as_array(sums, scenes, classes), scores).items():
        name, key = full_name.split(".")
        result[name][key] = intervals
    return result


def confusion_intervals(matrices: Mapping[str, Int64], cells: Int64) -> list[Interval]:
    """The intervals of the shares of a class that were taken for another.

    Args:
        matrices: The (C, C) confusion matrix of each scene.
        cells: (n, 2) int64, the true class id and the predicted one.
    """
    sums = [
        (matrix[cells[:, 0], cells[:, 1]], matrix.sum(axis=1)[cells[:, 0]])
        for matrix in matrices.values()
    ]
    intervals: list[Interval] = _intervals(
        np.array(sums, np.int64).reshape(-1, 2, len(cells)),
        lambda sums, _: {"share": share(sums[..., 0, :], sums[..., 1, :])},
    )["share"]
    return intervals


def part_intervals(sums: Int64) -> dict[str, Any]:
    """The intervals of the scores of a part of a validation.

    Args:
        sums: (scenes, 3, C) the `class_sums` of the part's frames, of each scene that it is in.

    Returns:
        `scenes`, and the 95 % intervals `miou` and `pixel_accuracy`, as `score_intervals` has them
        of these scenes.
    """

    def scores(sums: Float64, whole: Float64) -> Scores:
        return {name: _main_scores(sums, whole)[name] for name in ("miou", "pixel_accuracy")}

    return {"scenes": len(sums), **_intervals(sums, scores)}


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
        `scenes`, `draws`, and of `score_intervals` `miou`, `pixel_accuracy` and `iou`.
    """
    sums = (_sums_of([of[scene] for scene in scenes], classes) for of in (scenes, other_scenes))

    def differences(sums: Float64, whole: Float64) -> Scores:
        ours, theirs = (_main_scores(sums[..., n, :, :], whole[..., n, :, :]) for n in range(2))
        return {name: ours[name] - theirs[name] for name in ours}

    intervals = _intervals(np.stack([*sums], axis=1), differences)
    return {"scenes": len(scenes), "draws": DRAWS if intervals["miou"] else 0, **intervals}


def _sums_of(matrices: Iterable[Int64], classes: int) -> Int64:
    """(S, 3, C) `class_sums` of matrices (C, C)."""
    sums = [class_sums(matrix) for matrix in matrices]
    return np.array(sums, np.int64).reshape(-1, 3, classes)


def _main_scores(sums: Float64, whole: Float64) -> dict[str, Float64]:
    """Mean IoU, pixel accuracy and IoU of each class, of class sums."""
    truth = sums[..., TRUTH, :]
    iou = np.where(truth > 0, _iou(sums), np.nan)
    return {
        "miou": class_mean(iou, _iou(whole), whole[..., TRUTH, :] > 0),
        "pixel_accuracy": share(sums[..., RIGHT, :].sum(axis=-1), truth.sum(axis=-1)),
        "iou": iou,
    }


def _scores(sums: Float64, whole: Float64) -> Scores:
    """All scores of class sums."""
    right, truth, predicted = (sums[..., row, :] for row in (RIGHT, TRUTH, PREDICTED))
    main = _main_scores(sums, whole)
    iou, pixels = main["iou"], truth.sum(axis=-1)
    most = np.broadcast_to(whole[..., TRUTH, :].argmax(axis=-1), pixels.shape)
    always = share(np.take_along_axis(truth, most[..., np.newaxis], axis=-1)[..., 0], pixels)
    number = (whole[..., TRUTH, :] > 0).sum(axis=-1)
    return {
        **main,
        "frequency_weighted_iou": share(np.where(truth > 0, iou * truth, 0).sum(axis=-1), pixels),
        "recall": share(right, truth),
        "precision": np.where(truth > 0, share(right, predicted), np.nan),
        "baseline_miou": always / np.maximum(number, 1),
        "baseline_pixel_accuracy": always,
        "share_correlation": share_correlation(iou, truth),
    }


def _iou(sums: Float64) -> Float64:
    """(..., C) IoU of sums (..., 3, C); NaN where a class has no pixel."""
    right, truth, predicted = sums[..., RIGHT, :], sums[..., TRUTH, :], sums[..., PREDICTED, :]
    return share(right, truth + predicted - right)


def _intervals(sums: Int64, score: Score) -> dict[str, Any]:
    """The interval of each score, by name: one, or of classes a list.

    Args:
        sums: (S, *shape) of each scene.
        score: Gives the scores of draws.
    """
    # Pixels below 2**53 are exact as float64, and float64 multiplies at the speed of BLAS.
    of_scenes = sums.astype(np.float64)
    whole = of_scenes.sum(axis=0)
    known = {
        name: np.isfinite(values).sum(axis=0) >= LEAST_SCENES
        for name, values in score(of_scenes, of_scenes).items()
    }
    if not any(scored.any() for scored in known.values()):
        return {name: _nothing(scored.shape) for name, scored in known.items()}
    flat = of_scenes.reshape(len(sums), -1)
    draws = [
        score((times @ flat).reshape(len(times), *sums.shape[1:]), whole)
        for times in _drawn_scenes(len(sums))
    ]
    return {
        name: _of_draws(np.concatenate([one[name] for one in draws]), scored)
        for name, scored in known.items()
    }


def _drawn_scenes(scenes: int) -> Iterator[Int64]:
    """(D, S) how often each of some draws has each scene; the same at every call."""
    random = np.random.default_rng(_SEED)
    for begin in range(0, DRAWS, _AT_ONCE):
        number = min(_AT_ONCE, DRAWS - begin)
        yield random.multinomial(scenes, np.full(scenes, 1 / scenes), size=number)


def _of_draws(values: Float64, known: Any) -> Any:
    """The interval of each score (D, *shape) that is known (*shape); lists of the others' None."""
    if values.ndim == 1:
        return _interval(values) if known else None
    return [_of_draws(values[:, n], known[n]) for n in range(values.shape[1])]


def _nothing(shape: tuple[int, ...]) -> Any:
    return [_nothing(shape[1:]) for _ in range(shape[0])] if shape else None


def _interval(values: Float64) -> Interval:
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.percentile(values, _PERCENTILES)
    return float(low), float(high)
