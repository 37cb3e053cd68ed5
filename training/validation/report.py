"""The report of a validation, as data: the content of report.json."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.runs.score_thresholds import WHOLE_SCORES
from training.validation.comparison import compared
from training.validation.frame_summary import FrameSummary
from training.validation.intervals import (
    Interval,
    confusion_intervals,
    metric_intervals,
    score_intervals,
)
from training.validation.metrics.metric import Metric
from training.validation.metrics.object_sizes import SIZES
from training.validation.scene_sums import SceneSums, added
from training.validation.scores import (
    Float64,
    Int64,
    iou,
    majority_baseline,
    mean_iou,
    number_or_none,
    pixel_accuracy,
    precision,
    recall,
    share_correlation,
)
from training.validation.shard_file import About, StoredShard, confusion_of, trained_frames_of
from training.validation.slices import SLICED_BY, Slices, with_slices


def build_report(
    shards: Sequence[StoredShard],
    metrics: Mapping[str, Metric],
    summary: FrameSummary,
    fail_below: Mapping[str, float] | None = None,
    other: Sequence[StoredShard] | None = None,
    slices: pa.Table | None = None,
) -> dict[str, Any]:
    """The report of a whole validation.

    Args:
        shards: All of its shards, at least one, known to belong together.
        metrics: Of all their frames, by name: training.validation.metrics.table.
        fail_below: The least score by name (pipeline.runs.score_thresholds).
        other: The shards of another model on the same frames, to compare with; None for none.
        slices: Of each tag the part that each frame of the split is in; None for none.

    Returns:
        JSON-ready: `confusion_matrix` (rows truth, columns prediction), `classes`, `class_map` (the
        label classes of each, null where they were not merged), `per_class`,
        `miou` (mean IoU over the classes with truth), `frequency_weighted_iou`, `pixel_accuracy`,
        `intervals` (training.validation.intervals: of each score of the whole, by its name; other
        scores have theirs beside them, such as `iou_interval`), `boundary_iou`, `calibration` (each
        as its file in training.validation.metrics says), `slices` (by camera, scene and tags),
        `uncertainty` and `margin` (means over frames), `entropy`, `margins`, `disagreement` and
        `object_sizes`
        (likewise as their files say), `baseline` (always predicting the most frequent class, same
        definitions), `frames`, `trained_frames` (of these, the ones that the model was trained
        on; null where it has no list of them), `warnings`, `ignored_pixels`, `absent_classes` (no
        truth pixel), `stray_predictions` (pixels taken for one of these), `share_correlation`
        (Spearman's, of the classes' IoU with their share of the pixels, -1 to 1),
        `largest_confusions` (pairs of classes, most pixels first), `worst_frames` and
        `most_uncertain_frames` (scores of SHOWN frames),
        `skipped_frames` (`fkey`, `row`, `reason` of each that could not be read), `lineage` (what
        the dataset and the model were made of), `comparison` (training.validation.comparison;
        None without another model), `thresholds` (`score`, `least`, `value`, `interval`,
        `reached`), `dataset`, `model`, `shards`. Scores are 0 to 1, or null where there is nothing
        to score.
    """
    about = shards[0].about
    confusion = confusion_of(metrics)
    matrix, frames_with_class = confusion.matrix, confusion.frames_with_class
    tags = slices.column_names if slices is not None else []
    groups = {by: Slices(by, about.classes) for by in (*SLICED_BY, *tags)}
    sums: SceneSums = {}
    for shard in shards:
        of_frames, cells = shard.scores(), shard.cells()
        if slices is not None:
            of_frames = with_slices(of_frames, slices)
        for group in groups.values():
            group.add(of_frames, cells)
        sums = added((sums, shard.scene_sums()))
    scenes = groups["scene"].matrices()
    intervals = score_intervals(scenes, len(about.classes))
    of_metrics = metric_intervals(sums, scenes, len(about.classes))
    results = {name: metric.result() for name, metric in metrics.items()}
    boundary, sizes = results.pop("boundary_iou"), results.pop("object_sizes")
    truth, predicted = matrix.sum(axis=1).tolist(), matrix.sum(axis=0).tolist()
    ious, recalls, precisions = iou(matrix), recall(matrix), precision(matrix)
    baseline = majority_baseline(matrix)
    frames = summary.frames
    trained = trained_frames_of(shards)
    report: dict[str, Any] = {
        "classes": list(about.classes),
        "class_map": about.class_map,
        **results.pop("scores"),
        **results,
        "boundary_iou": boundary["mean"],
        "uncertainty": results["entropy"]["mean"],
        "margin": results["margins"]["mean"],
        "calibration": _calibration(results["calibration"], of_metrics["calibration"]),
        "object_sizes": _sizes(
            sizes["sizes"], *(of_metrics["object_sizes"][key] for key in ("found", "recall"))
        ),
        "intervals": {
            **{key: value for key, value in intervals.items() if key not in _OF_CLASSES},
            "boundary_iou": of_metrics["boundary_iou"]["mean"],
            "ece": of_metrics["calibration"]["ece"],
            "uncertainty": of_metrics["entropy"]["mean"],
            "margin": of_metrics["margins"]["mean"],
            "disagreement": of_metrics["disagreement"]["mean"],
        },
        "slices": {by: sums.result() for by, sums in groups.items()},
        "baseline": {
            "class": about.classes[baseline.class_id] if baseline else None,
            "miou": baseline.miou if baseline else None,
            "pixel_accuracy": baseline.pixel_accuracy if baseline else None,
        },
        "frames": frames,
        "trained_frames": trained,
        "warnings": [
            *_warnings("the model", frames, shards),
            *([] if other is None else _warnings("the model compared with", frames, other)),
        ],
        "ignored_pixels": summary.ignored_pixels,
        "absent_classes": [n for n, pixels in zip(about.classes, truth, strict=True) if not pixels],
        "stray_predictions": [
            {"class": name, "pixels": predicted[c]}
            for c, name in enumerate(about.classes)
            if predicted[c] and not truth[c]
        ],
        "per_class": [
            {
                "class": name,
                "tag": about.tags[c],
                "label_tags": list(about.label_tags[c]),
                "truth_pixels": truth[c],
                "predicted_pixels": predicted[c],
                "iou": _at(ious, c),
                "iou_interval": intervals["iou"][c],
                "boundary_iou": boundary["per_class"][c],
                "boundary_iou_interval": of_metrics["boundary_iou"]["per_class"][c],
                "object_sizes": _sizes(
                    sizes["per_class"][c],
                    *(of_metrics["object_sizes"][f"class_{key}"][c] for key in ("found", "recall")),
                ),
                "recall": _at(recalls, c),
                "recall_interval": intervals["recall"][c],
                "precision": _at(precisions, c),
                "precision_interval": intervals["precision"][c],
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
        "model": _model_of(about),
        "lineage": dict(about.lineage),
        "skipped_frames": sorted(
            (dict(one) for shard in shards for one in shard.skipped), key=lambda one: one["row"]
        ),
        "share_correlation": number_or_none(
            float(share_correlation(ious, np.array(truth, np.float64)))
        ),
        "largest_confusions": _confusions(about, matrix, scenes),
        "worst_frames": [_without_shard(row) for row in summary.worst()],
        "most_uncertain_frames": [_without_shard(row) for row in summary.most_uncertain()],
        "shards": len(shards),
        "confusion_matrix": matrix.tolist(),
    }
    report["thresholds"] = _thresholds(report, fail_below or {})
    report["comparison"] = None if other is None else _comparison(report, groups["scene"], other)
    return report


def _comparison(
    report: Mapping[str, Any], scenes: Slices, other: Sequence[StoredShard]
) -> dict[str, Any]:
    about = other[0].about
    its_scenes = Slices("scene", about.classes)
    for shard in other:
        its_scenes.add(shard.scores(), shard.cells())
    matrices = its_scenes.matrices()
    matrix = sum(matrices.values(), np.zeros((len(about.classes),) * 2, np.int64))
    its = {
        "miou": number_or_none(mean_iou(matrix)),
        "pixel_accuracy": number_or_none(pixel_accuracy(matrix)),
        "per_class": [{"iou": number_or_none(value)} for value in iou(matrix).tolist()],
        "model": _model_of(about),
    }
    return compared(report, its, scenes.matrices(), matrices)


def _model_of(about: About) -> dict[str, Any]:
    return {
        "name": model_name(about.model_dir),
        "dir": about.model_dir,
        "step": about.step,
        "sha256": about.model_sha256,
    }


def _thresholds(report: Mapping[str, Any], fail_below: Mapping[str, float]) -> list[Any]:
    """Each least score beside what was scored; what could not be scored is not reached."""
    values = {
        row["tag"]: row["iou"] if row["truth_pixels"] else None for row in report["per_class"]
    }
    values |= {name: report[name] for name in WHOLE_SCORES}
    intervals = {row["tag"]: row["iou_interval"] for row in report["per_class"]}
    intervals |= {name: report["intervals"][name] for name in WHOLE_SCORES}
    return [
        {
            "score": name,
            "least": least,
            "value": values.get(name),
            "interval": intervals.get(name),
            "reached": (values.get(name) or 0.0) >= least and values.get(name) is not None,
        }
        for name, least in fail_below.items()
    ]


def _warnings(model: str, frames: int, shards: Sequence[StoredShard]) -> list[str]:
    """Reasons why the scores of a model, which the warnings call so, say less."""
    trained = trained_frames_of(shards)
    alike = sum(shard.frames_of_trained_scenes for shard in shards)
    warnings = []
    if trained is None:
        warnings.append(
            f"{model} has no list of the frames that it was trained on: "
            "nobody knows how many of these frames it remembers"
        )
    elif trained:
        which = "all" if trained == frames else f"{trained:,} of the"
        warnings.append(
            f"{model} was trained on {which} {frames:,} frames that it is validated on: the "
            "scores say how well it remembers, and not how well it will do on other frames"
        )
    if alike:
        warnings.append(
            f"{model} was trained on other frames of the scenes of {alike:,} of the {frames:,} "
            "frames that it is validated on: these resemble what it knows, and score higher than "
            "frames of other drives"
        )
    return warnings


_MOST_CONFUSIONS = 12


def _confusions(about: About, matrix: Int64, scenes: Mapping[str, Int64]) -> list[dict[str, Any]]:
    """The pairs of classes that most pixels were confused in, by the matrix of all scenes."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    truth = matrix.sum(axis=1)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CONFUSIONS]
    cells = np.column_stack(np.divmod(order, len(matrix)))
    pixels_of = wrong.flat[order].tolist()
    rows = zip(cells.tolist(), pixels_of, confusion_intervals(scenes, cells), strict=True)
    return [
        {
            "truth": about.classes[true],
            "predicted": about.classes[predicted],
            "truth_tag": about.tags[true],
            "predicted_tag": about.tags[predicted],
            "pixels": pixels,
            "share_of_truth": pixels / int(truth[true]),
            "share_of_truth_interval": interval,
        }
        for (true, predicted), pixels, interval in rows
        if pixels
    ]


