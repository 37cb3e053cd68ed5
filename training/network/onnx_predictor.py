"""Runs a network of an ONNX file by onnxruntime, on one frame at a time: no other code is loaded.

The bytes that are run are those that were hashed: onnxruntime opens no file, neither the network's
nor one with its weights.
"""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile, not_installed
from pipeline.prepared.decoded_frames import UInt8
from pipeline.runs.onnx_file import data_files_of
from pipeline.runs.onnx_model import BGR, IDS, NCHW, PROBABILITIES, OnnxModel
from training.network.best_class import BestClass, Int64
from training.network.prediction import ClassIds, Float32, IdsPrediction, Prediction

_SLACK = 1e-2
"""By how much a pixel's probabilities may miss a sum of 1: those of halves do by 0.005."""
_SMALLEST = np.float32(np.finfo(np.float32).tiny)


class OnnxPredictor:
    """Runs a network of an ONNX file on images of its input size."""

    def __init__(self, model: OnnxModel, *, threads: int = 1, mirrors: bool = False) -> None:
        """Load a network, on a GPU where this machine and its onnxruntime have one.

        Args:
            threads: That it computes with.
            mirrors: Whether each image is put through it mirrored, too.

        Raises:
            InvalidInput: onnxruntime is not installed.
            BadFile: The file is not the one that was described, or onnxruntime cannot run it.
        """
        self._model, self._mirrors = model, mirrors
        self._session = _session(model, threads)
        self._lut = _input_values(model)
        self._has_checked = model.output.is_said

    @property
    def device(self) -> str:
        """The provider that runs it, such as CPUExecutionProvider."""
        return str(self._session.get_providers()[0])

    def predict(self, image: UInt8) -> Prediction | IdsPrediction:
        """The prediction for an image (h, w, 3) uint8 [RGB].

        Raises:
            BadFile: What it gives is of no class, no number, or of another shape than was said.
        """
        output = self._run(image)
        if self._model.output.kind == IDS:
            ids = self._ids(output)
            return IdsPrediction(ClassIds(ids), self._disagreement(image, ids))
        values = self._values(output)
        try:
            best = BestClass(values)
        except BadFile as error:  # NaN
            raise self._bad(error.reason) from error
        is_probability = self._model.output.kind == PROBABILITIES
        if is_probability or not self._has_checked:
            self._check_sums(values, is_probability=is_probability)
        logits = np.log(np.maximum(values, _SMALLEST)) if is_probability else values
        if is_probability:
            best = _EnlargedBest(logits, best)
        confidence, log_confidence, entropy = probabilities(logits)
        unsure = entropy / math.log(max(2, len(self._model.classes)))
        disagreement = self._disagreement(image, best.ids)
        return Prediction(logits, best, confidence, log_confidence, unsure, disagreement)

    def _disagreement(self, image: UInt8, ids: Int64) -> float | None:
        if not self._mirrors:
            return None
        output = self._run(np.ascontiguousarray(image[:, ::-1]))
        if self._model.output.kind == IDS:
            mirrored = self._ids(output)
        else:
            mirrored = self._values(output).argmax(axis=-1)
        return float((mirrored[:, ::-1] != ids).mean())

    def _run(self, image: UInt8) -> npt.NDArray[Any]:
        contract = self._model.input
        if self._lut is None:
            planes = image[..., ::-1] if contract.channels == BGR else image
            array = planes.transpose(2, 0, 1) if contract.layout == NCHW else planes
        else:
            order = (2, 1, 0) if contract.channels == BGR else (0, 1, 2)
            axis = 0 if contract.layout == NCHW else 2
            planes_of = [self._lut[to][image[..., of]] for to, of in enumerate(order)]
            array = np.stack(planes_of, axis)
        feed = {contract.name: np.ascontiguousarray(array[None])}
        try:
            (output,) = self._session.run([self._model.output.name], feed)
        except Exception as error:  # onnxruntime's own kinds, which have no root
            raise self._bad(f"cannot be run: {_words(error)}") from error
        return np.asarray(output)

    def _ids(self, output: npt.NDArray[Any]) -> Int64:
        if output.ndim == 4 and 1 in (output.shape[1], output.shape[3]):
            output = output[:, 0] if output.shape[1] == 1 else output[..., 0]
        if output.ndim != 3 or len(output) != 1 or not output.size:
            raise self._bad(f"gives {_shape(output)}; expected class ids [1, h, w]")
        ids: Int64 = output[0].astype(np.int64)
        classes = len(self._model.classes)
        if (lowest := int(ids.min())) < 0 or int(ids.max()) >= classes:
            wrong = lowest if lowest < 0 else int(ids.max())
            raise self._bad(
                f"gives the class id {wrong}; it has the {classes} classes 0 to {classes - 1}"
            )
        return ids

    def _values(self, output: npt.NDArray[Any]) -> Float32:
        """The values (h, w, C) float32 of a frame's pixels."""
        classes = len(self._model.classes)
        axis = self._model.output.class_axis
        if output.ndim == 4 and axis is None:
            axes = [each for each in (1, 3) if output.shape[each] == classes]
            usual = 1 if self._model.input.layout == NCHW else 3
            axis = usual if len(axes) > 1 else next(iter(axes), None)
        if output.ndim != 4 or len(output) != 1 or axis is None or output.shape[axis] != classes:
            raise self._bad(
                f"gives {_shape(output)}; expected [1, {classes}, h, w] or [1, h, w, {classes}] of "
                f"its {classes} classes"
            )
        if not output.size:
            raise self._bad(f"gives {_shape(output)}, no pixel")
        values = output[0].transpose(1, 2, 0) if axis == 1 else output[0]
        return np.ascontiguousarray(values, np.float32)

    def _check_sums(self, values: Float32, *, is_probability: bool) -> None:
        """Accept probabilities that are some, and logits that are no probabilities.

        Raises:
            BadFile: They are not what was said, or what was taken for granted.
        """
        self._has_checked = True
        sums = values.sum(axis=-1)
        are_some = bool((values >= -_SLACK).all() and (np.abs(sums - 1) <= _SLACK).all())
        if is_probability and not are_some:
            raise self._bad(
                f"gives values of {values.min():.4g} to {values.max():.4g} whose sums in a pixel "
                f"are {sums.min():.4g} to {sums.max():.4g}; expected probabilities, which sum to "
                "1: give --onnx kind=logits where they are none"
            )
        if are_some and not is_probability and values.shape[-1] > 1:
            raise self._bad(
                "gives values that sum to 1 in each pixel, and neither file nor --onnx says what "
                "they are; give --onnx kind=probabilities"
            )

    def _bad(self, reason: str) -> BadFile:
        return BadFile(f"output {self._model.output.name[:80]}: {reason}", self._model.file)


