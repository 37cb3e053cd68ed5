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
from pipeline.manifest import Manifest
from pipeline.runs.prediction_set import PREDICTIONS_FILE, PredictionSet
from training.command import OneLineParser, add_trained_flags, exit_status, say, trained_of
from training.input.given_predictions import match_predictions
from training.input.trained_frames import write_trained


def match(
    folder: Path,
    manifest: Path,
    staging: Path | None,
    split: str | None,
    trained: tuple[Path, str] | None = None,
) -> None:
    """Match the predictions that ``folder`` describes with a manifest's frames, and say how.

    Args:
        trained: Manifest and split that the model was trained on, whose frames ``folder`` lists
            then as a model's does.
    """
    predictions = PredictionSet.read(folder)
    if predictions is None:
        raise NotFound("predictions", str(folder), f"expected {PREDICTIONS_FILE} there")
    full_manifest = Manifest.read(ReadsThrough.at(manifest, staging).manifest)
    name = chosen_split(full_manifest, split, "validation")
    matched = match_predictions(predictions, full_manifest, name, folder)
    say(
        f"predictions of {predictions.model}: {matched.frames - matched.missing:,} of the "
        f"{matched.frames:,} frames of split {name}, {matched.missing:,} missing, "
        f"{matched.extra:,} of no frame"
    )
    say(
        f"{matched.confident:,} of them have probabilities or a confidence beside them"
        if matched.confident
        else "none has probabilities beside it: calibration, uncertainty and loss stay unknown"
    )
    if trained is not None:
        write_trained(folder, *trained)
    for extra in matched.extra_names:
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
    add_trained_flags(parser)
    flags = parser.parse_args(arguments)
    trained = trained_of(parser, flags)
    return exit_status(
        lambda: match(flags.predictions_dir, flags.manifest, flags.staging, flags.split, trained)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
