"""Horovod's launcher as trainings on one machine start it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.homes import REPOSITORY

pytestmark = pytest.mark.training

_RANK = """
import signal, sys, time
from pathlib import Path
def end(*_):
    time.sleep(7)  # a checkpoint of a large network, on a slow disk
    Path(sys.argv[1]).touch()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
print("began", flush=True)
time.sleep(300)
"""


def test_a_rank_has_time_for_its_last_checkpoint(tmp_path: Path) -> None:
    """Only the launcher is told to end; Horovod's own kills ranks five seconds later."""
    (program := tmp_path / "rank.py").write_text(_RANK)
    launcher = subprocess.Popen(
        [
            sys.executable, "-P", "-m", "training.local_ranks", "-np", "1", "--gloo",
            sys.executable, str(program), str(tmp_path / "checkpoint"),
        ],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert launcher.stdout is not None
        assert any("began" in line for line in launcher.stdout)
        launcher.send_signal(signal.SIGTERM)
        launcher.communicate(timeout=300)
    finally:
        launcher.kill()
    assert (tmp_path / "checkpoint").exists()
