"""The scores of all frames of a prediction: ``python -m training.merge_predictions``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import InvalidInput
from catalog.storage.atomic_write import atomic_path, atomic_write
from pipeline.runs.bad_frames import FAIL, BadFrames
from training.command import OneLineParser, exit_status, positive_int, say
from training.prediction_scores import read_scores, shard_scores
from training.strict_json import strict_json
from training.validation.report import model_name


def merge(results_dir: Path, shards: int, out: Path, bad_frames: str | None = None) -> int:
    """Write ``frame_scores.parquet`` and ``metrics.json`` to ``out``; how many frames there are.

    Raises:
        InvalidInput: A shard is missing, or is not of the same model and dataset; or too many
            frames were left out.
        BadFile: A shard is damaged.
        StorageError: The disk refuses.
    """
    tables, identities = [], set()
    for shard in range(shards):
        path = shard_scores(results_dir, shard, shards)
        try:
            about, table = read_scores(path)
        except FileNotFoundError as error:
            raise InvalidInput(
                f"{path} is missing: run --exec_mode predict with --shard {shard} --shards {shards}"
            ) from error
        identities.add((about.model_sha256, about.dataset_id, about.split, about.split_frames))
        tables.append(table.replace_schema_metadata(None))
    if len(identities) > 1:
        raise InvalidInput(f"{results_dir}: shards of several models or datasets; predict again")
    scores = pa.concat_tables(tables).sort_by("row").drop_columns(["row"])
    left_out = about.split_frames - scores.num_rows
    BadFrames.parse(bad_frames or FAIL).check(left_out, about.split_frames)
    columns = [name for name in scores.column_names if name not in _OWN]
    pixels = {name: pc.sum(scores[name]).as_py() or 0 for name in columns}
    metrics = {
        "frames": scores.num_rows,
        "skipped_frames": left_out,
        **{name: pc.mean(scores[name]).as_py() for name in ("uncertainty", "margin")},
        "predicted_pixels": pixels,
        "model": {"name": model_name(about.model_dir), "sha256": about.model_sha256},
    }
    with atomic_path(out / "frame_scores.parquet", parents=True) as partial_path:
        pq.write_table(scores, partial_path)
    atomic_write(out / "metrics.json", strict_json(metrics))
    return int(scores.num_rows)


_OWN = ("fkey", "picture", "uncertainty", "margin")


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
