"""framesift board: TensorBoard over the events of jobs and folders."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from api.cli import destination
from api.cli.sigterm import sigterm_exits
from api.cli.terminal import stderr, stdout
from catalog.errors import FramesiftError, InvalidInput

_EVENTS = "events.out.tfevents.*"
_URL = re.compile(r"TensorBoard \S+ at (http://\S+)")
_END_S = 20
"""Seconds that TensorBoard has to end by itself."""

_KEPT_LINES = 20
"""Of what TensorBoard says: printed where it does not start."""


def board(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN", help="Jobs, or folders with event files.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to listen on; TensorBoard asks nobody for a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free port.")] = 6006,
) -> None:
    """Show curves of jobs side by side in TensorBoard, until Ctrl-C.

    A training writes its curves as TensorBoard's events, and so may a program of your own, anywhere
    below {job}. TensorBoard is not part of Framesift: the one beside TensorFlow is taken, else that
    on PATH.
    """
    program = _tensorboard()
    folders = {run: _folder(run) for run in runs}
    with TemporaryDirectory(prefix="framesift-board-") as logs:
        for name, folder in _named(folders):
            link = Path(logs) / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(folder, target_is_directory=True)
        listens = ["--host", host, "--port", str(port)]
        with sigterm_exits():
            _follow([*program, "--logdir", logs, *listens], list(folders))


def _tensorboard() -> list[str]:
    """The command of TensorBoard, in this environment or on PATH.

    Raises:
        InvalidInput: There is none.
    """
    if find_spec("tensorboard") is not None:
        return [sys.executable, "-m", "tensorboard.main"]
    program = shutil.which("tensorboard")
    if program is None:
        raise InvalidInput(
            "tensorboard is not installed here: install it into any environment whose bin is on "
            "PATH (pip install tensorboard); the extra train has it with TensorFlow"
        )
    return [program]


def _folder(run: str) -> Path:
    """The folder of a job, or a folder.

    Raises:
        InvalidInput: It is neither.
    """
    of_job = None
    if "/" not in run and run not in ("", ".", ".."):
        of_job = destination.home().jobs / run
        if of_job.is_dir():
            return of_job.absolute()
    folder = Path(run).expanduser()
    if run and folder.is_dir():
        return folder.absolute()
    jobs = "" if of_job is None else f" and no job of that name in {of_job.parent}"
    raise InvalidInput(
        f"run {run!r}: no folder{jobs}; 'framesift jobs list' lists jobs, a folder needs its path"
    )


def _named(folders: dict[str, Path]) -> Iterator[tuple[str, Path]]:
    """Each folder of events by the name that TensorBoard shows, which is the run's where it can."""
    taken: dict[str, int] = {}
    for run, folder in folders.items():
        name = folder.name or "root"
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:  # folders of one name, from different places
            name = f"{name}-{taken[name]}"
        events = sorted({file.parent for file in folder.rglob(_EVENTS)})
        if not events:
            stderr.print(f"{run}: no events yet below {folder}; TensorBoard goes on looking")
            events = [folder]
        for below in events:
            # A job's model/tensorboard is the job's; of several folders each has its path.
            yield name if len(events) == 1 else str(Path(name, below.relative_to(folder))), below


def _end(process: subprocess.Popen[str]) -> None:
    """End TensorBoard while its output is open: it says that it ends, or else goes on without it.

    It keeps nothing that a kill could lose.
    """
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _follow(command: Sequence[str], runs: Sequence[str]) -> None:
    """Say where TensorBoard listens, and wait until it or this command is ended.

    Raises:
        FramesiftError: It ended by itself.
    """
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        said: list[str] = []
        try:
            assert process.stderr is not None
            for line in process.stderr:
                said = [*said[1 - _KEPT_LINES :], line.strip()]
                if url := _URL.search(line):
                    names = ", ".join(runs)
                    stdout.print(f"TensorBoard shows {names} on {url[1]}; Ctrl-C ends it")
                    sys.stdout.flush()
        except KeyboardInterrupt:
            return
        finally:
            _end(process)
        last = [line for line in said if line]
        raise FramesiftError(
            f"TensorBoard ended with exit code {process.wait()}: "
            f"{last[-1] if last else 'it said nothing'}"
        )
