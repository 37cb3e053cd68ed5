"""The catalog's history: which snapshots there are, and what each was for."""

from dataclasses import dataclass

from catalog.lake.catalog import WritableCatalog
from catalog.lake.metadata.own_tables import Commit, commits
from catalog.lake.metadata.row_counts import rows_of_snapshots
from catalog.lake.schema import FILES, FRAME_TAGS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed state of the catalog."""

    commit: Commit
    """Its number, time, author and reason."""
    files: int
    """Rows of metaocean in it."""
    frames: int
    """Labelled frames in it."""


def log(store: WritableCatalog, limit: int | None = None) -> list[Snapshot]:
    """The newest snapshots, newest first; all of them when ``limit`` is None."""
    with store.inspecting() as cursor:
        entries = commits(cursor, limit)
        numbers = [commit.number for commit in entries]
        files = rows_of_snapshots(cursor, FILES, "fkey", numbers)
        frames = rows_of_snapshots(cursor, FRAME_TAGS, "label_file", numbers)
        return [Snapshot(one, files[one.number], frames[one.number]) for one in entries]
