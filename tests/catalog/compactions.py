"""A program for a test: compacts a catalog again and again until it is told to stop.

    python -m tests.catalog.compactions HOME

Deletes at once; ends when its stdin does, but not before it has found something to merge and to
delete, and prints how many files those were.
"""

import select
import sys
from pathlib import Path

from catalog.maintenance.compaction import compact
from tests.catalog.histories import AT_ONCE
from tests.catalog.some_rows import open_store


def main(home: str) -> None:
    """Compact until stdin ends."""
    store = open_store(Path(home))
    merged = deleted = 0
    while not (merged and deleted and select.select([sys.stdin], [], [], 0.05)[0]):
        done = compact(store, list, keep=AT_ONCE, in_use=AT_ONCE)
        merged, deleted = merged + done.merged, deleted + done.deleted
    print(merged, deleted)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
