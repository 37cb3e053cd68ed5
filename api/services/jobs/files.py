"""Files that a job left on disk and callers may read: logs, and others by a list of names."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, NotFound, UnknownName
from catalog.records.tables import Job
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.request import JobPaths, read_json
from pipeline.jobs.workflow.moves import POSITIONS, RUN, step_paths

_CHUNK = 1 << 20

_OUTPUT = "output/"
"""Begins the names of what a user's program made."""

_RESULT = {"result.json": "application/json"}

_FILES = {
    **dict.fromkeys(("scan", "stage", "extract", "policy", "run"), _RESULT),
    "validate": {
        **_RESULT,
        "report.html": "text/html; charset=utf-8",
        "report.json": "application/json",
        "metrics.json": "application/json",
        "confusion_matrix.png": "image/png",
        "frame_scores.parquet": "application/vnd.apache.parquet",
        "frame_cells.parquet": "application/vnd.apache.parquet",
    },
    "predict": {
        **_RESULT,
        "metrics.json": "application/json",
        "frame_scores.parquet": "application/vnd.apache.parquet",
    },
    "train": {
        **_RESULT,
        "metrics.json": "application/json",
        "metrics.jsonl": "application/x-ndjson",
        "evaluations.jsonl": "application/x-ndjson",
        "run.json": "application/json",
        "bad_frames.json": "application/json",
        "mlperf.log": "text/plain; charset=utf-8",
    },
}
"""Files of a job by its kind, with their media types; no other is given away."""


@dataclass(frozen=True)
class JobFile:
    """A file of a job, which is there."""

    path: Path
    media_type: str

    def document(self) -> dict[str, Any]:
        """The JSON object in it."""
        return read_json(self.path)


_OF_SERVER = ("run.json",)
"""Files that tell paths, machine and variables: for those who are told every path."""


def report_file(job: Job, name: str, *, tells_paths: bool) -> JobFile:
    """A file of a job.

    Args:
        job: The job.
        name: The file.
        tells_paths: Whether the caller is told every path of the server.

    Raises:
        NotFound: Jobs of its kind have no such file, or this one has none yet.
    """
    known = {
        each: media_type
        for each, media_type in _FILES.get(job.kind, {}).items()
        if tells_paths or each not in _OF_SERVER
    }
    paths = JobPaths(Path(job.paths["folder"]))
    if job.kind == "run" and name.startswith(_OUTPUT):
        return _output(job, paths, name)
    report = dict.fromkeys(("validate", "predict"), paths.report)
    folder = {"train": paths.model, **report}.get(job.kind, paths.folder)
    if name in _RESULT:
        folder = paths.folder
    if name not in known or not (folder / name).is_file():
        hint = f"a job of kind {job.kind} has {', '.join(known) or 'none'}"
        raise NotFound("file", name[:80], f"{hint}; {job.name} is {job.state}")
    return JobFile(folder / name, known[name])


def _output(job: Job, paths: JobPaths, name: str) -> JobFile:
    """A file that a user's program made, of those that were collected.

    Raises:
        NotFound: None of that name was.
    """
    known = {_OUTPUT + row["path"] for row in read_json(paths.result).get("outputs", ())}
    folder = ProgramPaths(paths.folder).output
    path = folder / name.removeprefix(_OUTPUT)
    # A link that took its place since would show another file.
    if (
        name not in known
        or path.is_symlink()
        or path.resolve() != folder.resolve() / path.relative_to(folder)
    ):
        raise NotFound(
            "file", name[:80], f"result.json names what {job.name} made; it is {job.state}"
        )
    return JobFile(path, "application/octet-stream")


@dataclass(frozen=True)
class LogEnd:
    """The end of a log.

    Attributes:
        name: The command's, such as "train-0".
        text: The end.
        cut: Whether something stands before it.
    """

    name: str
    text: str
    cut: bool


def log_ends(folder: Path, most_bytes: int) -> list[LogEnd]:
    """The end of each of a job's logs; what is printed meanwhile may be left out."""
    return [_end_of(name, path, most_bytes) for name, path in _logs(folder).items()]


def _logs(folder: Path) -> dict[str, Path]:
    """The logs in a job's folder, by name: those of its steps, and of its commands among them."""
    logs: dict[str, Path] = {}
    for step in sorted(POSITIONS, key=POSITIONS.__getitem__):
        paths = step_paths(folder, step)
        if step == RUN:
            logs |= {path.stem: path for path in sorted(paths.logs.glob("*.log"))}
        elif (log := paths.log(step, 0)).exists():
            logs[step] = log
    return logs


def _end_of(name: str, path: Path, most_bytes: int) -> LogEnd:
    with path.open("rb") as file:
        begin = max(0, file.seek(0, 2) - most_bytes)
        file.seek(begin)
        return LogEnd(name, file.read(most_bytes).decode(errors="replace"), begin > 0)


def log_sizes(folder: Path) -> dict[str, int]:
    """Bytes of each of a job's logs, by name, in the order in which they are shown."""
    return {name: path.stat().st_size for name, path in _logs(folder).items()}


def joined_logs(folder: Path, command: str | None, offset: int) -> tuple[int, Iterator[bytes]]:
    """Bytes of a job's logs as they are now: how many, and those.

    Args:
        folder: The job's.
        command: Only this one, without ".log"; else all, each under a heading.
        offset: Bytes of that one that are passed over.

    Raises:
        UnknownName: The job has no such log.
        InvalidInput: The log is shorter than the offset.
    """
    logs = _logs(folder)
    if command is None:
        parts = [(f"==> {name}.log <==\n".encode(), path, 0) for name, path in logs.items()]
    elif command in logs:
        parts = [(b"", logs[command], offset)]
    else:
        raise UnknownName("log", command, logs)
    # The size now: what is printed meanwhile belongs to the next answer.
    sized = [(head, path, start, path.stat().st_size) for head, path, start in parts]
    if command is not None and offset > sized[0][3]:
        raise InvalidInput(f"offset {offset}: the log has {sized[0][3]:,} bytes")
    return sum(len(head) + end - start for head, _, start, end in sized), _bytes(sized)


def _bytes(parts: list[tuple[bytes, Path, int, int]]) -> Iterator[bytes]:
    for head, path, start, end in parts:
        if head:
            yield head
        with path.open("rb") as file:
            file.seek(start)
            left = end - start
            while left and (chunk := file.read(min(left, _CHUNK))):
                left -= len(chunk)
                yield chunk
