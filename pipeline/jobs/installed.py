"""Whether the packages that train are on this machine, without importing them."""

from importlib.util import find_spec

from catalog.errors import InvalidInput


def need_installed(*modules: str) -> None:
    """Accept a machine that has the packages.

    Raises:
        InvalidInput: One is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            raise InvalidInput(
                f"{module} is not installed here: install framesift with the extra 'train'"
            )
