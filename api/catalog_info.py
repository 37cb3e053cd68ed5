"""Where things are and how much there is: what `framesift info` and /v1/info both answer."""

from typing import Any

from api.workspace import Workspace
from catalog.frames import info


def info_of(workspace: Workspace) -> dict[str, Any]:
    """Folders, the newest snapshot, and the numbers of files, frames, tags and records."""
    found = info(workspace.catalog)
    return {
        "home": str(workspace.home),
        "cache": str(workspace.cache),
        "snapshot": found.snapshot,
        "files": found.files,
        "frames": found.frames,
        "tags": found.tags,
        "sources": len(workspace.records.sources()),
        "datasets": len(workspace.records.datasets()),
        "jobs": len(workspace.records.jobs()),
    }
