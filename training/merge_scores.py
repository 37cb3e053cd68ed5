"""The scores of a whole validation: ``python -m training.merge_scores``.

The shards' confusion matrices are integers, so their sum is exactly the matrix of a validation
in one piece, whatever the number of shards. Needs no TensorFlow.
"""

import io
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from catalog.errors import BadFile, InvalidInput
from catalog.storage.atomic_write import atomic_write
from training.command import OneLineParser, exit_status, positive_int, say
from training.run.metrics_log import read_metrics
from training.strict_json import strict_json
from training.validation.report import build_report
from training.validation.shard_file import FrameScore, ShardResult, read_shard, shard_path

REPORT_FILE = "report.json"
METRICS_FILE = "metrics.json"
MATRIX_FILE = "confusion_matrix.png"
PAGE_FILE = "report.html"
FRAME_SCORES_FILE = "frame_scores.parquet"

FRAME_SCORES_SCHEMA = pa.schema(
    [
        pa.field("fkey", pa.string(), nullable=False),
        pa.field("pixels", pa.int64(), nullable=False),
        pa.field("ignored_pixels", pa.int64(), nullable=False),
        # Null where every pixel of the label is unknown.
        pa.field("accuracy", pa.float64()),
        pa.field("loss", pa.float64()),
        pa.field("uncertainty", pa.float64(), nullable=False),
        pa.field("miou", pa.float64()),
    ]
)


def merge(results_dir: Path, shards: int, out: Path) -> dict[str, Any]:
    """Add up the shards in ``results_dir`` and write report, picture, page and scores to ``out``.

    Returns:
        The report, as `training.validation.report.build_report` describes it.

    Raises:
        InvalidInput: A shard is missing, or is not of the same model, dataset and classes.
        BadFile: A shard is damaged.
        StorageError: The disk refuses.
    """
    # Drawing comes first: it fails where matplotlib is missing, before anything is written.
    from training.validation.confusion_plot import draw_confusion_matrix
    from training.validation.report_page import report_page

    results = read_shards(results_dir, shards)
    report = build_report(results)
    picture = draw_confusion_matrix(report)
    curve = read_metrics(Path(report["model"]["dir"]))
    atomic_write(out / MATRIX_FILE, picture, parents=True)
    atomic_write(out / PAGE_FILE, report_page(report, picture, curve))
    atomic_write(out / FRAME_SCORES_FILE, _parquet(frame_scores(results)))
    atomic_write(out / METRICS_FILE, strict_json(_headline(report)))
    atomic_write(out / REPORT_FILE, strict_json(report))
    return report


def read_shards(results_dir: Path, shards: int) -> list[ShardResult]:
    """All shards of a validation, in order.

    Raises:
        InvalidInput: One is missing, or does not belong to the others.
        BadFile: One is damaged.
    """
    results, missing = [], []
    for shard in range(shards):
        try:
            results.append(read_shard(shard_path(results_dir, shard, shards)))
        except FileNotFoundError:
            missing.append(str(shard))
    if missing:
        raise InvalidInput(
            f"{results_dir}: of {shards} shards, missing: {', '.join(missing)}; run "
            f"--exec_mode evaluate with --shards {shards} for each of them"
        )
    for result in results[1:]:
        _check_same(results[0], result)
    _check_complete(results)
    return results


def frame_scores(results: Sequence[ShardResult]) -> list[FrameScore]:
    """The scores of all frames, in the split's order."""
    return sorted((f for result in results for f in result.frames), key=lambda frame: frame.row)


_SAME = {
    "model_sha256": "another model",
    "classes": "other classes",
    "dataset_id": "another dataset",
    "split": "another split",
    "split_frames": "a split of another length",
}


def _check_same(first: ShardResult, other: ShardResult) -> None:
    ours, theirs = asdict(first.about), asdict(other.about)
    for key, difference in _SAME.items():
        if ours[key] != theirs[key]:
            shown = "" if key == "classes" else f" ({_short(theirs[key])}, not {_short(ours[key])})"
            raise InvalidInput(
                f"shard {other.about.shard} is of {difference} than shard {first.about.shard}"
                f"{shown}: validate it again"
            )


def _check_complete(results: Sequence[ShardResult]) -> None:
    shards, frames = len(results), results[0].about.split_frames
    for shard, result in enumerate(results):
        if (result.about.shard, result.about.shards) != (shard, shards):
            raise BadFile(
                f"holds shard {result.about.shard} of {result.about.shards}",
                shard_path(Path(), shard, shards).name,
            )
        if len(result.frames) != len(range(shard, frames, shards)):
            raise BadFile(
                f"holds {len(result.frames)} frames of a split of {frames}",
                shard_path(Path(), shard, shards).name,
            )


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 12 else text[:12] + "..."


def _parquet(frames: Sequence[FrameScore]) -> bytes:
    rows = [{name: getattr(f, name) for name in FRAME_SCORES_SCHEMA.names} for f in frames]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, FRAME_SCORES_SCHEMA), file)
    return file.getvalue()


def _headline(report: dict[str, Any]) -> dict[str, Any]:
    return {
        "miou": report["miou"],
        "pixel_accuracy": report["pixel_accuracy"],
        "baseline_miou": report["baseline"]["miou"],
        "baseline_pixel_accuracy": report["baseline"]["pixel_accuracy"],
        "frames": report["frames"],
        "trained_frames": report["trained_frames"],
        "warnings": report["warnings"],
        "absent_classes": len(report["absent_classes"]),
    }


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f} %"


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
    flags = parser.parse_args(arguments)

    def work() -> None:
        report = merge(flags.results_dir, flags.shards, flags.out)
        say(
            f"mean IoU {_percent(report['miou'])} (always {report['baseline']['class']}: "
            f"{_percent(report['baseline']['miou'])}), pixel accuracy "
            f"{_percent(report['pixel_accuracy'])} on {report['frames']} frames"
        )
        for warning in report["warnings"]:
            say(f"warning: {warning}")
        say(f"report written to {flags.out / PAGE_FILE}")

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
