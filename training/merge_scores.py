"""The scores of a whole validation: ``python -m training.merge_scores``.

The shards' confusion matrices are integers, so their sum is exactly the matrix of a validation
in one piece, whatever the number of shards. Needs no TensorFlow.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_path, atomic_write
from pipeline.runs.bad_frames import FAIL, BadFrames
from pipeline.runs.prediction_set import MOST_NAMED
from pipeline.runs.score_thresholds import parse_thresholds
from pipeline.runs.small_predictions import INDEX_FILE, INDEX_SCHEMA
from training.command import OneLineParser, exit_status, positive_int, say
from training.run.metrics_log import read_metrics
from training.strict_json import strict_json
from training.validation.comparison import UNJUDGED, WORSE, difference_text
from training.validation.frame_cells import Int32
from training.validation.frame_pictures import FramePictures
from training.validation.frame_summary import FrameSummary, score_blocks
from training.validation.metrics.metric import Int64, Metric
from training.validation.report import build_report
from training.validation.shard_file import (
    StoredShard,
    compared_results,
    metrics_of,
    open_shard,
    shard_name,
)
from training.validation.slices import read_slices

REPORT_FILE = "report.json"
METRICS_FILE = "metrics.json"
MATRIX_FILE = "confusion_matrix.png"
PAGE_FILE = "report.html"
FRAME_SCORES_FILE = "frame_scores.parquet"
FRAME_CELLS_FILE = "frame_cells.parquet"

FRAME_SCORES_SCHEMA = pa.schema(
    [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("pixels", pa.int64(), nullable=False),
        pa.field("ignored_pixels", pa.int64(), nullable=False),
        # Null where every pixel of the label is unknown.
        pa.field("accuracy", pa.float64()),
        # Null where the model's probabilities are not known.
        pa.field("loss", pa.float64()),
        pa.field("uncertainty", pa.float64()),
        pa.field("margin", pa.float64()),
        pa.field("miou", pa.float64()),
        # Null where it was not asked for.
        pa.field("disagreement", pa.float64()),
    ]
)


_NAME = pa.dictionary(pa.int32(), pa.string())

FRAME_CELLS_SCHEMA = pa.schema(
    [
        pa.field("fkey", _NAME, nullable=False),
        pa.field("truth", _NAME, nullable=False),
        pa.field("predicted", _NAME, nullable=False),
        pa.field("pixels", pa.int32(), nullable=False),
    ]
)


def merge(
    results_dir: Path,
    shards: int,
    out: Path,
    fail_below: Mapping[str, float] | None = None,
    bad_frames: str | None = None,
    *,
    compares: bool = False,
    slices: Path | None = None,
    job: str | None = None,
) -> dict[str, Any]:
    """Add up the shards in ``results_dir`` and write report, picture, page and scores to ``out``.

    Args:
        fail_below: The least score by name (pipeline.runs.score_thresholds).
        bad_frames: How many frames may have been left out (pipeline.runs.bad_frames).
        compares: Whether another model was validated on the same frames, to compare with.
        slices: Parquet file with the part that each frame is in, by tags; None for none.
        job: Name of the job that this is; the page's links lead to it.

    Returns:
        The report, as `training.validation.report.build_report` describes it.
    """
    # Drawing comes first: it fails where matplotlib is missing, before anything is written.
    from training.validation.confusion_plot import draw_confusion_matrix
    from training.validation.report_page import report_page

    results, metrics = open_shards(results_dir, shards)
    _check_left_out(results, BadFrames.parse(bad_frames or FAIL))
    compared = open_compared(results_dir, results) if compares else None
    parts = None if slices is None else read_slices(slices, results[0].about.split_frames)
    summary = _write_scores(results, out / FRAME_SCORES_FILE)
    report = build_report(results, metrics, summary, fail_below or {}, compared, parts)
    picture = draw_confusion_matrix(report)
    curve = read_metrics(Path(report["model"]["dir"]))
    atomic_write(out / MATRIX_FILE, picture)
    page = report_page(report, picture, curve, _pictures(results, summary), job)
    atomic_write(out / PAGE_FILE, page)
    _write_cells(results, out / FRAME_CELLS_FILE)
    _write_small_index(results, out / INDEX_FILE)
    atomic_write(out / METRICS_FILE, strict_json(_headline(report)))
    atomic_write(out / REPORT_FILE, strict_json(report))
    return report


def _check_left_out(results: Sequence[StoredShard], bad: BadFrames) -> None:
    """Name the frames that were left out, the first MOST_NAMED, and accept so many.

    Raises:
        InvalidInput: They are too many.
    """
    every = sorted((one for result in results for one in result.skipped), key=lambda it: it["row"])
    for frame in every[:MOST_NAMED]:
        say(f"left out: {frame['fkey']}: {frame['reason']}")
    if len(every) > MOST_NAMED:
        say(f"left out: {len(every) - MOST_NAMED:,} more")
    first = f"{every[0]['fkey']}: {every[0]['reason']}" if every else ""
    bad.check(len(every), results[0].about.split_frames, first)


def open_shards(results_dir: Path, shards: int) -> tuple[list[StoredShard], dict[str, Metric]]:
    """All shards of a validation, in order, and their metrics added up.

    Raises:
        InvalidInput: One is missing, or does not belong to the others.
    """
    results: list[StoredShard] = []
    missing = []
    total: Int64 | None = None
    for shard in range(shards):
        try:
            result, sums = open_shard(f"{results_dir}/{shard_name(shard, shards)}")
        except FileNotFoundError:
            missing.append(str(shard))
            continue
        if results:
            _check_same(results[0], result)
        results.append(result)
        total = sums.copy() if total is None else np.add(total, sums, out=total)
    if missing or total is None:
        raise InvalidInput(
            f"{results_dir}: of {shards} shards, missing: {', '.join(missing)}; run "
            f"--exec_mode evaluate with --shards {shards} for each of them"
        )
    _check_complete(results)
    return results, metrics_of(total, len(results[0].about.classes))


def open_compared(results_dir: Path, results: Sequence[StoredShard]) -> list[StoredShard]:
    """The shards of the model that is compared with, in order.

    Raises:
        InvalidInput: One is missing, or is not of the same frames and classes.
    """
    compared, _ = open_shards(compared_results(results_dir), len(results))
    for one, other in zip(results, compared, strict=True):
        _check_same(one, other, but=_OF_MODEL)
        if not one.scores()["row"].equals(other.scores()["row"]):
            raise InvalidInput(
                f"shard {one.about.shard}: the two models were put through other frames; remove "
                f"{other.path} and validate again"
            )
    return compared


def _write_scores(results: Sequence[StoredShard], path: Path) -> FrameSummary:
    """Write the scores of all frames, in the split's order; what the report says of them."""
    summary = FrameSummary()
    with (
        atomic_path(path, parents=True) as partial_path,
        pq.ParquetWriter(partial_path, FRAME_SCORES_SCHEMA) as file,
    ):
        for block in score_blocks(results):
            summary.add(block)
            file.write_table(block.select(FRAME_SCORES_SCHEMA.names).cast(FRAME_SCORES_SCHEMA))
            del block  # before the next one is made
    return summary


