"""Runs one local job: stage after stage, and says in status.json how it went.

Started by `pipeline.jobs.local` as ``python -m pipeline.jobs.local_runner FOLDER``. When one
command fails, its stage's others are ended, and the job has failed.
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from pipeline.jobs.request import JobPaths, JobRequest, Stage, read_json, write_json

_GRACE_S = 10.0
_POLL_S = 0.05


class _Cancelled(Exception):
    """SIGTERM came."""


def main(folder: Path) -> int:
    """Run the job in ``folder``; 0 when it was done."""
    signal.signal(signal.SIGTERM, _cancel)
    signal.signal(signal.SIGINT, _cancel)
    paths = JobPaths(folder)
    request = JobRequest.from_json(read_json(paths.request))
    status = {"state": "running", "started": _now()}
    write_json(paths.status, status)
    state, error = "done", ""
    try:
        for stage in request.stages:
            write_json(paths.status, {**status, "stage": stage.title})
            error = _run_stage(stage, request, paths)
            if error:
                state = "failed"
                break
    except _Cancelled:
        state, error = "cancelled", "cancelled"
    write_json(paths.status, {**status, "state": state, "error": error, "finished": _now()})
    return 0 if state == "done" else 1


def _run_stage(stage: Stage, request: JobRequest, paths: JobPaths) -> str:
    """Why the stage failed; empty when all its commands succeeded."""
    waiting = deque(enumerate(stage.commands))
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < request.parallel:
                index, command = waiting.popleft()
                running[index] = _start(command, request, paths.log(stage.title, index))
            for index, process in list(running.items()):
                code = process.poll()
                if code is None:
                    continue
                del running[index]
                if code != 0:
                    return _reason(stage.title, index, code, paths.log(stage.title, index))
            time.sleep(_POLL_S)
    finally:
        _end(running)
    return ""


def _start(command: tuple[str, ...], request: JobRequest, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **request.environment},
            start_new_session=True,
        )


def _end(running: dict[int, subprocess.Popen[bytes]]) -> None:
    """End what still runs, with all it started: first asked, then killed."""
    for process in running.values():
        _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_S
    for process in running.values():
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal_group(process, signal.SIGKILL)
            process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _reason(title: str, index: int, code: int, log: Path) -> str:
    """The command's own last error line, or its exit code."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    for line in reversed(lines):
        _, marker, message = line.partition("error: ")
        if marker:
            return f"{message.strip()} ({title} {index}, log {log})"
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{title} {index} {how}; see {log}"


def _cancel(_number: int, _frame: FrameType | None) -> None:
    raise _Cancelled


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
