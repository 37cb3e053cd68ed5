"""Runs the training package's commands as real processes."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.zygote import ForkedTraining, rank_address, run_python

REPOSITORY = Path(__file__).resolve().parents[2]
ONE_THREAD = ("--threads", "1")
SMALL = ("--height", "64", "--width", "96", *ONE_THREAD)
# With a network of two layers: small_unet's graph is 4 s of CPU in each process.
NETWORK = ("--model", "tests.training.own_networks:two_layers")
TINY = (*SMALL, *NETWORK)

# TensorFlow takes seconds to import, so several runs may share a process; each is still the
# whole command, from flags to exit status.
_SEVERAL = """
import contextlib, io, json, sys
from training.main import main
ended = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as stop:
            status = stop.code
    ended.append([status, out.getvalue(), err.getvalue()])
print(json.dumps([ended, [name for name in ("horovod", "tensorflow") if name in sys.modules]]))
"""


_SIGNALLED = """
import os, signal, sys
import training.train
from training.main import main
signals = {signals}
rate_at = training.train.learning_rate_at
def rate_then_signal(step, *more):
    if step in signals:
        os.kill(os.getpid(), signals[step])
    return rate_at(step, *more)
training.train.learning_rate_at = rate_then_signal
sys.exit(main(sys.argv[1:]))
"""


def signalled(signals: Mapping[int, int]) -> str:
    """Code of the training program that gets these signals, by the steps that they come in."""
    return _SIGNALLED.format(signals={step: int(number) for step, number in signals.items()})


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: "), self.err
        return lines[0].removeprefix("error: ")


def start(*command: str | Path, launcher: Sequence[str] = ()) -> "subprocess.Popen[str]":
    """A process of Python with these arguments, in a session of its own."""
    return subprocess.Popen(
        [*launcher, sys.executable, *map(str, command)],
        cwd=REPOSITORY,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(*command: str | Path, launcher: Sequence[str] = (), timeout_s: float = 900) -> Ended:
    """Run Python with these arguments to its end."""
    with start(*command, launcher=launcher) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    return Ended(process.returncode, out, err)


def run_forked(*command: str | Path) -> Ended:
    """Run Python with these arguments by a fork, for which nothing is left to import."""
    ended = run_python(*command)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def run_tensorflow(*command: str | Path, launcher: Sequence[str] = ()) -> Ended:
    """The same of a process that has imported TensorFlow, or of a launcher's ranks."""
    if launcher:
        return run(REPOSITORY / "tests/forked_rank.py", rank_address(), *command, launcher=launcher)
    ended = run_python(*command, forked=ForkedTraining)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def run_several(*runs: Sequence[str | Path]) -> list[Ended]:
    """Run the training program with each argument list in one process; how each ended."""
    return _ended(run_tensorflow("-c", _SEVERAL, _as_json(runs)))[0]


def run_several_importing(*runs: Sequence[str | Path]) -> tuple[list[Ended], list[str]]:
    """The same in a new process.

    Returns:
        How each ended, and which of "horovod" and "tensorflow" were imported in the end.
    """
    return _ended(run("-c", _SEVERAL, _as_json(runs)))


def _as_json(runs: Sequence[Sequence[str | Path]]) -> str:
    return json.dumps([[str(argument) for argument in arguments] for arguments in runs])


def _ended(process: Ended) -> tuple[list[Ended], list[str]]:
    assert process.status == 0, process.err
    statuses, imported = json.loads(process.out.splitlines()[-1])
    return [Ended(*one) for one in statuses], imported


def horovodrun(workers: int) -> list[str]:
    """The launcher for so many workers on this machine."""
    return [
        sys.executable, "-P", "-m", "training.local_ranks", "-np", str(workers),
        "-H", f"localhost:{workers}", "--gloo",
        "--start-timeout", "600", "--gloo-timeout-seconds", "120",
    ]  # fmt: skip
