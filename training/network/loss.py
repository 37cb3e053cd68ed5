"""The loss that training minimizes."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf


def weight_of_class_id(weights: npt.NDArray[np.float32]) -> Any:
    """Weights (n_classes,) float32 as a (256,) float32 tensor; 0 for ids that are no class.

    UNKNOWN_CLASS (255) is no class, so pixels of no class do not count.
    """
    table = np.zeros(256, dtype=np.float32)
    table[: len(weights)] = weights
    return tf.constant(table)


def cross_entropy_sums(
    labels: Any, logits: Any, weight_of_id: Any, label_smoothing: float = 0.0
) -> tuple[Any, Any]:
    """Cross-entropy of the pixels, each weighted by its class, and the weights, each added up.

    Their quotient is the mean. Sums of several workers make the mean over the pixels of all, which
    the mean of their means is not: their frames have other classes.

    Args:
        labels: (B, H, W) uint8 [class id].
        logits: (B, H, W, n_classes) float32.
        weight_of_id: (256,) float32.
        label_smoothing: Share of each pixel's truth that is spread evenly over all classes
            (Szegedy et al., arXiv:1512.00567, section 7).

    Returns:
        Scalars float32: sum [nats], and sum of weights; both 0 when no pixel has a weight.
    """
    ids = tf.cast(labels, tf.int32)  # (B, H, W)
    weights = tf.gather(weight_of_id, ids)  # (B, H, W)
    known = tf.where(ids < tf.shape(logits)[-1], ids, 0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, logits)  # (B, H, W)
    if label_smoothing:
        even = tf.reduce_logsumexp(logits, axis=-1) - tf.reduce_mean(logits, axis=-1)  # (B, H, W)
        losses = (1 - label_smoothing) * losses + label_smoothing * even
    return tf.reduce_sum(weights * losses), tf.reduce_sum(weights)


def weighted_cross_entropy(labels: Any, logits: Any, weight_of_id: Any) -> Any:
    """Mean cross-entropy over the pixels, scalar float32 [nats]; arguments of `cross_entropy_sums`.

    0 when no pixel has a weight.
    """
    return tf.math.divide_no_nan(*cross_entropy_sums(labels, logits, weight_of_id))
