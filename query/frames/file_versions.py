"""The versions of a selection's files at its snapshot, for those who read the files later."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH, LABEL_SIZE
from catalog.text.quoting import literal
from query.frames.selection import Selection
from query.run.run_sql import execute

IMAGE_VERSION, LABEL_VERSION = "image_version", "label_version"

# As catalog.storage.file_version writes it: the store's ETag, else the time of last change.
_VERSION = (
    "CASE WHEN coalesce(etag, '') <> '' THEN 'etag:' || etag ELSE 'mtime:' || epoch_us(mtime) END"
)
_WANTED = "files_of_frames"


def with_versions(snapshot: Snapshot, selection: Selection) -> Selection:
    """The selection with image_version and label_version, null where there is no label."""
    frames = selection.frames
    if IMAGE_VERSION in frames.column_names:
        return selection
    for name, fkeys in (
        (IMAGE_VERSION, frames["fkey"]),
        (LABEL_VERSION, label_fkeys(frames)),
    ):
        frames = frames.append_column(name, _versions(snapshot, fkeys))
    return replace(selection, frames=frames)


def label_fkeys(frames: pa.Table) -> pa.ChunkedArray:
    """The fkey of each frame's label; null where it has none."""
    return pc.binary_join_element_wise(
        frames["cluster"], frames["datasource"], frames["label_file"], ":"
    )


LABEL_HASH = "label_hash"
"""The fkey_hash of a frame's label; null where it has none."""

LABEL_HASH_SQL = (
    "md5_number_lower(cluster || ':' || datasource || ':' || label_file) AS " + LABEL_HASH
)


def with_label_sizes_and_versions(snapshot: Snapshot, frames: pa.Table) -> pa.Table:
    """Frames with label_size and the versions of both files; without those whose label is gone.

    Args:
        frames: With FKEY_HASH and LABEL_HASH.
    """
    images, labels = _files(
        snapshot,
        (frames["fkey"], label_fkeys(frames)),
        (frames[FKEY_HASH], frames[LABEL_HASH]),
    )
    if LABEL_SIZE not in frames.column_names:
        is_there = pc.or_(pc.is_null(frames["label_file"]), pc.is_valid(labels[LABEL_SIZE]))
        if not pc.all(is_there).as_py():
            frames, images, labels = (rows.filter(is_there) for rows in (frames, images, labels))
        frames = frames.append_column(LABEL_SIZE, labels[LABEL_SIZE])
    return frames.append_column(IMAGE_VERSION, images["version"]).append_column(
        LABEL_VERSION, labels["version"]
    )


def _versions(snapshot: Snapshot, fkeys: pa.ChunkedArray) -> pa.ChunkedArray:
    requested = pa.table({"place": pa.array(np.arange(len(fkeys))), "fkey": fkeys})
    return _joined(snapshot, requested, "USING (fkey)", within(fkeys))["version"]


def _files(
    snapshot: Snapshot,
    fkeys: tuple[pa.ChunkedArray, pa.ChunkedArray],
    hashes: tuple[pa.ChunkedArray, pa.ChunkedArray],
) -> tuple[pa.Table, pa.Table]:
    """label_size (the file's size) and version of each fkey; null where there is no such file.

    By hashes, and by copies of them: DuckDB holds a table beside the catalog until the snapshot's
    transaction ends, and with a column that it has read itself all others of that statement.
    """
    one, other = (_ends(column) for column in fkeys)
    if one is None or other is None or one[1] < other[0] or other[1] < one[0]:
        found = [_of_hashes(snapshot, *each) for each in zip(fkeys, hashes, strict=True)]
        return found[0], found[1]
    # Labels lie among the images: the files between are read once for both.
    both = [pa.chunked_array([*left.chunks, *right.chunks]) for left, right in (fkeys, hashes)]
    files = _of_hashes(snapshot, both[0], both[1])
    return files.slice(0, len(fkeys[0])), files.slice(len(fkeys[0]))


def _of_hashes(snapshot: Snapshot, fkeys: pa.ChunkedArray, hashes: pa.ChunkedArray) -> pa.Table:
    places = np.flatnonzero(np.asarray(hashes.is_valid())).astype(np.int32)
    of_files = np.array(hashes.drop_null(), np.uint64)
    requested = pa.table({"place": places, "of_file": of_files})
    on = f"ON of_file = md5_number_lower({FILES}.fkey)"
    return _joined(snapshot, requested, on, within(fkeys), len(fkeys))


def _joined(
    snapshot: Snapshot, requested: pa.Table, on: str, condition: str, count: int | None = None
) -> pa.Table:
    """label_size and version of the file of each place, of ``count`` places."""
    with snapshot.with_table(_WANTED, requested):
        # Inner: DuckDB then lays the few files into the join's table, and not all of the catalog's.
        rows = execute(
            snapshot,
            f"SELECT place, size AS {LABEL_SIZE}, {_VERSION} AS version "
            f"FROM {_WANTED} JOIN main.{FILES} {on} WHERE {condition}",
        )
    order = np.full(len(requested) if count is None else count, -1)
    order[np.asarray(rows["place"])] = np.arange(len(rows))
    return rows.select([LABEL_SIZE, "version"]).take(pa.array(order, mask=order < 0))


def within(fkeys: pa.ChunkedArray) -> str:
    """A condition that holds for these fkeys and leaves most of a large catalog's files unread."""
    ends = _ends(fkeys)
    return "false" if ends is None else f"fkey BETWEEN {literal(ends[0])} AND {literal(ends[1])}"


def _ends(fkeys: pa.ChunkedArray) -> tuple[str, str] | None:
    """The least and the greatest; None where there is none."""
    ends = pc.min_max(fkeys).as_py()
    return None if ends["min"] is None else (ends["min"], ends["max"])
