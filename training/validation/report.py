"""What a validation says, as data: the content of report.json."""

import math
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from ingest.labels.palette import tag_name
from training.validation.scores import (
    Float64,
    iou,
    majority_baseline,
    mean_iou,
    pixel_accuracy,
    precision,
    recall,
)
from training.validation.shard_file import ShardResult


def build_report(shards: Sequence[ShardResult]) -> dict[str, Any]:
    """The report of a whole validation.

    Args:
        shards: All of its shards, at least one, known to belong together.

    Returns:
        JSON-ready: `confusion_matrix` (rows truth, columns prediction), `classes`, `per_class`,
        `miou` (mean IoU over the classes in truth or prediction), `pixel_accuracy`, `baseline`
        (always predicting the most frequent class, same definitions), `frames`,
        `trained_frames` (of these, the ones that the model was trained on), `warnings`,
        `ignored_pixels`, `absent_classes` (no truth pixel), `dataset`, `model`, `shards`.
        Scores are 0 to 1, or null where there is nothing to score.
    """
    about = shards[0].about
    matrix = shards[0].matrix.copy()
    frames_with_class = shards[0].frames_with_class.copy()
    for shard in shards[1:]:
        matrix += shard.matrix
        frames_with_class += shard.frames_with_class
    truth, predicted = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
    ious, recalls, precisions = iou(matrix), recall(matrix), precision(matrix)
    baseline = majority_baseline(matrix)
    frames = sum(len(shard.frames) for shard in shards)
    trained = sum(shard.trained_frames for shard in shards)
    return {
        "classes": list(about.classes),
        "miou": _number(mean_iou(matrix)),
        "pixel_accuracy": _number(pixel_accuracy(matrix)),
        "baseline": {
            "class": about.classes[baseline.class_id] if baseline else None,
            "miou": baseline.miou if baseline else None,
            "pixel_accuracy": baseline.pixel_accuracy if baseline else None,
        },
        "frames": frames,
        "trained_frames": trained,
        "warnings": _warnings(frames, trained),
        "ignored_pixels": sum(f.ignored_pixels for shard in shards for f in shard.frames),
        "absent_classes": [n for n, pixels in zip(about.classes, truth, strict=True) if not pixels],
        "per_class": [
            {
                "class": name,
                "tag": tag_name(name),
                "truth_pixels": truth[c],
                "predicted_pixels": predicted[c],
                "iou": _at(ious, c),
                "recall": _at(recalls, c),
                "precision": _at(precisions, c),
                "frames": int(frames_with_class[c]),
            }
            for c, name in enumerate(about.classes)
        ],
        "dataset": {
            "name": about.dataset,
            "version": about.version,
            "id": about.dataset_id,
            "split": about.split,
        },
        "model": {
            "name": model_name(about.model_dir),
            "dir": about.model_dir,
            "step": about.step,
            "sha256": about.model_sha256,
        },
        "shards": len(shards),
        "confusion_matrix": matrix.tolist(),
    }


def _warnings(frames: int, trained: int) -> list[str]:
    if not trained:
        return []
    which = "all" if trained == frames else f"{trained:,} of the"
    warning = (
        f"the model was trained on {which} {frames:,} frames that it is validated on: the scores "
        "say how well it remembers, and not how well it will do on other frames"
    )
    return [warning]


def _at(values: Float64, index: int) -> float | None:
    return _number(float(values[index]))


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def model_name(model_dir: str) -> str:
    """What to call a model: its folder, or the job's folder where that one is just "model"."""
    path = PurePath(model_dir)
    return path.parent.name if path.name == "model" else path.name