def _pictures(results: Sequence[StoredShard], summary: FrameSummary) -> dict[int, FramePictures]:
    """The pictures of the frames that the page shows, by row."""
    entries = [*summary.worst(), *summary.most_uncertain()]
    rows = [row["row"] for row in entries]
    shards = {row["shard"] for row in entries}
    return {one.row: one for shard in shards for one in results[shard].pictures(rows)}


_SAME = {
    "model_sha256": "another model",
    "classes": "other classes",
    "dataset_id": "another dataset",
    "split": "another split",
    "split_frames": "a split of another length",
    "augment_test": "another --augment-test",
    "predictions": "other predictions",
}
_OF_MODEL = ("model_sha256", "predictions")


def _check_same(first: StoredShard, other: StoredShard, but: Sequence[str] = ()) -> None:
    for key, difference in _SAME.items():
        if key in but:
            continue
        ours, theirs = getattr(first.about, key), getattr(other.about, key)
        if ours != theirs:
            values = "" if key == "classes" else f" ({_short(theirs)}, not {_short(ours)})"
            raise InvalidInput(
                f"shard {other.about.shard} is of {difference} than shard {first.about.shard}"
                f"{values}: validate it again"
            )


def _check_complete(results: Sequence[StoredShard]) -> None:
    shards, frames = len(results), results[0].about.split_frames
    for shard, result in enumerate(results):
        if (result.about.shard, result.about.shards) != (shard, shards):
            raise BadFile(
                f"holds shard {result.about.shard} of {result.about.shards}",
                shard_name(shard, shards),
            )
        number = result.number + len(result.skipped)
        if number != len(range(shard, frames, shards)):
            raise BadFile(
                f"holds {number} frames of a split of {frames}",
                shard_name(shard, shards),
            )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 12 else text[:12] + "..."


