"""Names of the networks that a training may build. A leaf."""

import re

from catalog.errors import InvalidInput, UnknownName
from framesift_start import OWN

SMALL_UNET = "small_unet"
DEEPLAB = "deeplabv3plus_resnet50"
NETWORKS = (SMALL_UNET, DEEPLAB)

_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def is_own(name: str) -> bool:
    """Return whether a name is of the user's own network, "module:function"."""
    return ":" in name


def check_network(name: str) -> None:
    """Accept the name of a network.

    Raises:
        UnknownName: There is none of that name.
        InvalidInput: It is no "module:function".
    """
    if is_own(name):
        if len(name) > 128 or not _OWN.fullmatch(name):
            raise InvalidInput(f"network {ascii(name)[:60]}: expected MODULE:FUNCTION")
        if (package := re.split("[.:]", name)[0]) in OWN:
            raise InvalidInput(
                f"network {name}: Python finds Framesift's own package {package} under this name, "
                "and not your module; give your module another name, such as my_nets"
            )
    elif name not in NETWORKS:
        raise UnknownName("network", name, NETWORKS, "Or name your own, MODULE:FUNCTION.")


def check_backbone(network: str, weights: object) -> None:
    """Accept a file of a backbone's weights, or None, for a network.

    Raises:
        InvalidInput: The network has no such backbone.
    """
    if weights is not None and network != DEEPLAB:
        raise InvalidInput(
            f"backbone weights: network {network} has no such backbone; {DEEPLAB} has"
        )
