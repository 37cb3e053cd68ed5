"""A commit's search for frames that a source has in several trees, where it has none.

    python -m benchmarks.frame_trees [--frames 20000] [--rounds 5]

For commits of 24 frames and of 2,500 to 10,000: CPU seconds of `catalog.frames.frame_trees.merge`,
the least of the rounds.
"""

import argparse
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.catalog_scale import CLASS_LIST, load_frames
from catalog.frames import frame_trees
from catalog.lake.schema import FILES, FRAME_TAGS
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from ingest.labels.class_list import ClassList


class _Undone(Exception):
    """Ends a transaction without a commit."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    palette = ClassList.from_colours(json.loads(CLASS_LIST.read_bytes()))
    with tempfile.TemporaryDirectory() as folder:
        store = CatalogStore(CatalogLocation.in_folder(Path(folder, "catalog")))
        load_frames(store, list(palette.tags), options.frames)
        print(f"{options.frames:,} frames x {len(palette.tags)} classes")
        for frames in (24, 2_500, 5_000, 10_000):
            least_s = min(_merge_s(store, frames) for _ in range(options.rounds))
            print(f"{frames:>6,} frames of the commit  {least_s:.3f} s CPU")


def _merge_s(store: CatalogStore, frames: int) -> float:
    spent_s = 0.0
    with suppress(_Undone), store.writing("trees") as connection:
        rows = connection.execute(
            f"SELECT cluster, datasource, scene, camera, frame_number FROM {FRAME_TAGS} "
            f"JOIN {FILES} USING (fkey) ORDER BY fkey LIMIT ?",
            [frames],
        ).fetchall()
        cluster, datasource = rows[0][:2]
        began = time.process_time()
        several = frame_trees.merge(connection, cluster, datasource, [row[2:] for row in rows])
        spent_s = time.process_time() - began
        if several:
            raise SystemExit(f"{several} of the frames have several trees")
        raise _Undone
    return spent_s


if __name__ == "__main__":
    main()
