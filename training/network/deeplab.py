"""DeepLabV3+ on ResNet-50: the network for results, where there is time to compute them.

ResNet-50 at an output stride of 16 (its last stage dilated), atrous pyramid, and a decoder that
joins the features of stride 4. About 40 million weights. The backbone is Keras' own, so that
published weights of it fit; the head normalises by groups, as a worker's batch is small.

Source: Chen et al., arXiv:1802.02611 (DeepLabV3+); He et al., arXiv:1512.03385 (ResNet).
"""

import re
from pathlib import Path
from typing import Any

import tensorflow as tf

from catalog.errors import BadFile

layers = tf.keras.layers

BACKBONE = "backbone"
_GROUPS = 32
_CHANNELS = 256
_RATES = (6, 12, 18)
_MEAN_BGR = (103.939, 116.779, 123.68)
"""Mean of ImageNet's blue, green and red, which the published weights of Keras' ResNet-50 expect
subtracted."""


def build_deeplab(height_px: int, width_px: int, n_classes: int) -> Any:
    """The untrained network; arguments and result as of `training.network.model.build_model`."""
    images = layers.Input((height_px, width_px, 3), name="images")
    x = layers.Rescaling(1.0, offset=[-mean for mean in _MEAN_BGR])(images[..., ::-1])
    low, high = _backbone(height_px, width_px)(x)  # (B, H/4, W/4, 256), (B, H/16, W/16, 2048)
    x = _resized(_pyramid(high), low)  # (B, H/4, W/4, 256)
    x = layers.Concatenate()([x, _conv(low, 48, kernel=1, groups=16)])
    for _ in range(2):
        x = _conv(x, _CHANNELS)
    x = layers.Conv2D(n_classes, 1, name="class_logits", dtype="float32")(x)
    x = layers.Resizing(height_px, width_px, dtype="float32")(x)  # (B, H, W, n_classes)
    return tf.keras.Model(images, x, name="deeplabv3plus_resnet50")


def load_backbone(model: Any, path: Path) -> None:
    """Give the backbone weights of a file, as Keras publishes those of ResNet-50 without its top.

    Raises:
        BadFile: It is missing, or holds no weights of ResNet-50.
    """
    try:
        model.get_layer(BACKBONE).load_weights(str(path))
    except (OSError, ValueError, KeyError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise BadFile(
            f"holds no weights of ResNet-50 ({reason}); expected an .h5 file such as "
            "resnet50_weights_tf_dim_ordering_tf_kernels_notop.h5",
            str(path),
        ) from error


def _backbone(height_px: int, width_px: int) -> Any:
    """ResNet-50 without its top, from prepared images to the features of strides 4 and 16."""
    resnet = tf.keras.applications.ResNet50(
        include_top=False, weights=None, input_shape=(height_px, width_px, 3)
    )
    config = resnet.get_config()
    for layer in config["layers"]:
        if layer["name"] in ("conv5_block1_0_conv", "conv5_block1_1_conv"):
            layer["config"]["strides"] = (1, 1)
        if re.fullmatch(r"conv5_block\d_2_conv", layer["name"]):
            layer["config"]["dilation_rate"] = (2, 2)
    dilated = tf.keras.Model.from_config(config)
    low = dilated.get_layer("conv2_block3_out").output
    return tf.keras.Model(dilated.input, [low, dilated.output], name=BACKBONE)


def _pyramid(x: Any) -> Any:
    """Atrous spatial pyramid pooling: (B, h, w, C) to (B, h, w, 256)."""
    pooled = _conv(layers.GlobalAveragePooling2D(keepdims=True)(x), _CHANNELS, kernel=1)
    branches = [_conv(x, _CHANNELS, kernel=1), *(_conv(x, _CHANNELS, rate=r) for r in _RATES)]
    joined = layers.Concatenate()([*branches, _resized(pooled, x)])
    return _conv(joined, _CHANNELS, kernel=1)


def _conv(x: Any, channels: int, kernel: int = 3, rate: int = 1, groups: int = _GROUPS) -> Any:
    x = layers.Conv2D(
        channels,
        kernel,
        dilation_rate=rate,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
    )(x)
    return layers.ReLU()(layers.GroupNormalization(groups)(x))


def _resized(x: Any, like: Any) -> Any:
    return layers.Resizing(like.shape[1], like.shape[2])(x)
