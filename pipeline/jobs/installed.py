"""Checks that the packages that train are installed, without importing them."""

from importlib.util import find_spec
from sys import version_info

from catalog.errors import InvalidInput, not_installed

_TRAINS = (3, 11)
"""The one Python that the extra's TensorFlow runs on (docs/decisions/0004)."""


def need_installed(*modules: str) -> None:
    """Accept a machine that has the packages.

    Raises:
        InvalidInput: One is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            if version_info[:2] != _TRAINS:
                raise _of_another_python(module)
            raise not_installed(module, "train")


def _of_another_python(module: str) -> InvalidInput:
    needed, here = (".".join(map(str, version)) for version in (_TRAINS, version_info[:2]))
    return InvalidInput(
        f"{module} is not installed here, and cannot be: the extras 'train' and 'train-gpu' need "
        f"Python {needed} (this is {here}); install 'framesift[train]' under that, or have jobs "
        "run on machines that have it (--backend)"
    )
