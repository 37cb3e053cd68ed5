"""The commands that a scan prints for batch systems, in a folder whose path a shell would read."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.api.servers import FRAMESIFT, framesift
from tests.ingest.scene_folders import make_tree

pytestmark = pytest.mark.wide


def test_they_run_as_they_are_printed(tmp_path: Path) -> None:
    """As a task of a job array of Slurm and of LSF each; then the units are collected."""
    home, units = tmp_path / "home", tmp_path / "it's run[1] $HOME" / "units"
    framesift(home, "source", "add", "s", make_tree(tmp_path / "tree", 2))
    written = framesift(home, "ingest", "s", "--write-units", units)
    assert written.returncode == 0, written.stderr
    _, sbatch, bsub, collect = written.stdout.splitlines()
    assert shlex.split(sbatch)[:3] == ["sbatch", "--array=1-1", "--wrap"]
    assert shlex.split(bsub)[:3] == ["bsub", "-J", "count[1-1]"]
    path = f"{FRAMESIFT.parent}{os.pathsep}{os.environ['PATH']}"
    for line, number in ((sbatch, "SLURM_ARRAY_TASK_ID"), (bsub, "LSB_JOBINDEX")):
        script = shlex.split(line)[-1]
        environment = {**os.environ, "PATH": path, number: "1"}
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True)
        assert done.stdout == "unit 1: 2 frames counted\n", done.stderr
    collected = framesift(home, *shlex.split(collect.removeprefix("then: framesift")))
    assert "counted 2 frames" in collected.stdout, collected.stderr
