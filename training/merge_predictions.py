"""The scores of all frames of a prediction: ``python -m training.merge_predictions``."""

import argparse
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_path, atomic_write
from pipeline.runs.bad_frames import FAIL, BadFrames
from training.command import OneLineParser, exit_status, positive_int, say
from training.prediction_scores import About, read_about, read_scores, shard_scores
from training.strict_json import strict_json
from training.validation.report import model_name

_BLOCK_FRAMES = 262_144
"""Frames whose scores are in memory at once; each block reads every shard's file."""


def merge(results_dir: Path, shards: int, out: Path, bad_frames: str | None = None) -> int:
    """Write ``frame_scores.parquet`` and ``metrics.json`` to ``out``; how many frames there are."""
    paths = [shard_scores(results_dir, shard, shards) for shard in range(shards)]
    about, frames = _check_shards(results_dir, paths)
    left_out = about.split_frames - frames
    BadFrames.parse(bad_frames or FAIL).check(left_out, about.split_frames)
    with atomic_path(out / "frame_scores.parquet", parents=True) as partial_path:
        sums, known = _write_blocks(paths, about.split_frames, partial_path)
    metrics = {
        "frames": frames,
        "skipped_frames": left_out,
        **{name: sums[name] / known[name] if known[name] else None for name in _MEANS},
        "predicted_pixels": {tag: sums[tag] for tag in sums if tag not in _MEANS},
        "model": {"name": model_name(about.model_dir), "sha256": about.model_sha256},
    }
    atomic_write(out / "metrics.json", strict_json(metrics))
    return frames


def _check_shards(results_dir: Path, paths: Sequence[Path]) -> tuple[About, int]:
    """Accept shards of one prediction; what they are of, and how many frames they have.

    Raises:
        InvalidInput: A shard is missing, or is not of the same model and dataset.
    """
    frames, identities = 0, set()
    for shard, path in enumerate(paths):
        try:
            about, rows = read_about(path)
        except FileNotFoundError as error:
            flags = f"--shard {shard} --shards {len(paths)}"
            raise InvalidInput(
                f"{path} is missing: run --exec_mode predict with {flags}"
            ) from error
        identities.add((about.model_sha256, about.dataset_id, about.split, about.split_frames))
        frames += rows
    if len(identities) > 1:
        raise InvalidInput(f"{results_dir}: shards of several models or datasets; predict again")
    return about, frames


def _write_blocks(
    paths: Sequence[Path], split_frames: int, out: Path
) -> tuple[dict[str, Any], dict[str, int]]:
    """Write the scores in the order of the split's rows.

    Returns:
        The sum of each column of numbers, and how many frames have one.
    """
    blocks = (
        range(begin, begin + _BLOCK_FRAMES)
        for begin in range(0, max(split_frames, 1), _BLOCK_FRAMES)
    )
    sums: dict[str, Any] = {}
    known: dict[str, int] = dict.fromkeys(_MEANS, 0)
    with ExitStack() as stack:
        writer = None
        for rows in blocks:
            tables = [read_scores(path, rows)[1].replace_schema_metadata(None) for path in paths]
            scores = pa.concat_tables(tables).sort_by("row").drop_columns(["row"])
            writer = writer or stack.enter_context(pq.ParquetWriter(out, scores.schema))
            writer.write_table(scores)
            for name in scores.column_names:
                if name not in _TEXTS:
                    sums[name] = sums.get(name, 0) + (pc.sum(scores[name]).as_py() or 0)
            for name in _MEANS:
                known[name] += len(scores) - scores[name].null_count
    return sums, known


_TEXTS = ("fkey", "picture")
_MEANS = ("uncertainty", "margin")


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    parser = OneLineParser(
        prog="python -m training.merge_predictions",
        description="Join the scores of a prediction's shards.",
        allow_abbrev=False,
    )
    parser.add_argument("--results_dir", type=Path, required=True, help="where the shards lie")
    parser.add_argument("--shards", type=positive_int, required=True, help="number of shards")
    parser.add_argument("--out", type=Path, required=True, help="folder of the scores")
    parser.add_argument("--bad_frames", help="fail (default), skip, or skip:N frames at most")
    flags: argparse.Namespace = parser.parse_args(arguments)

    def work() -> None:
        frames = merge(flags.results_dir, flags.shards, flags.out, flags.bad_frames)
        say(f"scores of {frames} frames written to {flags.out / 'frame_scores.parquet'}")

    return exit_status(work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
