"""Checks that the packages that train are installed, without importing them."""

from importlib.util import find_spec

from catalog.errors import not_installed


def need_installed(*modules: str) -> None:
    """Accept a machine that has the packages.

    Raises:
        InvalidInput: One is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise not_installed(module, "train")
