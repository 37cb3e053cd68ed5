"""When a catalog is to be compacted: many commits leave many small files, and each costs.

Each commit adds a file to every table that it writes, and each question opens all files of its
tables. What commits added since the last compaction is counted from DuckLake's records.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from catalog.errors import CatalogBusy
from catalog.lake.catalog import WritableCatalog
from catalog.lake.metadata.own_tables import files_since_last_of
from catalog.maintenance.compaction import AUTHOR

_LOCK = "compaction"


@dataclass(frozen=True, slots=True)
class Uncompacted:
    """What commits left since the last compaction."""

    files: int
    """Data files that they added to one table, the one with the most."""
    compacted: datetime | None
    """When that compaction wrote its last file, naive UTC; None where none did."""


def uncompacted(store: WritableCatalog) -> Uncompacted:
    """Count what was left since the last compaction that changed a file."""
    with store.inspecting() as cursor:
        return Uncompacted(*files_since_last_of(cursor, AUTHOR))


@contextmanager
def compaction_due(store: WritableCatalog, most: int) -> Iterator[bool]:
    """Say whether to compact; for the block no other process is told to.

    Args:
        most: Data files that commits may add to one table.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(store.lock(_LOCK, "the catalog is being compacted", 0.0))
        except CatalogBusy:
            yield False
        else:
            yield uncompacted(store).files >= most  # another may have compacted just before
