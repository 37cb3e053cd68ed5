"""Packages that only some forms of an answer need."""

from importlib import import_module
from typing import Any

from framesift.errors import MissingPackage

_INSTALLED_AS = {"PIL": "Pillow", "pandas": "pandas>=2.2,<3"}


def imported(module: str) -> Any:
    """A module, imported when it is needed.

    Raises:
        MissingPackage: It is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackage(
            f"this form of the answer needs {package}, which cannot be imported ({error}): "
            f"pip install '{_INSTALLED_AS.get(package, package)}'"
        ) from error
