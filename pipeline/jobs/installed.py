"""Checks that what trainings import is installed, without importing it; users' networks, too."""

from importlib.util import find_spec
from sys import version_info

from catalog.errors import InvalidInput, not_installed
from pipeline.runs.networks import is_own

_TRAINS = (3, 11)
"""The one Python that the extra's TensorFlow runs on (docs/decisions/0004)."""


_OF_EXTRA = ("tensorflow", "horovod", "matplotlib")
_OF_ANY_PYTHON = {"onnxruntime": "onnx"}
"""Packages that run on each Python that Framesift does, and the extra of each."""


def training_packages(workers: int, network: str | None) -> tuple[str, ...]:
    """The packages that a training imports; a network of the user's own has one, too."""
    return (*(("tensorflow", "horovod") if workers > 1 else ("tensorflow",)), *package_of(network))


def package_of(network: str | None) -> tuple[str, ...]:
    """The package or module of a network of the user's own; empty for none.

    Of `my_pkg.nets:two` it is `my_pkg`: to look for what is inside would import that.
    """
    if network is None or not is_own(network):
        return ()
    return (network.partition(":")[0].partition(".")[0],)


def need_installed(*modules: str) -> None:
    """Accept a machine that has the packages.

    Raises:
        InvalidInput: One is not installed.
    """
    for module in modules:
        if not _is_there(module):
            if module in _OF_ANY_PYTHON:
                raise not_installed(module, _OF_ANY_PYTHON[module])
            if module == "torch":
                raise InvalidInput(
                    "torch is not installed here: install PyTorch into Framesift's environment on "
                    "the machines of the ranks, or leave out through torch"
                )
            if module not in _OF_EXTRA:
                raise InvalidInput(
                    f"module {module}, which a network is of: Python finds none of that name here; "
                    "install it, or put its folder on PYTHONPATH"
                )
            if version_info[:2] != _TRAINS:
                raise _of_another_python(module)
            raise not_installed(module, "train")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ValueError:  # __main__
        return False


def _of_another_python(module: str) -> InvalidInput:
    needed, here = (".".join(map(str, version)) for version in (_TRAINS, version_info[:2]))
    return InvalidInput(
        f"{module} is not installed here, and cannot be: the extras 'train' and 'train-gpu' need "
        f"Python {needed} (this is {here}); install one of them under that, or have jobs run on "
        "machines that have it (--backend)"
    )
