"""Files that a job left on disk and callers may read: logs, and others by a list of names."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput, NotFound, UnknownName
from catalog.records.tables import Job
from pipeline.jobs.request import JobPaths, read_json

_CHUNK = 1 << 20

_RESULT = {"result.json": "application/json"}

_FILES = {
    **dict.fromkeys(("scan", "stage", "extract", "policy"), _RESULT),
    "validate": {
        "report.html": "text/html; charset=utf-8",
        "report.json": "application/json",
        "metrics.json": "application/json",
        "confusion_matrix.png": "image/png",
        "frame_scores.parquet": "application/vnd.apache.parquet",
    },
    "train": {
        "metrics.json": "application/json",
        "metrics.jsonl": "application/x-ndjson",
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


def report_file(job: Job, name: str) -> JobFile:
    """A file of a job.

    Raises:
        NotFound: Jobs of its kind have no such file, or this one has none yet.
    """
    known = _FILES.get(job.kind, {})
    paths = JobPaths(Path(job.paths["folder"]))
    folder = {"train": paths.model, "validate": paths.report}.get(job.kind, paths.folder)
    if name not in known or not (folder / name).is_file():
        hint = f"a job of kind {job.kind} has {', '.join(known) or 'none'}"
        raise NotFound("file", name[:80], f"{hint}; {job.name} is {job.state}")
    return JobFile(folder / name, known[name])


def joined_logs(folder: Path, command: str | None, offset: int) -> tuple[int, Iterator[bytes]]:
    """Bytes of a job's logs as they are now: how many, and those.

    Args:
        folder: Where the logs are.
        command: Only this one, without ".log"; else all, each under a heading.
        offset: Bytes of that one that are passed over.

    Raises:
        UnknownName: The job has no such log.
        InvalidInput: The log is shorter than the offset.
    """
    logs = {path.stem: path for path in sorted(folder.glob("*.log"))}
    if command is None:
        parts = [(f"==> {path.name} <==\n".encode(), path, 0) for path in logs.values()]
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