def _write_cells(results: Sequence[StoredShard], path: Path) -> None:
    """Write what was taken for what in each frame: fkey, truth, predicted (class tags), pixels."""
    tags = pa.array(results[0].about.tags)

    def named(indices: Int32, names: pa.Array) -> pa.DictionaryArray:
        return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), names)

    with (
        atomic_path(path) as partial_path,
        pq.ParquetWriter(partial_path, FRAME_CELLS_SCHEMA) as file,
    ):
        for result in results:
            cells = result.cells()
            fkeys = result.scores()["fkey"].combine_chunks()
            columns = [
                named(cells.frame, fkeys),
                named(cells.cell // len(tags), tags),
                named(cells.cell % len(tags), tags),
                pa.array(cells.pixels, pa.int32()),
            ]
            file.write_table(pa.Table.from_arrays(columns, schema=FRAME_CELLS_SCHEMA))


_INDEX_ROWS = 1 << 16
"""Rows of the index that are written at once."""


def _write_small_index(results: Sequence[StoredShard], path: Path) -> None:
    """Write where each frame's small copy lies; nothing where no shard keeps any."""
    if not any(result.keeps_small for result in results):
        path.unlink(missing_ok=True)  # an earlier attempt's
        return
    names = pa.array([Path(result.path).name for result in results])
    with (
        atomic_path(path) as partial_path,
        pq.ParquetWriter(partial_path, INDEX_SCHEMA) as file,
    ):
        tables: list[pa.Table] = []
        for number, result in enumerate(results):
            if result.keeps_small:
                tables.append(_small_places(result, number, names))
            if sum(map(len, tables)) >= _INDEX_ROWS:
                file.write_table(pa.concat_tables(tables).combine_chunks())
                tables = []
        if tables:
            file.write_table(pa.concat_tables(tables).combine_chunks())


def _small_places(result: StoredShard, number: int, names: pa.Array) -> pa.Table:
    offsets, sizes = result.small_places()
    columns = [
        result.scores()["fkey"].combine_chunks(),
        pa.DictionaryArray.from_arrays(pa.array([number] * len(sizes), pa.int32()), names),
        pa.array(offsets),
        pa.array(sizes),
    ]
    places = pa.Table.from_arrays(columns, schema=INDEX_SCHEMA)
    return places.filter(pa.array(sizes > 0))


def _headline(report: dict[str, Any]) -> dict[str, Any]:
    return {
        "miou": report["miou"],
        "pixel_accuracy": report["pixel_accuracy"],
        "frequency_weighted_iou": report["frequency_weighted_iou"],
        "boundary_iou": report["boundary_iou"],
        "ece": report["calibration"]["ece"],
        **{
            f"{name}_{word}": _end(report["intervals"][name], end)
            for name in _WITH_INTERVAL
            for end, word in enumerate(("low", "high"))
        },
        "baseline_miou": report["baseline"]["miou"],
        "baseline_pixel_accuracy": report["baseline"]["pixel_accuracy"],
        "frames": report["frames"],
        "trained_frames": report["trained_frames"],
        "skipped_frames": len(report["skipped_frames"]),
        "warnings": report["warnings"],
        "absent_classes": len(report["absent_classes"]),
        "weakest": _weakest(report),
        "below": [row for row in report["thresholds"] if not row["reached"]],
        **_compared(report["comparison"]),
    }


_WITH_INTERVAL = ("miou", "pixel_accuracy", "frequency_weighted_iou", "boundary_iou", "ece")

_MOST_WEAK = 3


def _weakest(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The classes with truth that are found worst, by tag, and what most of their pixels become."""
    classes, matrix = report["per_class"], report["confusion_matrix"]
    with_truth = [c for c, row in enumerate(classes) if row["truth_pixels"]]
    weakest = []
    for c in sorted(with_truth, key=lambda c: float(classes[c]["iou"]))[:_MOST_WEAK]:
        others = [pixels if other != c else 0 for other, pixels in enumerate(matrix[c])]
        most = max(others)
        weakest.append(
            {
                "class": classes[c]["tag"],
                "iou": classes[c]["iou"],
                "taken_for": classes[others.index(most)]["tag"] if most else None,
                "share": most / classes[c]["truth_pixels"],
            }
        )
    return weakest


def _compared(comparison: Mapping[str, Any] | None) -> dict[str, Any]:
    """The comparison with another model for a job's metrics; empty where there is none."""
    if comparison is None:
        return {}
    miou = comparison["scores"][0]
    return {
        "compared_with": comparison["model"]["name"],
        "miou_difference": miou["difference"],
        "miou_difference_low": _end(miou["interval"], 0),
        "miou_difference_high": _end(miou["interval"], 1),
        "regressions": comparison["regressions"],
        "improvements": comparison["improvements"],
    }


def _end(interval: tuple[float, float] | None, end: int) -> float | None:
    return None if interval is None else interval[end]


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


def thresholds(text: str) -> dict[str, float]:
    """Least scores by name, as a flag's value."""
    try:
        return parse_thresholds(text)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    parser = OneLineParser(
        prog="python -m training.merge_scores",
        description="Add up the shards of a validation and write its report.",
        allow_abbrev=False,
    )
    parser.add_argument("--results_dir", type=Path, required=True, help="where the shards lie")
    parser.add_argument("--shards", type=positive_int, required=True, help="number of shards")
    parser.add_argument("--out", type=Path, required=True, help="folder of the report")
    parser.add_argument(
        "--fail_below",
        type=thresholds,
        metavar="NAME=SCORE,...",
        help="least scores, which the report is held against",
    )
    parser.add_argument("--bad_frames", help="fail (default), skip, or skip:N frames at most")
    parser.add_argument(
        "--compared", action="store_true", help="the shards have another model's results, too"
    )
    parser.add_argument("--slices", type=Path, help="Parquet file: by tags, each frame's part")
    parser.add_argument("--job", help="name of the validation's job, to which the page links")
    flags = parser.parse_args(arguments)

    def work() -> None:
        report = merge(
            flags.results_dir,
            flags.shards,
            flags.out,
            flags.fail_below,
            flags.bad_frames,
            compares=flags.compared,
            slices=flags.slices,
            job=flags.job,
        )
        say(
            f"mean IoU {_percent(report['miou'])} (always {report['baseline']['class']}: "
            f"{_percent(report['baseline']['miou'])}), pixel accuracy "
            f"{_percent(report['pixel_accuracy'])} on {report['frames']} frames"
        )
        for warning in report["warnings"]:
            say(f"warning: {warning}")
        if (comparison := report["comparison"]) is not None:
            if comparison["regressions"] is None:
                say(f"compared with {comparison['model']['name']}: {UNJUDGED}")
            for row in comparison["scores"]:
                if row["verdict"] == WORSE:
                    say(f"regression: {row['score']}: {difference_text(row)}")
        say(f"report written to {flags.out / PAGE_FILE}")

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
