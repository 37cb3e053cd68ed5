"""The weights in ``model.keras``, as models of earlier releases have them: the numbers alone.

The archive describes the network, too, and Keras builds what is described: a description may name
any of TensorFlow's functions, such as the one that writes files. So nothing is built of it; it is
compared with the network that this package builds. The numbers lie in an HDF5 file in the archive,
by the kind of each layer and its place among those of its kind.

Source: keras 2.15, src/saving/saving_lib.py (`_save_state`, `_save_container_state`).
"""

import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import h5py

from catalog.storage.bounded_file import parsed_json
from training.network.weights_file import weights_bytes

_DESCRIPTION = "config.json"
_NUMBERS = "model.weights.h5"
_KIND = {"Conv2D": "conv2d", "GroupNormalization": "group_normalization"}
"""Keras' names of the kinds of layers that have weights in the networks of those releases."""
_MOST_BESIDE_BYTES = 16 << 20


def most_bytes(network: Any) -> int:
    """Largest size of an archive of such a network [bytes]."""
    return 2 * _MOST_BESIDE_BYTES + weights_bytes(network)


def take_weights(network: Any, content: bytes) -> None:
    """Give a network the weights in an archive's content.

    Raises:
        ValueError: It is damaged, or of another network.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            description = _member(archive, _DESCRIPTION, _MOST_BESIDE_BYTES)
            numbers = _member(archive, _NUMBERS, weights_bytes(network) + _MOST_BESIDE_BYTES)
        _check_described(network, parsed_json(description))
        with h5py.File(io.BytesIO(numbers), "r") as file:
            arrays = [
                (variable, _array(file, path, variable)) for path, variable in _paths(network)
            ]
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, TypeError, RuntimeError,
        NotImplementedError,
    ) as error:  # fmt: skip
        raise ValueError(f"is no archive of network {network.name}: {error}") from error
    for variable, array in arrays:
        variable.assign(array)


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as member:
        content = member.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{name} has more than the {most:,} bytes that the network's has at most")
    return content


def _check_described(network: Any, description: Any) -> None:
    """Refuse the weights of a network with other layers, which may have the same shapes."""
    layers = [layer["class_name"] for layer in description["config"]["layers"]]
    ours = [type(layer).__name__ for layer in network.layers]
    if (description["config"]["name"], layers) != (network.name, ours):
        odd = next((str(name)[:40] for name in layers if name not in ours), "their order")
        raise ValueError(f"describes another network than {network.name}: {odd}")


def _paths(network: Any) -> Iterator[tuple[str, Any]]:
    """Where each weight lies in the HDF5 file, and its variable."""
    of_kind: Counter[str] = Counter()
    for layer in network.layers:
        if layer.weights:
            kind = _KIND[type(layer).__name__]
            number = f"_{of_kind[kind]}" if of_kind[kind] else ""
            of_kind[kind] += 1
            for index, variable in enumerate(layer.weights):
                yield f"layers/{kind}{number}/vars/{index}", variable


def _array(file: Any, path: str, variable: Any) -> Any:
    """The numbers at a path, of the variable's type and shape, which lie in this very file."""
    node = file
    for name in path.split("/"):
        # A soft or external link, a virtual or external data set: numbers of any other file.
        if not isinstance(node, h5py.Group) or type(node.get(name, getlink=True)) is not (
            h5py.HardLink
        ):
            raise ValueError(f"{path} is missing")
        node = node[name]
    if not isinstance(node, h5py.Dataset) or node.is_virtual or node.external:
        raise ValueError(f"{path} holds no numbers of its own")
    expected = tuple(variable.shape), variable.dtype.as_numpy_dtype
    if (node.shape, node.dtype) != expected or node.chunks is not None:
        raise ValueError(f"{path} is {node.dtype} {node.shape}, expected {expected[0]}")
    return node[()]
