"""`framesift.data.torch` in an environment of PyTorch (make test-readers)."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.exports.test_training_exports import Drawn
from tests.pipeline.homes import REPOSITORY


@pytest.mark.readers
def test_in_an_environment_of_pytorch(tmp_path: Path) -> None:
    """What torch_door.py holds."""
    drawn = Drawn(tmp_path / "drawn")
    run = subprocess.run(
        [
            REPOSITORY / ".venv-readers" / "bin" / "python", "-m", "pytest", "-q", "--noconftest",
            "-c", os.devnull, "--rootdir", REPOSITORY, "-p", "no:cacheprovider",
            "tests/framesift/torch_door.py",
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "DRAWN_MANIFEST": str(drawn.folder)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout
