"""The catalog's history: which snapshots there are, and what each was for."""

from dataclasses import dataclass

from catalog.lake.catalog import WritableCatalog
from catalog.lake.connection import LAKE
from catalog.lake.metadata.own_tables import Commit, commits
from catalog.lake.schema import FILES, FRAME_TAGS


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed state of the catalog.

    Attributes:
        commit: Its number, time, author and reason.
        files: Rows of metaocean in it.
        frames: Labelled frames in it.
    """

    commit: Commit
    files: int
    frames: int


def log(store: WritableCatalog, limit: int | None = None) -> list[Snapshot]:
    """The newest snapshots, newest first; all of them when ``limit`` is None."""
    with store.inspecting() as cursor:
        entries = []
        for commit in commits(cursor, limit):
            at = f"AT (VERSION => {commit.number})"
            row = cursor.execute(
                f"SELECT (SELECT count(*) FROM {LAKE}.main.{FILES} {at}), "
                f"(SELECT count(label_file) FROM {LAKE}.main.{FRAME_TAGS} {at})"
            ).fetchone()
            entries.append(Snapshot(commit, *(row or (0, 0))))
        return entries
