"""The staging beside a job: what it says in the job's staging.json, and to whom.

    {"place": {"folder": ..., "manifest": ...}, "ready": ..., "files": ..., ...}

`place` is where readers find it (pipeline.cache.reading.StagingLocation); `ready` says that they
may begin; the rest is pipeline.staging.progress.Progress.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.jobs.request import write_json

_WRITTEN_EVERY_S = 0.5
_SHOWN = ("files", "of_files", "bytes", "of_bytes", "fetched_bytes", "failed", "mb_per_s")


def staging_waits(fields: Mapping[str, Any]) -> str:
    """Words for users on what a job waits for until its readers may begin."""
    if not fields.get("of_files"):
        return "for its staging"
    return (
        f"for the first part of its frames: {fields['files']:,} of {fields['of_files']:,} files "
        f"are in the cache, {fields['mb_per_s']:.1f} MB/s"
    )


def staging_metrics(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Progress of the staging, for the metrics of its job; empty where there is none."""
    progress = {name: fields[name] for name in _SHOWN if name in fields}
    return {"staging": progress} if progress else {}


class StagingReport:
    """The writer of a staging.json."""

    def __init__(self, file: Path) -> None:
        """Write nothing yet."""
        self._file = file
        self._document: dict[str, Any] = {"ready": False}
        self._written_s, self._is_written = 0.0, True

    def place(self, folder: str, manifest: str) -> None:
        """Write where readers find the staging."""
        self._write(place={"folder": folder, "manifest": manifest})

    def ready(self) -> None:
        """Write that readers may begin."""
        self._write(ready=True)

    def progress(self, progress: Mapping[str, Any]) -> None:
        """Write how far it is, twice a second at most."""
        self._document |= progress
        self._is_written = False
        is_due = time.monotonic() - self._written_s > _WRITTEN_EVERY_S
        if is_due or progress["files"] == progress["of_files"]:
            self._write()

    def last(self) -> None:
        """Write how far it has come, where that was not written yet."""
        if not self._is_written:
            self._write()

    def _write(self, **fields: object) -> None:
        self._document |= fields
        self._written_s, self._is_written = time.monotonic(), True
        write_json(self._file, self._document)
