"""The checkpoints that a user's program names, and the one that an attempt of it goes on from.

The program writes `checkpoints.json` in its folder {job}, aside and renamed:

    {"checkpoints": [{"step": 120, "path": "step-120.pt", "metrics": {"miou": 0.31}}]}

A path is that of a file or folder in {job}; `bytes`, where an entry has it, is the file's size. To
remove what is no longer named is the program's part: nothing is deleted for it.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from catalog.errors import BadFile
from catalog.storage.atomic_write import atomic_path
from pipeline.jobs.program.made import output_document
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import read_json, write_json

LIST_FILE = "checkpoints.json"

MOST_CHECKPOINTS = 100
"""Known of a program: those of the highest steps."""

_MOST_BYTES = 1 << 20
_MOST_METRICS = 8
_LONGEST_PATH, _LONGEST_NAME = 1024, 200
_MOST_VALUE = 1e300
_FORM = '{"checkpoints": [{"step": 120, "path": "step-120.pt"}]}'


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that a program names, which is there."""

    step: int
    """After which it was written."""
    path: str
    """Of the file or folder, in {job}."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Some of what the program says of it."""

    def as_json(self) -> dict[str, Any]:
        """The checkpoint as metrics of jobs have it."""
        return {"step": self.step, "path": self.path, "metrics": dict(self.metrics)}


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of a program's job."""

    whole: tuple[Checkpoint, ...] = ()
    """Those that are there, by ascending step."""
    warnings: tuple[str, ...] = ()
    """What the program's author should know of the others."""


def checkpoints_of(folder: Path) -> Checkpoints:
    """The checkpoints that the program of a job names by now.

    Args:
        folder: The job's.
    """
    try:
        rows = output_document(folder, LIST_FILE, _MOST_BYTES).get("checkpoints", [])
    except BadFile as error:
        return Checkpoints((), (f"{LIST_FILE}: {error.reason}; expected {_FORM}",))
    if not isinstance(rows, list):
        return Checkpoints((), (f"{LIST_FILE}: checkpoints are no list; expected {_FORM}",))
    output = ProgramPaths(folder).output
    checkpoints: dict[int, Checkpoint] = {}
    faults = []
    for row in rows:
        try:
            checkpoint = _checkpoint(row, output)
        except ValueError as error:
            faults.append(str(error))
        else:
            checkpoints[checkpoint.step] = checkpoint
    steps = sorted(checkpoints)[-MOST_CHECKPOINTS:]
    warnings = []
    if faults:
        warnings.append(
            f"{LIST_FILE}: {len(faults):,} of {len(rows):,} left out; the first {faults[0]}"
        )
    return Checkpoints(tuple(checkpoints[step] for step in steps), tuple(warnings))


def _checkpoint(row: Any, output: Path) -> Checkpoint:
    """The checkpoint of an entry.

    Raises:
        ValueError: It is none, or its file is not whole.
    """
    step, path = (row.get("step"), row.get("path")) if isinstance(row, dict) else (None, None)
    if type(step) is not int or not 0 <= step < 1 << 63:
        raise ValueError("has no whole number as step")
    if not isinstance(path, str) or not 0 < len(path) <= _LONGEST_PATH or not path.isprintable():
        raise ValueError(f"of step {step:,} has no path")
    parts = PurePosixPath(path).parts
    if not parts or PurePosixPath(path).is_absolute() or ".." in parts:
        raise ValueError(f"of step {step:,}: {path} is no path in {{job}}")
    target = output / path
    try:
        real = target.resolve(strict=True)
        if real != output.resolve() / path:
            raise ValueError(f"of step {step:,}: {path} is a link, or lies behind one")
        size = real.stat().st_size
        if real.is_file():
            is_whole = size == row.get("bytes", size) and size > 0
        else:
            is_whole = real.is_dir() and any(real.iterdir())
    except (OSError, RuntimeError) as error:  # a loop of links
        raise ValueError(f"of step {step:,}: {path} is not there") from error
    if not is_whole:
        raise ValueError(f"of step {step:,}: {path} is empty, or not as long as its bytes say")
    return Checkpoint(step, str(PurePosixPath(path)), _metrics(row.get("metrics")))


def _metrics(data: Any) -> dict[str, float]:
    """The first numbers that an entry has."""
    rows = data.items() if isinstance(data, dict) else ()
    numbers = {
        name: value
        for name, value in rows
        if name.isprintable() and len(name) <= _LONGEST_NAME
        and isinstance(value, int | float) and not isinstance(value, bool)
        and abs(value) <= _MOST_VALUE
    }  # fmt: skip
    return dict([*numbers.items()][:_MOST_METRICS])


def copy_checkpoint(folder: Path, named: str, path: Path) -> Path:
    """The copy of another job's checkpoint in a job's folder: its program may go on and remove it.

    Args:
        folder: The job's.
        named: NAME@STEP.
        path: Of the file or folder.

    Raises:
        BadFile: Its job has removed it.
        StorageError: The disk refuses, or it has what is no file.
    """
    copy = ProgramPaths(folder).first_checkpoint / named / path.name
    if copy.exists():
        return copy
    if not path.exists():
        raise BadFile(f"checkpoint {named} is gone: its job has removed it", str(path))
    with atomic_path(copy.parent, is_folder=True, parents=True) as partial:
        if path.is_dir():
            shutil.copytree(path, partial / path.name, symlinks=True)
        else:
            shutil.copyfile(path, partial / path.name)
    return copy


def note_checkpoint(folder: Path, first: Path | None) -> str:
    """Note what an attempt goes on from, which all its ranks are told; the words that say it.

    Args:
        folder: The job's.
        first: What it begins with until it has a checkpoint of its own; None for nothing.
    """
    own = _newest(folder)
    write_json(ProgramPaths(folder).checkpoint, {"path": own or (str(first) if first else "")})
    return f"; the program goes on from {own or first}" if own or first else ""


def noted_checkpoint(folder: Path, *, begins_again: bool) -> str:
    """The path of what a program goes on from; empty for nothing.

    Args:
        folder: The job's.
        begins_again: Whether its attempt was put back into the queue, and may have newer ones.
    """
    own = _newest(folder) if begins_again else ""
    return own or str(read_json(ProgramPaths(folder).checkpoint).get("path", ""))


def _newest(folder: Path) -> str:
    complete = checkpoints_of(folder).whole
    return str(ProgramPaths(folder).output / complete[-1].path) if complete else ""
