"""Snapshots of the catalog."""

import builtins

from api.schemas.snapshots import SnapshotBody
from api.services.call import Service
from catalog.lake.snapshots import log


class Snapshots(Service):
    """The catalog's snapshots, of all its rows."""

    def list(self, limit: int = 20) -> builtins.list[SnapshotBody]:
        """The newest, newest first."""
        return [SnapshotBody.of(one) for one in log(self._session.whole.whole_catalog, limit)]
