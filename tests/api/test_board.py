"""framesift board: which runs it opens, what it says, and how it ends."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from api.cli.commands.board import _named
from tests.api.servers import FRAMESIFT, environment, framesift, wait_until
from tests.api.test_command_line import one_error


def job_with_events(home: Path, name: str, *places: str) -> Path:
    """A job's folder with empty event files in places below it."""
    folder = home / "jobs" / name
    folder.mkdir(parents=True)
    for place in places:
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "events.out.tfevents.1700000000.host.1.0").touch()
    return folder


def test_names_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job's own where it has one folder of events; paths of several; none is there twice."""
    night = job_with_events(tmp_path, "night", "model/tensorboard")
    nights = job_with_events(tmp_path, "night-2", "output/a", "output/b")
    waits = job_with_events(tmp_path, "waits")
    other = job_with_events(tmp_path / "other", "night", "logs")
    folders = {"night": night, "night-2": nights, "waits": waits, str(other): other}
    assert dict(_named(folders)) == {
        "night": night / "model" / "tensorboard",
        "night-2/output/a": nights / "output" / "a",
        "night-2/output/b": nights / "output" / "b",
        "waits": waits,
        "night-2": other / "logs",
    }
    assert "waits: no events yet" in capsys.readouterr().err


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    """A job or folder that is not there, and a server, whose jobs lie elsewhere."""
    home = tmp_path / "home"
    job_with_events(home, "night", "model/tensorboard")
    one_error(
        framesift(home, "board", "night", "nigh"), "run 'nigh'", "no job of that name", "jobs list"
    )
    one_error(framesift(home, "board", "./night"), "run './night'", "no folder")
    run = framesift(home, "--server", "http://127.0.0.1:9", "board", "night")
    one_error(run, "'framesift board' works on a home on its own machine", "event files")


@pytest.mark.wide
def test_without_tensorboard(tmp_path: Path) -> None:
    """It says what to install; a failing TensorBoard is told by its last line."""
    job_with_events(tmp_path, "night", "model/tensorboard")
    hidden = "import sys; sys.modules['tensorboard'] = None\n"
    code = (
        f"{hidden}sys.argv = ['framesift', 'board', 'night']\nfrom api.cli.main import main\nmain()"
    )
    (tmp_path / "bin").mkdir()
    for failing in (False, True):
        if failing:
            program = tmp_path / "bin" / "tensorboard"
            program.write_text(
                "#!/bin/sh\necho starts >&2\necho 'port 6006 is in use' >&2\nexit 3\n"
            )
            program.chmod(0o755)
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False,
            env=environment(tmp_path, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}),
        )  # fmt: skip
        if failing:
            one_error(run, "TensorBoard ended with exit code 3: port 6006 is in use")
        else:
            one_error(run, "tensorboard is not installed here", "pip install tensorboard")


@pytest.mark.training
def test_two_runs_in_tensorboard(tmp_path: Path) -> None:
    """Both are served by their names, a third is not; Ctrl-C and SIGTERM end both processes."""
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

    for name, value in (("night", 0.5), ("night-2", 0.25), ("not-asked", 9.0)):
        folder = job_with_events(tmp_path, name) / "model" / "tensorboard"
        events = writer.EventFileWriter(str(folder))
        summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
        events.add_event(Event(step=7, wall_time=1.7e9, summary=summary))
        events.close()
    for stop, ended in ((signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)):
        process = subprocess.Popen(
            [FRAMESIFT, "board", "night", "night-2", "--port", "0"],
            env=environment(tmp_path, {"TF_CPP_MIN_LOG_LEVEL": "3"}),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = re.fullmatch(r"TensorBoard shows night, night-2 on (\S+); Ctrl-C ends it\n", line)
            assert url, (line, process.communicate())
            if stop == signal.SIGINT:
                until_served(url[1], {"night": 0.5, "night-2": 0.25})
            (child,) = children(process.pid)
        finally:
            process.send_signal(stop)
            process.communicate(timeout=300)
        assert process.returncode == ended
        wait_until(partial(is_gone, child))


def until_served(url: str, losses: dict[str, float]) -> None:
    """Wait until TensorBoard serves these runs' losses, and no others."""

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"{url}data/plugin/scalars/{path}", timeout=60) as answer:
            return json.load(answer)

    until = time.monotonic() + 300
    while {*ask("tags")} != {*losses}:
        assert time.monotonic() < until
        time.sleep(0.2)
    for run, loss in losses.items():
        ((_, step, value),) = ask(f"scalars?run={run}&tag=loss")
        assert (step, value) == (7, loss)


def is_gone(process: int) -> bool:
    """Whether a process has ended."""
    return not Path(f"/proc/{process}").exists()


def children(process: int) -> list[int]:
    """Numbers of a process's children."""
    tasks = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(number) for number in tasks.split()]
