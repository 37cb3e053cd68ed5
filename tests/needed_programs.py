"""Programs that a test asks for beside Python's, and that a machine may not have."""

import shutil

import pytest


def needs(*programs: str) -> None:
    """Skip the test where one of the programs is not installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
