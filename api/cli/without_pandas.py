"""A process in which pandas is as if it were not installed."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=fullname)
        return None


def do_without_pandas() -> None:
    """Refuse to import it from now on.

    DuckDB looks for pandas' kinds of null in every value that is bound to a statement, and Arrow in
    every list that it makes an array of. Where pandas is installed both import it for that, which
    takes a fifth of a second, and commands have no such values.
    """
    sys.meta_path.insert(0, _NoPandas())
