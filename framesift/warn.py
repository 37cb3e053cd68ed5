"""Warnings at the line of the program that calls this package."""

import sys
import warnings
from pathlib import Path

from framesift.errors import FramesiftWarning

_PACKAGE = f"{Path(__file__).parent}/"


def warn(message: str) -> None:
    """Warn; Python shows the line of the program that called this package."""
    level = 1
    while sys._getframe(level - 1).f_code.co_filename.startswith(_PACKAGE):
        level += 1
    warnings.warn(message, FramesiftWarning, stacklevel=level)
