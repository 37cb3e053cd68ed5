"""The finished model on disk: its weights, ``model.safetensors``, and what it is, ``model.json``.

model.json is written last and names the digest of the weights: together they are a model, anything
else is not. Neither holds code: the network is built by this package, which model.json names it to,
so that a model folder may be somebody else's. Reading model.json needs no TensorFlow.

A foreign network's ``model.keras``, beside a model.json that its user wrote, describes the network,
too: Keras builds it where its author is trusted.
"""

import hashlib
from pathlib import Path
from typing import Any

from catalog.errors import BadFile, UnknownName
from catalog.storage.atomic_write import atomic_write
from pipeline.runs.networks import is_own
from training.folder_file import read_folder_file
from training.network.about_model import ABOUT_FILE, AboutModel
from training.strict_json import strict_json

WEIGHTS_FILE, KERAS_FILE = "model.safetensors", "model.keras"

_TRUST = (
    "loading it runs what its author put into it, which may read and write every file that you "
    "may: only if you trust its author, give --trust_model (framesift validate: --trust-model)"
)


def write_model(model: Any, about: AboutModel, model_dir: Path) -> str:
    """Write a trained Keras model and its description; the digest that this gets as ``sha256``."""
    from training.network.weights_file import as_bytes

    content = as_bytes(model)
    atomic_write(model_dir / WEIGHTS_FILE, content, parents=True)
    digest = hashlib.sha256(content).hexdigest()
    atomic_write(model_dir / ABOUT_FILE, strict_json(about.to_json() | {"sha256": digest}))
    return digest


def read_model(
    model_dir: Path, *, trust_model: bool = False, network: str = ""
) -> tuple[Any, AboutModel]:
    """The finished Keras model in ``model_dir``, and what it is.

    Args:
        trust_model: Have Keras build what a model.keras of a foreign network describes, which runs
            what its author put into it.
        network: The user's own network, "module:function", which may be built.

    Raises:
        BadFile: Its files are damaged or do not belong together, or are of a foreign network.
    """
    from training.network import weights_file
    from training.network.networks import build_network

    about = AboutModel.read(model_dir)
    foreign = model_dir / KERAS_FILE
    if foreign.exists() and not (model_dir / WEIGHTS_FILE).exists():
        if not trust_model:
            raise BadFile(f"is a foreign network's: {_TRUST}", str(foreign))
        return _foreign(foreign, about), about
    try:
        built = build_network(
            about.network, about.height_px, about.width_px, len(about.classes), trusted=network
        )
    except UnknownName as error:
        own = f"is of the network {about.network}, which runs code that is not Framesift's; give "
        own += f"--model {about.network} to have it built"
        reason = own if is_own(about.network) else str(error)
        raise BadFile(reason, str(model_dir / ABOUT_FILE)) from error
    content = read_folder_file(model_dir, WEIGHTS_FILE, weights_file.most_bytes(built))
    if hashlib.sha256(content).hexdigest() != about.sha256:
        raise BadFile(
            f"does not belong to the {ABOUT_FILE} beside it; train again",
            str(model_dir / WEIGHTS_FILE),
        )
    try:
        weights_file.take_weights(built, content)
    except ValueError as error:
        raise BadFile(f"cannot be loaded: {error}", str(model_dir / WEIGHTS_FILE)) from error
    return built, about


def _foreign(path: Path, about: AboutModel) -> Any:
    """The model that Keras builds of an archive whose author is trusted.

    Raises:
        BadFile: It cannot be built, or is no network from images to the classes' logits.
    """
    import tensorflow as tf

    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != about.sha256:
            raise BadFile(f"does not belong to the {ABOUT_FILE} beside it", str(path))
        model = tf.keras.models.load_model(path, compile=False)
        shapes = tuple(model.input_shape), tuple(model.output_shape)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BadFile(f"cannot be loaded: {error}", str(path)) from error
    size = (None, about.height_px, about.width_px)
    if shapes != ((*size, 3), (*size, len(about.classes))):
        raise BadFile(
            f"maps {shapes[0]} to {shapes[1]}, and its {ABOUT_FILE} says {about.height_px} x "
            f"{about.width_px} pixels and {len(about.classes)} classes",
            str(path),
        )
    return model
