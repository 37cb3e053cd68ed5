"""How sure another program's model was of a frame: probabilities, or those of the best class alone.

Beside NAME.png lie NAME.npz, (classes, h, w), or NAME.confidence.png, the best class's probability
as grey of 8 or 16 bits; of any size.
"""

import io
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from framesift.data.probabilities import check_probabilities, nearest_of
from ingest.labels.encoding import Encoding
from ingest.labels.label_image import decode_values
from ingest.labels.png_chunks import take_apart
from pipeline.prepared.decoded_frames import UInt8, nearest
from pipeline.runs.size import Size

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]

_ARRAY = "probabilities"
_LEAST = 1e-7
"""Least probability of which a logarithm is taken; of whole numbers half of the least one."""
_MOST_BYTES = 2 << 30
"""Of a frame's probabilities: those of 150 classes at 1920x1208 in half floats are a third."""
_LONGEST_HEADER = 10_000
_KINDS = ("f2", "f4", "f8", "u1", "u2")


@dataclass(frozen=True)
class Confidence:
    """The confidence of a prediction, at the size at which it is compared."""

    best: Float32
    """(h, w) float32, the probability of the predicted class, 0 to 1."""
    probabilities: Float32 | None = None
    """(h, w, n) float32 [probability] of each class id of the predictions; None where only the best
    one's is known.
    """
    least: float = _LEAST
    """Least probability that is told from none."""

    @property
    def uncertainty(self) -> float | None:
        """Mean entropy, 0 (sure) to 1."""
        if self.probabilities is None:
            return None
        largest = math.log(max(2, self.probabilities.shape[-1]))
        logarithms = np.log(np.maximum(self.probabilities, np.float32(_LEAST)))
        entropy = -np.einsum("hwc,hwc->hw", self.probabilities, logarithms)
        return min(float(entropy.mean(dtype=np.float64)) / largest, 1.0)

    @property
    def margin(self) -> float | None:
        """Mean distance of the two largest probabilities, 0 to 1."""
        if self.probabilities is None:
            return None
        if self.probabilities.shape[-1] < 2:
            return 1.0
        two = np.partition(self.probabilities, -2, axis=-1)[..., -2:]
        return float(np.mean(two[..., 1] - two[..., 0], dtype=np.float64))

    def loss(self, label: UInt8, channel: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8; None if no pixel is known.

        Args:
            channel: (n_classes,) uint8, where each class's probabilities are.
        """
        if self.probabilities is None:
            return None
        row, column = np.nonzero(label < len(channel))
        if not len(row):
            return None
        of_truth = self.probabilities[row, column, channel[label[row, column]]]
        return float(-np.log(np.maximum(of_truth, self.least)).mean(dtype=np.float64))


def decoded_confidence(png: bytes, size: Size) -> Confidence:
    """The confidence that a grey PNG of 8 or 16 bits says.

    Raises:
        BadFile: It is none, or damaged.
    """
    chunks = take_apart(png)
    depth = chunks.header.bit_depth
    if chunks.header.colour_type != 0 or depth not in (8, 16):
        raise BadFile(
            f"has {depth} bits of colour type {chunks.header.colour_type}; expected a grey PNG of "
            "8 or 16 bits, whose largest value is 1"
        )
    values = decode_values(chunks, Encoding("index"))
    # A bare gather keeps 16 bits.
    small = nearest_of(values[None], (size.height_px, size.width_px))[0]
    return Confidence(small.astype(np.float32) / np.float32((1 << depth) - 1))


def decoded_probabilities(
    npz: bytes, ids: UInt8, channel_of: UInt8, number: int, size: Size
) -> Confidence:
    """The confidence of a frame whose probabilities an npz file has.

    Args:
        npz: The file.
        ids: (H, W) uint8 [class id], the frame's prediction.
        channel_of: (n_classes,) uint8, where each class's probabilities are.
        number: Layers that there must be: class ids of predictions.
        size: At which the frame is compared.

    Raises:
        BadFile: It is damaged, too large, no probabilities, or says another class than the ids.
    """
    array = _array_of(npz, number)
    table = np.full(256, 255, np.uint8)
    table[: len(channel_of)] = channel_of
    largest = 1 if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    values = array if largest == 1 else array.astype(np.float32) / np.float32(largest)
    try:
        check_probabilities(values, table[ids], number)
    except ValueError as error:
        raise BadFile(str(error)) from error
    near = nearest_of(values, (size.height_px, size.width_px))
    small = np.ascontiguousarray(np.moveaxis(near, 0, -1), np.float32).clip(0, 1)
    own = table[nearest(ids, size)]
    best = np.take_along_axis(small, np.minimum(own, number - 1)[..., None].astype(np.intp), -1)
    sure = np.where(own < number, best[..., 0], small.max(axis=-1))
    return Confidence(sure, small, _LEAST if largest == 1 else 0.5 / largest)


def _array_of(npz: bytes, number: int) -> npt.NDArray[Any]:
    """The array of an npz file, whose size is looked at before it is unpacked.

    Raises:
        BadFile: It is damaged, has none, or is too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(npz)) as archive:
            names = archive.namelist()
            name = names[0] if len(names) == 1 else f"{_ARRAY}.npy"
            with archive.open(name) as file:
                shape, is_fortran, dtype = _header(file)
                _check_shape(shape, dtype, number)
                size = math.prod(shape) * dtype.itemsize
                content = file.read(size + 1)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, RuntimeError) as error:
        if isinstance(error, BadFile):
            raise
        reason = " ".join(str(error).split())
        raise BadFile(f"is no npz file of one array, {_ARRAY}: {reason}") from error
    except (NotImplementedError, zipfile.zlib.error) as error:  # type: ignore[attr-defined]
        raise BadFile(f"is damaged: {error}") from error
    if len(content) != size:
        raise BadFile(f"is damaged: its array has {len(content):,} bytes, not {size:,}")
    array = np.frombuffer(content, dtype)
    return array.reshape(shape, order="F" if is_fortran else "C")


def _header(file: Any) -> tuple[Sequence[int], bool, np.dtype[Any]]:
    form: Any = np.lib.format
    is_first = form.read_magic(file) == (1, 0)
    read = form.read_array_header_1_0 if is_first else form.read_array_header_2_0
    shape, is_fortran, dtype = read(file, max_header_size=_LONGEST_HEADER)
    return shape, is_fortran, dtype


def _check_shape(shape: Sequence[int], dtype: np.dtype[Any], number: int) -> None:
    if len(shape) != 3 or shape[0] != number or not math.prod(shape):
        raise BadFile(
            f"has probabilities of shape {tuple(shape)}; expected ({number}, h, w), a layer for "
            "each class id"
        )
    if dtype.str[1:] not in _KINDS:
        raise BadFile(
            f"has numbers of type {dtype}; expected float16, float32 or float64, 0 to 1, or uint8 "
            "or uint16, whose largest value is 1"
        )
    if math.prod(shape) * dtype.itemsize > _MOST_BYTES:
        raise BadFile(
            f"has {math.prod(shape) * dtype.itemsize:,} bytes of probabilities; at most "
            f"{_MOST_BYTES:,} are read: write them at a smaller size"
        )
