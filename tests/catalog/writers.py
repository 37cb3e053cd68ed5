"""A program for tests: processes that make a home and write to it, all at once.

    python -m tests.catalog.writers HOME WRITERS COMMITS

Where the stores lie, FRAMESIFT_CATALOG_METADATA and its like say.

The processes are forked before any database is open, which saves starting Python each time.
"""

import os
import sys
from pathlib import Path

from api.settings import Settings
from api.workspace import Workspace
from catalog.frames.frames import register
from catalog.records.sources import add_source
from catalog.records.tables import Source
from tests.catalog.some_rows import SHARED_KEY, source_names, two_frames


def main(folder: str, writers: str, commits: str) -> int:
    """Number of writers that failed."""
    children = [_forked(Path(folder), f"w{number}", int(commits)) for number in range(int(writers))]
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


def _forked(folder: Path, name: str, commits: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        _write(folder, name, commits)
        os._exit(0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def _write(folder: Path, name: str, commits: int) -> None:
    """Each commit adds files of the writer's own and rewrites one that all writers share."""
    workspace = Workspace(Settings(home=folder))
    store, records = workspace.whole_catalog, workspace.records
    for number in range(commits):
        files, frames = two_frames(f"{name}/{number}", SHARED_KEY)
        with store.writing(f"commit {number}", author=name) as connection:
            register(connection, source_names(), files, frames, number)
        add_source(
            records,
            Source(
                name=f"{name}-{number}",
                uri="/x",
                platform="NFS",
                cluster=name,
                datasource=str(number),
            ),
        )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
