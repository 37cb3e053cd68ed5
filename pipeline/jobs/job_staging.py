"""The staging beside a job: what it says in the job's staging.json, and to whom.

    {"place": {"folder": ..., "manifest": ...}, "ready": ..., "files": ..., ...}

`place` is where readers find it (pipeline.cache.reading.StagingLocation); `ready` says that they
may begin; the rest is pipeline.staging.progress.Progress.
"""

from collections.abc import Mapping
from typing import Any

_SHOWN = ("files", "of_files", "bytes", "of_bytes", "fetched_bytes", "failed", "mb_per_s")


def staging_waits(said: Mapping[str, Any]) -> str:
    """Words for users on what a job waits for until its readers may begin."""
    if not said.get("of_files"):
        return "for its staging"
    return (
        f"for the first part of its frames: {said['files']:,} of {said['of_files']:,} files are in "
        f"the cache, {said['mb_per_s']:.1f} MB/s"
    )


def staging_metrics(said: Mapping[str, Any]) -> dict[str, Any]:
    """Progress of the staging, for the metrics of its job; empty where there is none."""
    progress = {name: said[name] for name in _SHOWN if name in said}
    return {"staging": progress} if progress else {}
