"""Snapshots of the catalog."""

import builtins

from api.schemas.snapshots import SnapshotBody
from api.workspace import Workspace
from catalog.lake.snapshots import log


class Snapshots:
    """The catalog's snapshots, of all its rows."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list(self, limit: int = 20) -> builtins.list[SnapshotBody]:
        """The newest, newest first."""
        return [SnapshotBody.of(one) for one in log(self._workspace.whole_catalog, limit)]
