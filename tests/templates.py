"""Folders that a fixture makes once in a process, and each test then has a copy of."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


class Templates:
    """Folders made so far, each by a function of its own."""

    def __init__(self, folder: Path) -> None:
        """Keep them in a folder."""
        self._folder = folder
        self._made: dict[Callable[..., object], tuple[Path, object]] = {}

    def copy(self, make: Callable[[Path], Result], into: Path) -> Result:
        """Copy what a function makes in a folder into another one, which may exist.

        What it makes is closed when it returns, and does not say where it lies.

        Returns:
            What the function returned.
        """
        if make not in self._made:
            folder = self._folder / str(len(self._made))
            folder.mkdir()
            self._made[make] = folder, make(folder)
        folder, result = self._made[make]
        shutil.copytree(folder, into, dirs_exist_ok=True)
        return result  # type: ignore[return-value]
