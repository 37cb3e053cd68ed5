"""A network's answer to one image, as NumPy's arrays: whatever library ran it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.prepared.decoded_frames import UInt8, nearest
from pipeline.runs.size import Size
from training.network.best_class import BestClass

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Prediction:
    """The model's answer to one image."""

    logits: Float32
    """(h, w, C) float32 at the network's size."""
    best: BestClass
    """The best class of each pixel."""
    confidence: Float32
    """(h, w) float32, its probability, 0 to 1."""
    log_confidence: Float32
    """(h, w) float32, the logarithm of it."""
    uncertainty: float
    """Mean over pixels of the entropy, as share of the largest possible: 0 to 1."""
    disagreement: float | None = None
    """Share of the pixels that get another class in the mirrored image, 0 to 1; None where it was
    not looked at.
    """

    @property
    def margin(self) -> float:
        """Mean over pixels of the distance between the two largest probabilities: 0 to 1."""
        return float(np.mean(self.confidence * -np.expm1(-self.best.lead), dtype=np.float64))

    def loss(self, label: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8; None if no pixel is known."""
        # From what there is: TensorFlow would take the softmax again, 15 ms of CPU at 152x240.
        row, column = np.nonzero(label < self.logits.shape[-1])
        if not len(row):
            return None
        behind = (
            self.logits[row, column, self.best.ids[row, column]]
            - self.logits[row, column, label[row, column]]
        )
        return float(np.mean(behind - self.log_confidence[row, column], dtype=np.float64))


@dataclass(frozen=True)
class ClassIds:
    """The classes that a network gives without saying how sure they are."""

    ids: Int64
    """(h, w) int64 [class id] at the network's size."""

    def at_size(self, height_px: int, width_px: int) -> UInt8:
        """(height_px, width_px) uint8 [class id], each pixel the nearest one's."""
        return nearest(self.ids.astype(np.uint8), Size(height_px, width_px))


@dataclass(frozen=True)
class IdsPrediction:
    """A network's answer to one image where it gives class ids alone."""

    best: ClassIds
    """They."""
    disagreement: float | None = None
    """As Prediction's."""
    confidence: None = None
    uncertainty: None = None
    margin: None = None

    def loss(self, label: UInt8) -> None:  # noqa: ARG002 (as of every prediction)
        """None: it says nothing of probabilities."""
        return
