"""Runs the network of an ONNX file on one grey image: ``python -m training.check_onnx``.

Before any frame is read, and once for all shards. Lists the frames that it was trained on, too.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from catalog.errors import NotFound
from pipeline.runs.onnx_model import ONNX_MODEL_FILE, OnnxModel
from training.command import OneLineParser, add_trained_flags, exit_status, say, trained_of
from training.input.trained_frames import write_trained
from training.network.onnx_predictor import OnnxPredictor


def check(folder: Path, trained: tuple[Path, str] | None) -> None:
    """Run the network that a folder describes once, and say what it is.

    Args:
        folder: Of its description.
        trained: Manifest and split that it was trained on, whose frames ``folder`` lists then as a
            model's does.

    Raises:
        NotFound: It describes none.
        BadFile: onnxruntime cannot run the network, or what it gives is not what was said.
        InvalidInput: onnxruntime is not installed.
    """
    model = OnnxModel.read(folder)
    if model is None:
        raise NotFound("model", str(folder), f"expected {ONNX_MODEL_FILE} there")
    predictor = OnnxPredictor(model)
    size = model.input.height_px, model.input.width_px
    prediction = predictor.predict(np.full((*size, 3), 127, np.uint8))
    height_px, width_px = prediction.best.ids.shape
    say(
        f"{model.file}: {model.input.dtype} {model.input.layout} of {size[1]}x{size[0]} to "
        f"{model.output.kind} of {width_px}x{height_px}, {len(model.classes)} classes, by "
        f"{predictor.device}"
    )
    if trained is not None:
        write_trained(folder, *trained)


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    parser: argparse.ArgumentParser = OneLineParser(
        prog="python -m training.check_onnx",
        description="Run the network of an ONNX file on one image.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--model_dir", type=Path, required=True, help=f"folder of {ONNX_MODEL_FILE}"
    )
    add_trained_flags(parser)
    flags = parser.parse_args(arguments)
    trained = trained_of(parser, flags)
    return exit_status(lambda: check(flags.model_dir, trained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
