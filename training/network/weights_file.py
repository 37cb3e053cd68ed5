"""A network's weights as a safetensors file: names, types, shapes and numbers, and no code.

Source: https://github.com/huggingface/safetensors (format: a JSON header, then the numbers).
"""

from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load, save

_MOST_HEADER_BYTES = 1 << 20


def as_bytes(network: Any) -> bytes:
    """The file's content: each weight by its place in the network and its kind, "0003.kernel".

    The same weights give the same bytes.
    """
    return save({name: variable.numpy() for name, variable in _named(network).items()})


def most_bytes(network: Any) -> int:
    """Largest size of a file of such a network's weights [bytes]."""
    return _MOST_HEADER_BYTES + weights_bytes(network)


def weights_bytes(network: Any) -> int:
    """Memory of a network's weights [bytes]."""
    return sum(variable.shape.num_elements() * variable.dtype.size for variable in network.weights)


def take_weights(network: Any, content: bytes) -> None:
    """Give a network the weights in a file's content.

    Raises:
        ValueError: It is damaged, or its names, types and shapes are not the network's.
    """
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError) as error:
        raise ValueError(f"is no safetensors file: {error}") from error
    variables = _named(network)
    if odd := sorted(arrays.keys() ^ variables.keys()):
        raise ValueError(
            f"holds {len(arrays)} weights, network {network.name} has {len(variables)}; they "
            f"differ in {odd[0][:40]!r}"
        )
    for name, variable in variables.items():
        array = arrays[name]
        if (array.shape, array.dtype) != (tuple(variable.shape), variable.dtype.as_numpy_dtype):
            raise ValueError(
                f"{name} is {array.dtype} {array.shape}, network {network.name} has "
                f"{variable.dtype.name} {tuple(variable.shape)}"
            )
    for name, variable in variables.items():
        variable.assign(arrays[name])


def _named(network: Any) -> dict[str, Any]:
    return {
        f"{index:04d}.{variable.name.rpartition('/')[2].partition(':')[0]}": variable
        for index, variable in enumerate(network.weights)
    }
