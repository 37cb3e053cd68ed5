"""Files that a job left on disk and callers may read, by a list of names."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import NotFound
from catalog.records.tables import Job
from framesift.progress import list_of
from pipeline.jobs.program.checkpoints import checkpoints_of
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.scalars import LINES_FILE
from pipeline.jobs.request import JobPaths, read_json

_OUTPUT = "output/"
"""Begins the names of what a user's program made."""

FIGURE = "scaling.svg"
"""The figure of a scaling study."""

_RESULT = {"result.json": "application/json"}

_FILES = {
    **dict.fromkeys(("scan", "stage", "extract", "labels", "policy", "run"), _RESULT),
    "preflight": {**_RESULT, "preflight.json": "application/json"},
    "scaling": {**_RESULT, "study.json": "application/json", FIGURE: "image/svg+xml"},
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
    known = _known(job, tells_paths=tells_paths)
    paths = JobPaths(Path(job.paths["folder"]))
    if job.kind == "run" and name.startswith(_OUTPUT):
        return _output(job, paths, name)
    folder = _folder_of(job, paths, name)
    if name not in known or not (folder / name).is_file():
        hint = f"a job of kind {job.kind} has {', '.join(known) or 'none'}"
        raise NotFound("file", name[:80], f"{hint}; {job.name} is {job.state}")
    return JobFile(folder / name, known[name])


def file_sizes(job: Job, *, tells_paths: bool) -> dict[str, int]:
    """Bytes of each file of a job that is there, by its name; arguments as of `report_file`."""
    paths = JobPaths(Path(job.paths["folder"]))
    sizes = {
        name: path.stat().st_size
        for name in _known(job, tells_paths=tells_paths)
        if (path := _folder_of(job, paths, name) / name).is_file()
    }
    for name in _output_names(paths) if job.kind == "run" else ():
        with suppress(NotFound, OSError):
            sizes[name] = _output(job, paths, name).path.stat().st_size
    return sizes


def _known(job: Job, *, tells_paths: bool) -> dict[str, str]:
    """Media types of the files that jobs of its kind may have, by name."""
    return {
        name: media_type
        for name, media_type in _FILES.get(job.kind, {}).items()
        if tells_paths or name not in _OF_SERVER
    }


def _folder_of(job: Job, paths: JobPaths, name: str) -> Path:
    if name in _RESULT:
        return paths.folder
    report = dict.fromkeys(("validate", "predict"), paths.report)
    return {"train": paths.model, **report}.get(job.kind, paths.folder)


def _output_names(paths: JobPaths) -> list[str]:
    """Names of the files that a user's program made, those that are whole before its end too."""
    rows = list_of(read_json(paths.result), "outputs")
    made = [
        row["path"] for row in rows if isinstance(row, dict) and isinstance(row.get("path"), str)
    ]
    whole = (LINES_FILE, *(one.path for one in checkpoints_of(paths.folder).whole))
    return [_OUTPUT + path for path in dict.fromkeys((*made, *whole))]


def _output(job: Job, paths: JobPaths, name: str) -> JobFile:
    """A file that a user's program made: one that was collected, or that is whole before that.

    Raises:
        NotFound: There is none of that name.
    """
    known = _output_names(paths)
    folder = ProgramPaths(paths.folder).output
    path = folder / name.removeprefix(_OUTPUT)
    # A link that took its place since would show another file.
    if (
        name not in known
        or path.is_symlink()
        or path.resolve() != folder.resolve() / path.relative_to(folder)
        or not path.is_file()
    ):
        raise NotFound(
            "file",
            name[:80],
            f"result.json names what {job.name} made, and before that {LINES_FILE} and the "
            f"checkpoints that it names are there; it is {job.state}",
        )
    return JobFile(path, "application/octet-stream")
