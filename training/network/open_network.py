"""Opens what frames are put through: a network of Framesift's own kind, or one in an ONNX file.

Each is run by its own library, which is imported only then.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.onnx_model import OnnxModel
from training.network.about_model import AboutModel
from training.network.about_onnx import AboutOnnx

if TYPE_CHECKING:  # which compiles loops
    from training.network.prediction import IdsPrediction, Prediction

    Predict = Callable[[UInt8], Prediction | IdsPrediction]
    """Gives the prediction for an image (h, w, 3) uint8 [RGB]."""


def read_network(folder: Path) -> AboutModel | AboutOnnx:
    """The description of the network in a folder.

    Raises:
        NotFound: There is no finished model.
        BadFile: Its description is damaged, or of another format.
    """
    onnx = OnnxModel.read(folder)
    return AboutModel.read(folder) if onnx is None else AboutOnnx(onnx)


def open_network(
    folder: Path,
    description: AboutModel | AboutOnnx,
    *,
    threads: int,
    trust_model: bool = False,
    network: str = "",
    mirrors: bool = False,
) -> "Predict":
    """What predicts images of the network's size.

    Args:
        threads: That an ONNX file's network computes with; TensorFlow's are the process's own.
        trust_model: As training.network.model_files.read_model.
        network: As there.
        mirrors: Whether each image is put through it mirrored, too.

    Raises:
        BadFile: Its files are damaged, do not belong together, or cannot be run.
        InvalidInput: The library that runs it is not installed.
    """
    if isinstance(description, AboutOnnx):
        from training.network.onnx_predictor import OnnxPredictor

        return OnnxPredictor(description.model, threads=threads, mirrors=mirrors).predict
    from training.network.model_files import read_model
    from training.network.predictor import Predictor  # with TensorFlow, which takes seconds

    built, _ = read_model(folder, trust_model=trust_model, network=network)
    return Predictor(built, mirrors=mirrors).predict
