"""A finished model, asked about one frame at a time.

One at a time, so that a frame's result cannot depend on which frames share its batch, and shards
add up to exactly the unsharded matrix. Decoding a frame's PNG files takes longer anyway.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.prepared.decoded_frames import UInt8
from training.network.loss import weight_of_class_id, weighted_cross_entropy
from training.validation.best_class import best_class


@dataclass(frozen=True)
class Prediction:
    """What the model says of one image.

    Attributes:
        logits: (1, h, w, C) float32 tensor at the network's size.
        uncertainty: Mean over pixels of the entropy, as share of the largest possible: 0 to 1.
    """

    logits: Any
    uncertainty: float

    def class_ids(self, height_px: int, width_px: int) -> UInt8:
        """(height_px, width_px) uint8 [class id]: logits made larger bilinearly, then the best.

        Raises:
            BadFile: A logit is no finite number.
        """
        return best_class(self.logits.numpy()[0], height_px, width_px)

    def loss(self, label: UInt8) -> float | None:
        """Mean cross-entropy [nats] against a label (h, w) uint8; None if no pixel is known."""
        n_classes = int(self.logits.shape[-1])
        if not (label < n_classes).any():
            return None
        even = weight_of_class_id(np.ones(n_classes, dtype=np.float32))
        return float(weighted_cross_entropy(label[None], self.logits, even))


class Predictor:
    """Runs a Keras model on images of its input size."""

    def __init__(self, model: Any) -> None:
        self._model = tf.function(lambda images: model(images, training=False))

    def predict(self, image: UInt8) -> Prediction:
        """The prediction for an image (h, w, 3) uint8 [RGB]."""
        logits = self._model(tf.constant(image[None]))  # (1, h, w, C)
        log_share = tf.nn.log_softmax(logits)  # (1, h, w, C)
        entropy = -tf.reduce_sum(tf.exp(log_share) * log_share, axis=-1)  # (1, h, w) nats
        largest = math.log(max(2, int(logits.shape[-1])))
        return Prediction(logits, float(tf.reduce_mean(entropy)) / largest)
