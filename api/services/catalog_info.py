"""Where things are and how much there is: what `framesift info` and /v1/info both answer."""

from typing import Any

from api.workspace import Workspace
from catalog.frames.frames import info


def info_of(workspace: Workspace) -> dict[str, Any]:
    """Places, the newest snapshot, and the numbers of files, frames, tags and records."""
    found = info(workspace.catalog)
    sources, datasets, jobs = workspace.record_counts()
    location = workspace.catalog_location
    places = {
        "home": workspace.home,
        "metadata": location.metadata,
        "data": location.data,
        "records": workspace.records_place,
        "cache": workspace.cache,
    }
    return {
        # The machine's folders are no matter of who sees some rows only.
        **{name: "" if workspace.is_limited else str(place) for name, place in places.items()},
        "snapshot": found.snapshot,
        "files": found.files,
        "frames": found.frames,
        "tags": found.tags,
        "sources": sources,
        "datasets": datasets,
        "jobs": jobs,
    }
