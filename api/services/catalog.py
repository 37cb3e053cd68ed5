"""The catalog: its counts, where the home's parts lie, and its snapshots."""

import builtins
from datetime import datetime

from api.schemas.base import iso_time
from api.schemas.catalog import InfoAnswer, SnapshotBody
from api.services.call import Service
from api.workspace import Workspace
from catalog.frames.catalog_info import info
from catalog.lake.metadata.own_tables import commits
from catalog.lake.snapshots import log
from catalog.maintenance.automatic import Uncompacted, uncompacted
from catalog.maintenance.last_backup import last_backup


def info_of(workspace: Workspace) -> InfoAnswer:
    """Where the home's parts lie, the newest snapshot, counts of files, frames, tags, records."""
    counts = info(workspace.catalog)
    sources, datasets, jobs = workspace.record_counts()
    location = workspace.catalog_location
    folders = {
        "home": str(workspace.home),
        "metadata": str(location.metadata),
        "data": str(location.data),
        "records": str(workspace.records_place),
        "cache": str(workspace.cache),
    }
    if workspace.is_limited:  # such a user learns no folder of the machine
        folders, left = dict.fromkeys(folders, ""), Uncompacted(0, None)
    else:
        left = uncompacted(workspace.whole_catalog)
    return InfoAnswer(
        **folders,
        snapshot=counts.snapshot,
        files=counts.files,
        frames=counts.frames,
        tags=counts.tags,
        sources=sources,
        datasets=datasets,
        jobs=jobs,
        uncompacted_files=left.files,
        compacted=None if left.compacted is None else iso_time(left.compacted),
    )


def last_commit(workspace: Workspace) -> datetime:
    """Time of the catalog's last change, naive UTC."""
    with workspace.whole_catalog.inspecting() as cursor:
        return commits(cursor, 1)[0].time


class Snapshots(Service):
    """The catalog's snapshots, of all its rows."""

    def list(self, limit: int = 20) -> builtins.list[SnapshotBody]:
        """The newest, newest first."""
        return [SnapshotBody.of(one) for one in log(self._session.whole.whole_catalog, limit)]

    def last_backup(self) -> datetime | None:
        """When the state was read that the home's last backup holds, naive UTC; None for none."""
        return last_backup(self._session.whole.home)
