"""A finished model, asked about one frame at a time.

One at a time, so that a frame's result cannot depend on which frames share its batch, and shards
add up to exactly the unsharded matrix. Decoding a frame's PNG files takes longer anyway.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from pipeline.prepared.decoded_frames import UInt8
from training.network.loss import weight_of_class_id, weighted_cross_entropy
from training.validation.best_class import BestClass

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Prediction:
    """The model's answer to one image.

    Attributes:
        logits: (1, h, w, C) float32 tensor at the network's size.
        best: The best class of each pixel.
        confidence: (h, w) float32, its probability, 0 to 1.
        uncertainty: Mean over pixels of the entropy, as share of the largest possible: 0 to 1.
        disagreement: Share of the pixels that get another class in the mirrored image, 0 to 1; None
            where it was not looked at.
    """

    logits: Any
    best: BestClass
    confidence: Float32
    uncertainty: float
    disagreement: float | None = None

    @property
    def margin(self) -> float:
        """Mean over pixels of the distance between the two largest probabilities: 0 to 1."""
        return float(np.mean(self.confidence * -np.expm1(-self.best.lead), dtype=np.float64))

    def loss(self, label: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8; None if no pixel is known."""
        n_classes = int(self.logits.shape[-1])
        if not (label < n_classes).any():
            return None
        even = weight_of_class_id(np.ones(n_classes, dtype=np.float32))
        return float(weighted_cross_entropy(label[None], self.logits, even))


class Predictor:
    """Runs a Keras model on images of its input size."""

    def __init__(self, model: Any, *, mirrors: bool = False) -> None:
        """Prepare a Keras model.

        Args:
            model: The model.
            mirrors: Whether each image is put through it mirrored, too.
        """

        def predict(images: Any) -> tuple[Any, Any, Any]:
            logits = model(images, training=False)  # (1, h, w, C)
            return logits, *probabilities(logits)

        self._predict = tf.function(predict)
        self._mirrors = mirrors
        self._best = tf.function(lambda images: tf.argmax(model(images, training=False), axis=-1))

    def predict(self, image: UInt8) -> Prediction:
        """The prediction for an image (h, w, 3) uint8 [RGB].

        Raises:
            BadFile: A logit is no finite number.
        """
        logits, confidence, entropy = self._predict(tf.constant(image[None]))
        largest = math.log(max(2, int(logits.shape[-1])))
        best = BestClass(logits.numpy()[0])
        disagreement = None
        if self._mirrors:
            mirrored = self._best(tf.constant(image[None, :, ::-1])).numpy()[0, :, ::-1]
            disagreement = float((mirrored != best.ids).mean())
        return Prediction(
            logits, best, confidence.numpy()[0], float(entropy) / largest, disagreement
        )


def probabilities(logits: Any) -> tuple[Any, Any]:
    """The largest probability of each of a frame's pixels, and the mean entropy of them all.

    Args:
        logits: (1, h, w, C) float32 tensor.

    Returns:
        (1, h, w) float32, the largest probability of each pixel; and their mean entropy [nats].
    """
    log_share = tf.nn.log_softmax(logits)
    share = tf.exp(log_share)
    entropy = -tf.reduce_sum(share * log_share, axis=-1)
    return tf.reduce_max(share, axis=-1), tf.reduce_mean(entropy)
