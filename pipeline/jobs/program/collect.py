"""The stage of a job that collects what a user's program made, and from what it was made.

    python -m pipeline.jobs.program.collect FOLDER

It writes the job's result.json:

    {"outputs": [{"path": "model.pt", "bytes": 1204410, "sha256": "5d41..."}, ...],
     "output_files": 1, "output_bytes": 1204410,
     "lineage": {"dataset": "city@1", "dataset_id": ..., "snapshot": 7, "split": "train",
                 "frames": 90, "command": ["python", ...], "ranks": 2,
                 "environment": {"NCCL_IB_DISABLE": "1"}}}

and beside them the last values of output/metrics.jsonl, and the numbers, texts and truth values of
output/metrics.json, where the program wrote them. A link is no output: it would tell of files
elsewhere.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from catalog.storage.to_disk import living_tree_to_disk
from pipeline.jobs.program.metrics import measured_values
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.scalars import scalars_of
from pipeline.jobs.request import JobPaths, JobRequest, read_json, write_json
from pipeline.runs.accelerators import OF_ACCELERATORS

_MOST_LISTED = 10_000
LINEAGE = "lineage"


def main(arguments: Sequence[str]) -> int:
    """Write result.json; the exit status."""
    paths = JobPaths(Path(arguments[0]))
    try:
        # What the document names is on the disk before the document is there.
        living_tree_to_disk(ProgramPaths(paths.folder).output)
        write_json(paths.result, collected(paths), fsync=True)
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or paths.folder}: {error.strerror}\n")
        return 1
    return 0


def collected(paths: JobPaths) -> dict[str, Any]:
    """The document of a job whose program has ended.

    Raises:
        OSError: An output cannot be read.
    """
    output = ProgramPaths(paths.folder).output
    request = JobRequest.from_json(read_json(paths.request))
    return {
        **measured_values(paths.folder, scalars_of(paths.folder, whole=True)),
        **described_files(output),
        LINEAGE: {**request.settings.get(LINEAGE, {}), "environment": _environment(request)},
    }


def _environment(request: JobRequest) -> dict[str, str]:
    """The variables, of those that the job was submitted with, that decide how it computes."""
    return {
        name: value
        for name, value in sorted((request.submitted or {}).items())
        if any(fnmatchcase(name, pattern) for pattern in OF_ACCELERATORS)
    }


def described_files(folder: Path) -> dict[str, Any]:
    """The number of a folder's files, their bytes, and size and SHA-256 of the first 10,000.

    Raises:
        OSError: One cannot be read.
    """
    files = list(_files(folder))
    return {
        "output_files": len(files),
        "output_bytes": sum(path.stat().st_size for path in files),
        "outputs": [_described(path, folder) for path in files[:_MOST_LISTED]],
    }


def _files(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _described(path: Path, output: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
    name = os.fsencode(path.relative_to(output)).decode(errors="replace")
    return {"path": name, "bytes": size, "sha256": digest}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
