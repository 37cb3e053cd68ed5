"""One model compared with another on the same frames: differences, and what got worse.

A score is worse where the whole interval of 95 % of its difference, by drawing scenes, lies below
zero, and better where it lies above. Of 38 classes that are equally good, about one looks worse or
better in each comparison all the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from training.validation.intervals import Interval, difference_intervals
from training.validation.scores import Int64

BETTER, WORSE, UNDECIDED = "better", "worse", "not told apart"

UNJUDGED = "no verdict: intervals need frames of two scenes"

_WHOLE = ("miou", "pixel_accuracy")


def compared(
    report: Mapping[str, Any],
    other: Mapping[str, Any],
    scenes: Mapping[str, Int64],
    other_scenes: Mapping[str, Int64],
) -> dict[str, Any]:
    """The part of report.json that compares a model with another.

    Args:
        report: Of the model, as training.validation.report.build_report describes it.
        scenes: The (C, C) confusion matrix of each scene.
        other_scenes: The other model's.

    Returns:
        `model` (the other one), `scenes`, `draws`, `scores` (of mean IoU, pixel accuracy and each
        class's IoU: `score`, `value`, `other`, `difference`, `interval`, `verdict`), and the names
        of the scores that are worse (`regressions`) and better (`improvements`); both None where
        no score has an interval, and nobody can tell.
    """
    intervals = difference_intervals(scenes, other_scenes, len(report["classes"]))
    scores = [_row(name, report[name], other[name], intervals[name]) for name in _WHOLE]
    for one, its, interval in zip(
        report["per_class"], other["per_class"], intervals["iou"], strict=True
    ):
        if one["truth_pixels"]:
            scores.append(_row(one["tag"], one["iou"], its["iou"], interval))
    return {
        "model": dict(other["model"]),
        "scenes": intervals["scenes"],
        "draws": intervals["draws"],
        "scores": scores,
        "regressions": _judged(scores, WORSE),
        "improvements": _judged(scores, BETTER),
    }


def _judged(scores: Sequence[Mapping[str, Any]], verdict: str) -> list[str] | None:
    """Names of the scores with this verdict; None where there is no verdict at all."""
    if all(row["verdict"] is None for row in scores):
        return None
    return [row["score"] for row in scores if row["verdict"] == verdict]


def difference_text(row: Mapping[str, Any]) -> str:
    """A row of `scores` in words: by how many points, and between which."""
    if row["difference"] is None:
        return "no truth to score"
    points = f"{100 * row['difference']:+.1f} points"
    if row["interval"] is None:
        return points
    low, high = (f"{100 * end:+.1f}" for end in row["interval"])
    return f"{points} ({low} to {high})"


def _row(name: str, value: float | None, other: float | None, interval: Interval) -> dict[str, Any]:
    return {
        "score": name,
        "value": value,
        "other": other,
        "difference": None if value is None or other is None else value - other,
        "interval": interval,
        "verdict": _verdict(interval),
    }


def _verdict(interval: Interval) -> str | None:
    """The verdict on the interval of a difference; None where there is none."""
    if interval is None:
        return None
    low, high = interval
    return WORSE if high < 0 else BETTER if low > 0 else UNDECIDED
