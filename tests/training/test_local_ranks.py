"""Horovod's launcher as trainings on one machine start it."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

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
    launcher = _launch(program, tmp_path / "checkpoint")
    try:
        _terminate(launcher)
    finally:
        launcher.kill()
    assert (tmp_path / "checkpoint").exists()
    assert launcher.returncode == 1


def test_the_exit_code_of_an_ended_rank(tmp_path: Path) -> None:
    """Horovod's own end of a rank waits for its shell beside this wait, of which one reads 0."""
    from horovod.runner.common.util import safe_shell_exec

    import training.local_ranks

    end_rank = safe_shell_exec.terminate_executor_shell_and_children
    assert end_rank.__module__ == training.local_ranks.__name__
    (program := tmp_path / "rank.py").write_text(_RANK.replace("sleep(7)", "sleep(0)"))
    codes = [
        _ended_while_waited_for(shell % (sys.executable, program), end_rank) for shell in _SHELLS
    ]
    assert codes == [1] * len(_SHELLS)


_SHELLS = ("A=1 %s %s none", "exec %s %s none") * 15
"""With the rank as the shell's child, and in the shell's place."""


def _ended_while_waited_for(command: str, end_rank: Callable[[int], None]) -> int:
    shell = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    assert "began" in shell.stdout.readline()
    ending = Thread(target=end_rank, args=[shell.pid])
    ending.start()
    code = shell.wait(timeout=60)
    ending.join()
    shell.stdout.close()
    return code


def _launch(program: Path, checkpoint: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable, "-P", "-m", "training.local_ranks", "-np", "1", "--gloo",
            sys.executable, str(program), str(checkpoint),
        ],
        cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _terminate(launcher: subprocess.Popen[str]) -> None:
    assert launcher.stdout is not None
    assert any("began" in line for line in launcher.stdout)
    launcher.send_signal(signal.SIGTERM)
    launcher.communicate(timeout=300)
