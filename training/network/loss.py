"""What training makes small."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf


def weight_of_class_id(weights: npt.NDArray[np.float32]) -> Any:
    """Weights (n_classes,) float32 as a (256,) float32 tensor; 0 for ids that are no class.

    UNKNOWN_CLASS (255) is no class, so pixels of unknown colour do not count.
    """
    table = np.zeros(256, dtype=np.float32)
    table[: len(weights)] = weights
    return tf.constant(table)


def weighted_cross_entropy(labels: Any, logits: Any, weight_of_id: Any) -> Any:
    """Mean cross-entropy over the pixels, each weighted by its class.

    Args:
        labels: (B, H, W) uint8 [class id].
        logits: (B, H, W, n_classes) float32.
        weight_of_id: (256,) float32.

    Returns:
        Scalar float32 [nats]; 0 when no pixel has a weight.
    """
    ids = tf.cast(labels, tf.int32)  # (B, H, W)
    weights = tf.gather(weight_of_id, ids)  # (B, H, W)
    known = tf.where(ids < tf.shape(logits)[-1], ids, 0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, logits)  # (B, H, W)
    return tf.math.divide_no_nan(tf.reduce_sum(weights * losses), tf.reduce_sum(weights))
