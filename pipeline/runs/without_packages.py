"""A process in which some packages are as if they were not installed."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NotInstalled(MetaPathFinder):
    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname in self._packages:
            raise ModuleNotFoundError(f"this process does without {fullname}", name=fullname)
        return None


def do_without(*packages: str) -> None:
    """Refuse to import these top-level packages from now on.

    It is for optional companions that libraries import wherever they are installed, and that this
    process has no use for. DuckDB looks for pandas' kinds of null in every value that is bound to a
    statement, and Arrow in every list that it makes an array of: a fifth of a second. TensorFlow
    imports SciPy, boto3 and fsspec, too.
    """
    sys.meta_path.insert(0, _NotInstalled(frozenset(packages)))
