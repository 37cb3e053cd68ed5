"""A network of 98,000 weights that learns 160x120 frames in half a minute of one core.

The U-Net of training.network.model at half its width, with batch normalisation, its logits at half
the frame's size: 30 ms for a step of four frames on one core, where that one takes 107.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from benchmarks.real_frames import HEIGHT_PX, WIDTH_PX
from training.input.class_weights import class_weights
from training.network.loss import weight_of_class_id, weighted_cross_entropy
from training.network.model import PixelPosition

BATCH = 4
WARM_UP_STEPS = 20
_WIDTH = 12

Weights = list[npt.NDArray[np.float32]]
layers = tf.keras.layers


class SmallSegmenter:
    """The network, with one compiled step for all its trainings."""

    def __init__(self, classes: int) -> None:
        """Build it untrained."""
        self._network = _network(classes)
        self._optimizer = tf.keras.optimizers.Adam(1e-3)
        self._optimizer.build(self._network.trainable_variables)
        self._weight_of_id = tf.Variable(np.zeros(256, np.float32))
        images = tf.TensorSpec((BATCH, HEIGHT_PX, WIDTH_PX, 3), tf.uint8)
        labels = tf.TensorSpec((BATCH, HEIGHT_PX // 2, WIDTH_PX // 2), tf.uint8)
        self._step = tf.function(self._train_step, input_signature=[images, labels])
        many = tf.TensorSpec((None, HEIGHT_PX, WIDTH_PX, 3), tf.uint8)
        self._shares = tf.function(self._predict, input_signature=[many])

    def fresh(self, seed: int) -> Weights:
        """Untrained weights that the seed decides."""
        tf.keras.utils.set_random_seed(seed)
        weights: Weights = tf.keras.models.clone_model(self._network).get_weights()
        return weights

    def train(
        self,
        images: npt.NDArray[np.uint8],
        labels: npt.NDArray[np.uint8],
        begin: Weights,
        *,
        steps: int,
        learning_rate: float,
        seed: int,
        classes: int,
    ) -> Weights:
        """The weights after some steps, with class weights, mirrored frames and a cosine decay.

        Args:
            images: (n, HEIGHT_PX, WIDTH_PX, 3).
            labels: (n, HEIGHT_PX, WIDTH_PX) [class id].
            begin: Weights to begin with.
            steps: Of BATCH frames each.
            learning_rate: The largest.
            seed: Of order and mirroring.
            classes: Number of classes.
        """
        self._network.set_weights(begin)
        for variable in self._optimizer.variables:
            if "learning_rate" not in variable.name:
                variable.assign(tf.zeros_like(variable))
        pixels = np.bincount(labels.ravel(), minlength=256)[:classes].astype(np.int64)
        self._weight_of_id.assign(weight_of_class_id(class_weights(pixels)))
        random = np.random.default_rng(seed)
        queue: list[int] = []
        for step in range(steps):
            while len(queue) < BATCH:
                queue += random.permutation(len(images)).tolist()
            rows, queue = queue[:BATCH], queue[BATCH:]
            x, y = images[rows], labels[rows][:, ::2, ::2]
            mirrored = random.random(BATCH) < 0.5
            x[mirrored], y[mirrored] = x[mirrored][:, :, ::-1], y[mirrored][:, :, ::-1]
            decay = 0.5 * (1 + np.cos(np.pi * step / steps)) * min(1, (step + 1) / WARM_UP_STEPS)
            self._optimizer.learning_rate.assign(learning_rate * decay)
            self._step(x, y)
        weights: Weights = self._network.get_weights()
        return weights

    def shares(self, images: npt.NDArray[np.uint8], weights: Weights) -> Sequence[Any]:
        """Of each frame (HEIGHT_PX, WIDTH_PX, C) float32: the probability of each class."""
        self._network.set_weights(weights)
        starts = range(0, len(images), 16)
        return [one for at in starts for one in self._shares(images[at : at + 16]).numpy()]

    def _train_step(self, images: Any, labels: Any) -> None:
        with tf.GradientTape() as tape:
            logits = self._network(images, training=True)
            loss = weighted_cross_entropy(labels, logits, self._weight_of_id)
        variables = self._network.trainable_variables
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    def _predict(self, images: Any) -> Any:
        logits = self._network(images, training=False)
        return tf.nn.softmax(tf.image.resize(logits, (HEIGHT_PX, WIDTH_PX)))


def _network(classes: int) -> Any:
    """A keras.Model from images (B, H, W, 3) to logits (B, H/2, W/2, classes)."""
    images = layers.Input((HEIGHT_PX, WIDTH_PX, 3))
    x = PixelPosition()(layers.Rescaling(1 / 127.5, offset=-1)(images))
    half = _conv(x, _WIDTH, stride=2)
    quarter = _conv(_conv(half, 2 * _WIDTH, stride=2), 2 * _WIDTH)
    x = _conv(quarter, 4 * _WIDTH, stride=2)
    for dilation in (1, 2, 4):
        x = layers.Add()([x, _conv(x, 4 * _WIDTH, dilation=dilation)])
    x = layers.UpSampling2D(2)(_conv(x, 2 * _WIDTH, kernel=1))
    x = _conv(layers.Concatenate()([x, quarter]), 2 * _WIDTH)
    x = layers.UpSampling2D(2)(_conv(x, _WIDTH, kernel=1))
    x = _conv(layers.Concatenate()([x, half]), _WIDTH + 4)
    return tf.keras.Model(images, layers.Conv2D(classes, 1)(x))


def _conv(x: Any, channels: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> Any:
    x = layers.Conv2D(
        channels, kernel, strides=stride, dilation_rate=dilation, padding="same", use_bias=False,
        kernel_initializer="he_normal",
    )(x)  # fmt: skip
    return layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