_OF_CLASSES = ("iou", "recall", "precision")


def _calibration(calibration: Mapping[str, Any], intervals: Mapping[str, Any]) -> dict[str, Any]:
    bins = zip(calibration["bins"], intervals["accuracy"], strict=True)
    return {**calibration, "bins": [row | {"accuracy_interval": of} for row, of in bins]}


def _sizes(
    rows: Sequence[Mapping[str, Any]], found: Sequence[Interval], recall: Sequence[Interval]
) -> list[dict[str, Any]]:
    """Objects by size, with the intervals of each size."""
    of_sizes = {size: (found[n], recall[n]) for n, size in enumerate(SIZES)}
    return [
        {**row, "found_interval": its[0], "recall_interval": its[1]}
        for row in rows
        for its in [of_sizes[row["size"]]]
    ]


def _without_shard(row: Mapping[str, Any]) -> dict[str, Any]:
    """A frame's scores without its shard: no report depends on how frames were divided."""
    return {name: value for name, value in row.items() if name != "shard"}


def _at(values: Float64, index: int) -> float | None:
    return number_or_none(float(values[index]))


def model_name(model_dir: str) -> str:
    """Name of a model: its folder, or the job's folder where that one is just "model"."""
    path = PurePath(model_dir)
    return path.parent.name if path.name == "model" else path.name
