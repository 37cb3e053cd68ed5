"""One validation, or prediction, as shards that run at once, and a merge."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.jobs.request import PYTHON, JobPaths, Stage
from pipeline.runs.score_thresholds import shown_thresholds


def validation_stages(
    evaluate: Sequence[str],
    paths: JobPaths,
    shards: int,
    fail_below: Mapping[str, float] | None = None,
    bad_frames: str | None = None,
    *,
    compares: bool = False,
    slices: Path | None = None,
) -> tuple[Stage, ...]:
    """The stages of a validation: one command per shard, then the merge into a report.

    Args:
        evaluate: The evaluating program with all flags but the shard's.
        paths: The job's files.
        shards: Into how many parts the split is divided.
        fail_below: The least scores, which the report is held against.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
        compares: Whether the program puts the frames through another model, too.
        slices: File with the part that each frame is in, by tags; None for none.
    """
    parts = _parts(evaluate, shards)
    merge: tuple[str, ...] = (
        PYTHON, "-P", "-m", "training.merge_scores",
        "--results_dir", str(paths.results), "--shards", str(shards), "--out", str(paths.report),
        "--job", paths.folder.name,
    )  # fmt: skip
    if fail_below:
        merge += ("--fail_below", shown_thresholds(fail_below))
    if bad_frames:
        merge += ("--bad_frames", bad_frames)
    if compares:
        merge += ("--compared",)
    if slices is not None:
        merge += ("--slices", str(slices))
    return Stage("validate", parts, independent=True), Stage("merge", (merge,), uses_gpus=False)


def prediction_stages(
    predict: Sequence[str], paths: JobPaths, shards: int, bad_frames: str | None = None
) -> tuple[Stage, ...]:
    """The stages of a prediction: one command per shard, then their scores joined.

    Args:
        predict: The predicting program with all flags but the shard's.
        paths: The job's files.
        shards: Into how many parts the split is divided.
        bad_frames: What becomes of frames that cannot be read (pipeline.runs.bad_frames).
    """
    merge: tuple[str, ...] = (
        PYTHON, "-P", "-m", "training.merge_predictions",
        "--results_dir", str(paths.results), "--shards", str(shards), "--out", str(paths.report),
    )  # fmt: skip
    if bad_frames:
        merge += ("--bad_frames", bad_frames)
    parts = _parts(predict, shards)
    return Stage("predict", parts, independent=True), Stage("merge", (merge,), uses_gpus=False)


def _parts(command: Sequence[str], shards: int) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (*command, "--shard", str(index), "--shards", str(shards)) for index in range(shards)
    )
