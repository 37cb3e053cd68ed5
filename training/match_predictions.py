"""Finds the prediction of each frame of a split: ``python -m training.match_predictions``.

Lists the predictions once, for all shards. Needs no TensorFlow.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from catalog.errors import NotFound
from pipeline.cache.reading import ReadsThrough
from pipeline.datasets.chosen_split import chosen_split
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet
from training.command import OneLineParser, exit_status, say
from training.input.given_predictions import match_predictions


def match(folder: Path, manifest: Path, staging: Path | None, split: str | None) -> None:
    """Match the predictions that ``folder`` describes with a manifest's frames, and say how."""
    given = PredictionSet.read(folder)
    if given is None:
        raise NotFound("predictions", str(folder), f"expected {PREDICTIONS_FILE} there")
    from pipeline.manifest import Manifest

    whole = Manifest.read(ReadsThrough.at(manifest, staging).manifest)
    name = chosen_split(whole, split, "validation")
    found = match_predictions(given, whole, name, folder)
    say(
        f"predictions of {given.model}: {found.frames - found.missing:,} of the {found.frames:,} "
        f"frames of split {name}, {found.missing:,} missing, {found.extra:,} of no frame"
    )
    for extra in found.extra_names:
        say(f"of no frame: {extra}")


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    parser: argparse.ArgumentParser = OneLineParser(
        prog="python -m training.match_predictions",
        description="Find the prediction of each frame of a split.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--predictions_dir", type=Path, required=True, help=f"folder of {PREDICTIONS_FILE}"
    )
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the dataset")
    parser.add_argument("--staging", type=Path, help="staging.json of a staging beside the job")
    parser.add_argument("--split", help="of the dataset")
    flags = parser.parse_args(arguments)
    return exit_status(
        lambda: match(flags.predictions_dir, flags.manifest, flags.staging, flags.split)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
