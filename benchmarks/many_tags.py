"""Costs of a tag family among many: 500 tags in 20 families on a million frames.

    python -m benchmarks.many_tags [--frames 1000000] [--families 20] [--tags 25]

For the first and the last family: seconds and bytes of Parquet written of adding it, filling it for
all frames, replacing 1,000 frames' values, replacing them all, one more tag, and dropping it;
whether any Parquet file of the large tables was rewritten by it; and what reads and a small ingest
take with all tags there.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.many_processes import CLASSES, _frames_of
from catalog.frames.frames import SourceNames, register
from catalog.lake.schema import CLASS_PIXELS, FILES, FRAME_TAGS, POSITION_TAGS
from catalog.storage.location import CatalogLocation
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.tags import add_class_tags
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from query.run.run_sql import run_sql

_LARGE = (FILES, CLASS_PIXELS, FRAME_TAGS)
_NAMES = SourceNames("NFS", "c", "d", "/r")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--families", type=int, default=20)
    parser.add_argument("--tags", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = {tag: tag for tag in CLASSES}
        location = CatalogLocation.in_folder(Path(folder, "catalog"))
        store = CatalogStore(location, class_names=names.copy)
        print(f"{options.frames:,} frames x {len(CLASSES)} classes, {os.cpu_count()} cores")
        with _timed(store, "the frames themselves"):
            _fill(store, options.frames)
        large = _files(store, _LARGE)
        for number in range(options.families):
            _family(
                store,
                number,
                options.tags,
                options.frames,
                printed=number in (0, options.families - 1),
            )
        _reads(store)
        _last(store, options.families - 1, options.tags)
        touched = [path for path, state in large.items() if _files(store).get(path) != state]
        print(f"Parquet files of the large tables that were rewritten: {len(touched)}")
        _ingests(store)


def _family(store: CatalogStore, number: int, tags: int, frames: int, *, printed: bool) -> None:
    family = f"family{number}"
    columns = {f"f{number}_tag{tag}": "DOUBLE" for tag in range(tags)}
    with _timed(store, f"family {number + 1}: add, {tags} tags", printed):
        families.write(store, family, columns)
    with _timed(store, f"family {number + 1}: fill all frames", printed):
        families.write(store, family, columns, _rows(columns, frames, number))
    if printed:
        with _timed(store, f"family {number + 1}: replace 1,000 frames", printed):
            families.write(store, family, columns, _rows(columns, 1_000, number + 1))
        with _timed(store, f"family {number + 1}: replace all frames", printed):
            families.write(store, family, columns, _rows(columns, frames, number + 2))


def _last(store: CatalogStore, number: int, tags: int) -> None:
    family = f"family{number}"
    with _timed(store, f"family {number + 1}: one more tag"):
        families.write(store, family, {f"f{number}_more": "INTEGER"})
    with _timed(store, f"family {number + 1}: drop, {tags + 1} tags"):
        families.drop(store, family)


def _reads(store: CatalogStore) -> None:
    question = Question(ranges=(LabelRange(tag="class_03", lowest=1_000, highest=20_000),))
    two = "SELECT f0_tag1, f7_tag2, class_01 FROM metaocean_view WHERE class_03 < 20000"
    asks: tuple[tuple[str, Callable[[], object]], ...] = (
        ("range of a class", lambda: select_frames(store, question)),
        ("three tags of three families", lambda: run_sql(store, two)),
        ("count of files", lambda: run_sql(store, "SELECT count(*) FROM metaocean")),
    )
    for title, ask in asks:
        for again in ("first", "again"):
            with _timed(store, f"{title}, {again}"):
                ask()


def _ingests(store: CatalogStore) -> None:
    for again in ("first", "again"):
        files, frames = _frames_of(again, 500)
        with _timed(store, f"ingest of 500 frames, {again}"), store.writing("ingest") as connection:
            register(connection, _NAMES, files, frames, 1)


@contextmanager
def _timed(store: CatalogStore, title: str, printed: bool = True) -> Iterator[None]:
    before, began = _files(store), time.perf_counter()
    yield
    seconds = time.perf_counter() - began
    written = sum(
        size for path, (size, _) in _files(store).items() if before.get(path, (0, 0))[0] != size
    )
    if printed:
        print(f"{title:40}{seconds:9.2f} s{written / 1e6:12.2f} MB", flush=True)


def _files(store: CatalogStore, tables: tuple[str, ...] = ()) -> dict[Path, tuple[int, int]]:
    """Size and time of every Parquet file, of some tables or of all."""
    data = store.location.data
    if not isinstance(data, Path):
        raise TypeError("the catalog lies in a folder")
    return {
        path: (path.stat().st_size, path.stat().st_mtime_ns)
        for path in data.rglob("*.parquet")
        if not tables or path.parent.name in tables
    }


def _rows(columns: dict[str, str], frames: int, seed: int) -> pa.Table:
    values = np.random.default_rng(seed)
    fkeys = pa.array([f"c:d:{number:08d}.png" for number in range(frames)])
    return pa.table({"fkey": fkeys} | {tag: values.random(frames) for tag in columns})


def _fill(store: CatalogStore, frames: int) -> None:
    """A million frames as SQL makes them; ingest itself is benchmarks.scan_labels'."""
    add_class_tags(store, CLASSES)
    fkey = "'c:d:' || lpad(n::VARCHAR, 8, '0') || '.png'"
    pixels = ", ".join(
        f"(n * {997 * (index + 7)} % 1000003)::INTEGER AS {tag}"
        for index, tag in enumerate(CLASSES)
    )
    positions = ", ".join(
        f"(n % {index + 2} = 0)::TINYINT AS {tag}" for index, tag in enumerate(POSITION_TAGS)
    )
    with store.writing("fill") as connection:
        connection.execute(
            f"INSERT INTO {FILES} BY NAME SELECT 'd' AS datasource, 'NFS' AS platform, "
            f"'c' AS cluster, '/r/' AS path, lpad(n::VARCHAR, 8, '0') || '.png' AS filename, "
            f"2000000 + n AS size, {fkey} AS fkey FROM range({frames}) AS t(n)"
        )
        connection.execute(
            f"INSERT INTO {CLASS_PIXELS} BY NAME SELECT {fkey} AS fkey, {positions}, "
            f"0 AS unknown_pixels, {pixels} FROM range({frames}) AS t(n)"
        )
        connection.execute(
            f"INSERT INTO {FRAME_TAGS} BY NAME SELECT {fkey} AS fkey, 'front_center' AS camera, "
            f"n AS frame_number, 1920 AS image_width, 1208 AS image_height, "
            f"n || '.png' AS label_file, 1 AS labelled, 's' || n // 2000 AS scene "
            f"FROM range({frames}) AS t(n)"
        )


if __name__ == "__main__":
    main()
