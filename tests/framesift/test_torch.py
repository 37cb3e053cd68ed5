"""`framesift.data.torch` in an environment of PyTorch (make test-readers)."""

import os
import subprocess
from pathlib import Path

import pytest

from api.workspace import Workspace
from pipeline.cache.limits import Limits, write_limits
from pipeline.staging.stage_concurrently import SplitReading
from tests.exports.test_training_exports import Drawn
from tests.framesift.test_waiting import handed_over
from tests.pipeline.conftest import workspace
from tests.pipeline.homes import REPOSITORY
from tests.pipeline.test_datasets import make
from tests.pipeline.test_reading_through import beside, size_of

__all__ = ["workspace"]  # a fixture


@pytest.mark.readers
def test_in_an_environment_of_pytorch(workspace: Workspace, tmp_path: Path) -> None:
    """What torch_door.py holds; a part of it reads through a cache that a staging fills."""
    drawn = Drawn(tmp_path / "drawn")
    dataset, cache, staged = make(workspace), tmp_path / "cache", tmp_path / "manifest"
    write_limits(cache, Limits(hard_bytes=size_of(dataset) // 2))
    with beside(workspace, dataset, cache, SplitReading(None)) as staging:
        handed_over(staging, staged)
        run = subprocess.run(
            [
                REPOSITORY / ".venv-readers" / "bin" / "python", "-m", "pytest", "-q",
                "--noconftest", "-c", os.devnull, "--rootdir", REPOSITORY,
                "-p", "no:cacheprovider", "tests/framesift/torch_door.py",
            ],
            cwd=REPOSITORY,
            env={
                **os.environ, "PYTHONPATH": str(REPOSITORY), "DRAWN_MANIFEST": str(drawn.folder),
                "STAGED_MANIFEST": str(staged), "SOURCE_MANIFEST": dataset.manifest,
            },
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    assert staging.error is None
    assert 0 < staging.most <= size_of(dataset) // 2
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.readers
def test_the_client_alone(tmp_path: Path) -> None:
    """Frames and their order need nothing else of Framesift; a class map says that it does."""
    drawn = Drawn(tmp_path / "drawn")
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "framesift").symlink_to(REPOSITORY / "framesift")
    program = """\
import sys
from framesift.data import open_frames
from framesift.data.torch import FrameSampler, TorchFrames
from framesift.errors import MissingPackage
frames = TorchFrames(open_frames(sys.argv[1]))
print([tuple(frames[index][0].shape) for index in FrameSampler(frames, seed=1)])
try:
    TorchFrames(frames.frames, classes="cityscapes-19")
except MissingPackage as error:
    print(error)
"""
    run = subprocess.run(
        [REPOSITORY / ".venv-readers" / "bin" / "python", "-c", program, drawn.folder],
        cwd=tmp_path / "client", env={**os.environ, "PYTHONPATH": str(tmp_path / "client")},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    shapes, error = run.stdout.splitlines()
    assert shapes == str([(3, 64, 96)] * 7)
    assert error.startswith("a class map needs all of Framesift")