class _EnlargedBest(BestClass):
    """The best class of each pixel of probabilities, which are enlarged as they are."""

    def __init__(self, logits: Float32, of: BestClass) -> None:
        super().__init__(logits)
        self._of, self.ids = of, of.ids

    def at_size(self, height_px: int, width_px: int) -> UInt8:
        """(height_px, width_px) uint8 [class id]; of equal probabilities the smaller id."""
        return self._of.at_size(height_px, width_px)


def probabilities(logits: Float32) -> tuple[Float32, Float32, float]:
    """The largest probability of each of a frame's pixels, and the mean entropy of them all.

    Args:
        logits: (h, w, C) float32.

    Returns:
        (h, w) float32, the largest probability of each pixel, and its logarithm; and the pixels'
        mean entropy [nats].
    """
    behind = logits - logits.max(axis=-1, keepdims=True)
    share = np.exp(behind)
    total = share.sum(axis=-1)
    log_total = np.log(total)
    entropy = log_total - np.einsum("hwc,hwc->hw", share, behind) / total
    return 1 / total, -log_total, float(entropy.mean(dtype=np.float64))


def _session(model: OnnxModel, threads: int) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise not_installed("onnxruntime", "onnx") from error

    path = Path(model.file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or "cannot be read", str(path)) from error
    digest = hashlib.sha256(content)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # errors are raised
    data = dict(data_files_of(path, model.data_files))
    for tensor in data.values():
        digest.update(tensor)
    if digest.hexdigest() != model.sha256:
        raise BadFile("changed since the job was begun; begin another", str(path))
    if data:
        sizes = [len(tensor) for tensor in data.values()]
        options.add_external_initializers_from_files_in_memory([*data], [*data.values()], sizes)
    there = onnxruntime.get_available_providers()
    preferred = ("CUDAExecutionProvider", "CPUExecutionProvider")
    providers = [name for name in preferred if name in there]
    try:
        return onnxruntime.InferenceSession(content, options, providers=providers)
    except Exception as error:  # onnxruntime's own kinds, which have no root
        raise BadFile(f"cannot be loaded by onnxruntime: {_words(error)}", str(path)) from error


def _input_values(model: OnnxModel) -> npt.NDArray[Any] | None:
    """(3, 256) values of a channel's pixels in the network's order; None where it takes these."""
    contract = model.input
    if contract.dtype == "uint8":
        return None
    pixels = np.arange(256, dtype=np.float64) * contract.scale
    values = (pixels[None] - np.array(contract.mean)[:, None]) / np.array(contract.std)[:, None]
    result: npt.NDArray[Any] = values.astype(contract.dtype)
    return result


def _shape(array: npt.NDArray[Any]) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
