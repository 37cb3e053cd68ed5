"""A program for tests: replaces rows of a catalog again and again, as re-scans do.

    python -m tests.catalog.replacing HOME COMMITS

Each commit deletes a few rows of each table and writes them again; every tenth one compacts, so
that delete files and data files are replaced, too. Ends after COMMITS or when its stdin ends, and
prints the number of commits.
"""

import random
import select
import sys
from datetime import timedelta
from pathlib import Path

from catalog.frames.frames import register
from catalog.maintenance.compaction import compact
from catalog.store import CatalogStore
from catalog.tags.tags import add_class_tags
from tests.catalog.some_rows import file, frame, open_store, source_names

FRAMES = 120
_REPLACED = 3
_COMPACTED_EVERY = 10


def fill(store: CatalogStore) -> None:
    """Commit FRAMES frames."""
    add_class_tags(store, ["car"])
    replace(store, range(FRAMES))


def replace(store: CatalogStore, numbers: range | list[int]) -> None:
    """Commit the frames of these numbers, in place of what there is of them."""
    keys = [f"f{number:03}" for number in numbers]
    with store.writing("replaced") as connection:
        register(connection, source_names(), [*map(file, keys)], [frame(k, car=1) for k in keys], 1)


def main(home: str, commits: str) -> None:
    """Replace rows until the commits are done or stdin ends."""
    store, draw, done = open_store(Path(home)), random.Random(1), 0
    while done < int(commits) and not select.select([sys.stdin], [], [], 0)[0]:
        replace(store, draw.sample(range(FRAMES), _REPLACED))
        done += 1
        if done % _COMPACTED_EVERY == 0:
            compact(store, list, keep=timedelta(hours=1))
    print(done)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
