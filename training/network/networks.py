"""The networks: Framesift's own, which a model.json may name, and the user's, which users name."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from catalog.errors import InvalidInput, UnknownName
from pipeline.runs.networks import DEEPLAB, SMALL_UNET, check_network, is_own
from training.network.deeplab import build_deeplab
from training.network.model import build_model

_NETWORKS: Mapping[str, Callable[[int, int, int], Any]] = {
    SMALL_UNET: build_model,
    DEEPLAB: build_deeplab,
}


def build_network(
    name: str, height_px: int, width_px: int, n_classes: int, *, trusted: str = ""
) -> Any:
    """The untrained network of that name, a keras.Model: see `training.network.model.build_model`.

    Args:
        name: One of Framesift's networks, or the user's, "module:function".
        height_px: Input.
        width_px: Input.
        n_classes: Channels of the output.
        trusted: The user's own network, where the user names one: its module is imported, and its
            function called with the three numbers. A name that a file gives is not.

    Raises:
        UnknownName: There is none.
        InvalidInput: The user's cannot be built, or is no network from images to logits.
    """
    if is_own(name) and name == trusted:
        return _own_network(name, height_px, width_px, n_classes)
    if name not in _NETWORKS:
        raise UnknownName("network", name, _NETWORKS)
    return _NETWORKS[name](height_px, width_px, n_classes)


def _own_network(name: str, height_px: int, width_px: int, n_classes: int) -> Any:
    check_network(name)
    module, _, function = name.partition(":")
    try:
        build = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"network {name}: {error}; expected MODULE:FUNCTION of a module that Python finds, "
            "installed or on PYTHONPATH"
        ) from error
    try:
        model = build(height_px, width_px, n_classes)
    except (TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(
            f"network {name}: {function}({height_px}, {width_px}, {n_classes}) failed: {reason}"
        ) from error
    if not isinstance(model, tf.keras.Model):
        raise InvalidInput(
            f"network {name}: gives a {type(model).__name__}; expected a keras.Model"
        )
    size = (None, height_px, width_px)
    shapes = _shape(model.input_shape), _shape(model.output_shape)
    if shapes != ((*size, 3), (*size, n_classes)):
        raise InvalidInput(
            f"network {name}: maps {shapes[0]} to {shapes[1]}; expected images {(*size, 3)} to "
            f"logits {(*size, n_classes)}"
        )
    if (kind := tf.as_dtype(model.outputs[0].dtype)) != tf.float32:
        raise InvalidInput(
            f"network {name}: its logits are {kind.name}; expected float32: give its last layer "
            'dtype="float32"'
        )
    return model


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, tuple) else (f"{len(shape)} tensors",)
