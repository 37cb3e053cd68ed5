"""Machine code that Numba keeps is not used when a kernel that it calls changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wide

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import numpy as np
from ingest.labels.rgb_rows import class_ids_of_rows
class_of = np.zeros(2**24, np.uint8)
class_of[0xFF0000] = 7  # red
ids = np.empty((1, 2), np.uint8)
class_ids_of_rows(np.array([0, 255, 0, 0, 255, 0, 0], np.uint8), class_of, ids)
print(*ids[0])
"""


def test_a_called_kernel_changes(tmp_path: Path) -> None:
    """A change of run_kernel counts in rgb_rows, whose own file has not changed."""
    for package in ("catalog", "ingest"):
        shutil.copytree(
            REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}

    def class_ids() -> str:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return run.stdout.strip()

    assert class_ids() == "7 7"
    kernel = tmp_path / "ingest" / "labels" / "run_kernel.py"
    source = kernel.read_text()
    of_pixel = "return red << np.uint64(16) | value & np.uint64(0xFF00) | blue"
    assert of_pixel in source
    kernel.write_text(source.replace(of_pixel, "return np.uint64(0)"))
    assert class_ids() == "0 0"
