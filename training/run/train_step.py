"""One step of a training."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from training.network.draws import Draws
from training.network.loss import cross_entropy_sums
from training.network.loss_scale import LossScale
from training.run.workers import Workers


def train_step(
    model: Any,
    optimizer: Any,
    workers: Workers,
    weight_of_id: Any,
    scale: LossScale | None = None,
    seed: int = 0,
    label_smoothing: float = 0.0,
) -> Any:
    """A compiled function: one step on (images, labels) of this worker; its loss, as float32.

    Args:
        model: Keras model from images to float32 logits.
        weight_of_id: (256,) float32, of each class in the loss.
        scale: Of the loss, where the model computes in halves: a step whose gradients overflow
            changes no weight.
    """
    variables = model.trainable_variables
    draws = Draws(model, seed, workers.rank)

    def step(images: Any, labels: Any) -> Any:
        draws.begin(optimizer.iterations)
        with tf.GradientTape() as tape:
            logits = tf.cast(model(images, training=True), tf.float32)  # (B, H, W, n_classes)
            summed, weight = cross_entropy_sums(labels, logits, weight_of_id, label_smoothing)
            # The mean of the workers' losses is the mean over the pixels of all.
            loss = tf.math.divide_no_nan(summed, workers.mean_of(weight))
            own = loss if workers.averages else tf.math.divide_no_nan(summed, weight)
            if model.losses:  # of a user's own network, whose layers may be regularized
                further = tf.add_n([tf.cast(each, tf.float32) for each in model.losses])
                loss, own = loss + further, own + further
            scaled = own if scale is None else scale.scaled(own)
        apply(optimizer, workers.tape(tape).gradient(scaled, variables), variables, scale)
        # Batch normalisation's means: so workers stay equal, whenever a checkpoint is written.
        workers.average_variables(model.non_trainable_variables)
        return loss

    return tf.function(step)


def apply(
    optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any], scale: LossScale | None
) -> None:
    """Change the variables, within a compiled function.

    Args:
        gradients: Of the loss, scaled where there is a scale; then they may overflow, and change
            nothing but the scale.
    """
    if scale is None:
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return
    unscaled = scale.unscaled(gradients)
    tf.cond(
        scale.update(unscaled),
        lambda: _applied(optimizer, unscaled, variables),
        lambda: tf.constant(False),
    )


def _applied(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> Any:
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return tf.constant(True)
