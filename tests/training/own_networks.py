"""Networks of users, for tests."""

from typing import Any

import tensorflow as tf

layers = tf.keras.layers


def two_layers(height: int, width: int, classes: int) -> Any:
    """A network whose graph is soon built."""
    images = layers.Input((height, width, 3))
    x = layers.Rescaling(1 / 127.5, offset=-1)(images)
    x = layers.Conv2D(16, 5, strides=4, padding="same", activation="relu")(x)
    x = layers.Conv2D(classes, 3, padding="same", dtype="float32")(x)
    return tf.keras.Model(images, layers.UpSampling2D(4, interpolation="bilinear")(x))


class Shakes(tf.keras.layers.Layer):  # type: ignore[misc]
    """A layer with a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = tf.random.Generator.from_seed(1)

    def call(self, x: Any, training: bool = False) -> Any:
        """The same with noise, while it is trained."""
        return x + 0.1 * self.generator.normal(tf.shape(x)) if training else x


def draws_and_normalises(height: int, width: int, classes: int) -> Any:
    """A small network with dropout, noise and batch normalisation, one within another model."""
    images = layers.Input((height, width, 3))
    x = layers.Rescaling(1 / 127.5, offset=-1)(images)
    x = layers.Conv2D(8, 3, padding="same", activation="relu")(x)
    x = Shakes()(layers.BatchNormalization()(layers.Dropout(0.3)(x)))
    x = tf.keras.Sequential([layers.GaussianNoise(0.1), layers.Conv2D(8, 3, padding="same")])(x)
    return tf.keras.Model(images, layers.Conv2D(classes, 1, dtype="float32")(x))


def draws_by_state(height: int, width: int, classes: int) -> Any:
    """A network that draws from a state that nobody can set."""
    images = layers.Input((height, width, 3))
    x = layers.Lambda(lambda x: tf.cast(x, tf.float32) + tf.random.uniform(tf.shape(x)))(images)
    return tf.keras.Model(images, layers.Conv2D(classes, 1, dtype="float32")(x))
