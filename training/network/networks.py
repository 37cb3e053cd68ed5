"""The networks: Framesift's own, which a model.json may name, and the user's, which users name."""

import importlib
import traceback
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
        trusted: The user's own network, where the user names one: its module is imported, and its
            function called with the three numbers. A name that a file gives is not.

    Raises:
        UnknownName: There is none.
    """
    if is_own(name) and name == trusted:
        return _own_network(name, height_px, width_px, n_classes)
    if name not in _NETWORKS:
        raise UnknownName("network", name, _NETWORKS)
    return _NETWORKS[name](height_px, width_px, n_classes)


def _own_network(name: str, height_px: int, width_px: int, n_classes: int) -> Any:
    check_network(name)
    module, _, function = name.partition(":")
    expected = "expected MODULE:FUNCTION of a module that Python finds, installed or on PYTHONPATH"
    try:
        build = getattr(importlib.import_module(module), function)
    except Exception as error:  # a module's code may raise anything
        if location := _location(error):
            raise InvalidInput(f"network {name}: {location}: {_error_text(error)}") from error
        raise InvalidInput(f"network {name}: {_error_text(error)}; {expected}") from error
    call = f"{function}({height_px}, {width_px}, {n_classes})"
    try:
        model = build(height_px, width_px, n_classes)
    except Exception as error:
        at = f" at {location}" if (location := _location(error)) else ""
        raise InvalidInput(f"network {name}: {call} failed{at}: {_error_text(error)}") from error
    if not isinstance(model, tf.keras.Model):
        raise InvalidInput(
            f"network {name}: gives a {type(model).__name__}; expected a keras.Model"
        )
    if not model.outputs:
        raise InvalidInput(
            f"network {name}: gives a {type(model).__name__} whose layers Keras does not know "
            "before it is called; expected tf.keras.Model(images, logits): call yours on "
            f"images = tf.keras.layers.Input(({height_px}, {width_px}, 3))"
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


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def _location(error: Exception) -> str:
    """The file and line of the user's own code where an error arose; empty where none did."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    ours = (__file__, importlib.__file__)
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename not in ours and each.filename[0] != "<"]
    # What it calls, as Keras, says less than the line that calls it.
    lines = [each.lineno for each in own if each.filename == own[0].filename]
    return f"{own[0].filename}, line {lines[-1]}" if own else ""


def _shape(shape: Any) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, tuple) else (f"{len(shape)} tensors",)
