"""A finished model, asked about one frame at a time.

One at a time, so that a frame's result cannot depend on which frames share its batch, and shards
add up to exactly the unsharded matrix. Decoding a frame's PNG files takes longer anyway.
"""

import math
from typing import Any

import tensorflow as tf

from pipeline.prepared.decoded_frames import UInt8
from training.network.best_class import BestClass
from training.network.prediction import Prediction


class Predictor:
    """Runs a Keras model on images of its input size."""

    def __init__(self, model: Any, *, mirrors: bool = False) -> None:
        """Prepare a Keras model.

        Args:
            mirrors: Whether each image is put through it mirrored, too.
        """

        def predict(images: Any) -> tuple[Any, Any, Any, Any]:
            logits = model(images, training=False)  # (1, h, w, C)
            return logits, *probabilities(logits)

        self._predict = tf.function(predict)
        self._mirrors = mirrors
        self._best = tf.function(lambda images: tf.argmax(model(images, training=False), axis=-1))

    def predict(self, image: UInt8) -> Prediction:
        """The prediction for an image (h, w, 3) uint8 [RGB]."""
        *arrays, entropy = self._predict(tf.constant(image[None]))
        logits, confidence, log_confidence = (array.numpy()[0] for array in arrays)
        largest = math.log(max(2, logits.shape[-1]))
        best = BestClass(logits)
        disagreement = None
        if self._mirrors:
            mirrored = self._best(tf.constant(image[None, :, ::-1])).numpy()[0, :, ::-1]
            disagreement = float((mirrored != best.ids).mean())
        unsure = float(entropy) / largest
        return Prediction(logits, best, confidence, log_confidence, unsure, disagreement)


def probabilities(logits: Any) -> tuple[Any, Any, Any]:
    """The largest probability of each of a frame's pixels, and the mean entropy of them all.

    Args:
        logits: (1, h, w, C) float32 tensor.

    Returns:
        (1, h, w) float32, the largest probability of each pixel, and its logarithm; and the pixels'
        mean entropy [nats].
    """
    # One exponential a logit: log_softmax and its exponential take 3.8 ms of CPU more at 152x240.
    behind = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
    share = tf.exp(behind)
    total = tf.reduce_sum(share, axis=-1)
    log_total = tf.math.log(total)
    entropy = log_total - tf.reduce_sum(share * behind, axis=-1) / total
    return 1 / total, -log_total, tf.reduce_mean(entropy)
