"""The networks that a model.json may name; each is built by code of this package alone."""

from collections.abc import Callable, Mapping
from typing import Any

from catalog.errors import UnknownName
from training.network.model import NETWORK, build_model

_NETWORKS: Mapping[str, Callable[[int, int, int], Any]] = {NETWORK: build_model}


def build_network(name: str, height_px: int, width_px: int, n_classes: int) -> Any:
    """The untrained network of that name, a keras.Model: see `training.network.model.build_model`.

    Raises:
        UnknownName: There is none.
    """
    if name not in _NETWORKS:
        raise UnknownName("network", name, _NETWORKS)
    return _NETWORKS[name](height_px, width_px, n_classes)
