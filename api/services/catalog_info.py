"""The answer of `framesift info` and /v1/info: where a home's parts lie, and their counts."""

from datetime import datetime

from api.schemas.info import InfoAnswer
from api.workspace import Workspace
from catalog.frames.frames import info
from catalog.lake.metadata.own_tables import commits


def info_of(workspace: Workspace) -> InfoAnswer:
    """Where the home's parts lie, the newest snapshot, counts of files, frames, tags, records."""
    counts = info(workspace.catalog)
    sources, datasets, jobs = workspace.record_counts()
    location = workspace.catalog_location
    locations = {
        "home": workspace.home,
        "metadata": location.metadata,
        "data": location.data,
        "records": workspace.records_place,
        "cache": workspace.cache,
    }
    # Users limited to collections learn no folder of the machine.
    paths = {name: "" if workspace.is_limited else str(where) for name, where in locations.items()}
    return InfoAnswer(
        **paths,
        snapshot=counts.snapshot,
        files=counts.files,
        frames=counts.frames,
        tags=counts.tags,
        sources=sources,
        datasets=datasets,
        jobs=jobs,
    )


def last_commit(workspace: Workspace) -> datetime:
    """Time of the catalog's last change, naive UTC."""
    with workspace.whole_catalog.inspecting() as cursor:
        return commits(cursor, 1)[0].time
