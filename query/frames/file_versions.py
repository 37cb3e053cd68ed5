"""The versions of a selection's files at its snapshot, for those who read the files later."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import LABEL_SIZE
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


_IMAGE_HASH, _LABEL_HASH = "image_hash", "label_hash"

HASHES_SQL = (
    f"hash(fkey) AS {_IMAGE_HASH}, CASE WHEN label_file IS NOT NULL "
    "THEN hash(cluster || ':' || datasource || ':' || label_file) END AS " + _LABEL_HASH
)
"""Columns by which `with_label_sizes_and_versions` finds a frame's files. The engine's own hash
takes a tenth of MD5's time, and is not kept: the fkey decides.
"""


def with_label_sizes_and_versions(snapshot: Snapshot, frames: pa.Table) -> pa.Table:
    """Frames with label_size and the versions of both files; without those whose label is gone.

    Args:
        frames: With the columns of HASHES_SQL, which the answer lacks.
    """
    images, labels = _files(
        snapshot,
        (frames["fkey"], label_fkeys(frames)),
        (frames[_IMAGE_HASH], frames[_LABEL_HASH]),
    )
    frames = frames.drop_columns([_IMAGE_HASH, _LABEL_HASH])
    if LABEL_SIZE not in frames.column_names:
        is_there = pc.or_(pc.is_null(frames["label_file"]), pc.is_valid(labels[LABEL_SIZE]))
        if not pc.all(is_there).as_py():
            frames, images, labels = (rows.filter(is_there) for rows in (frames, images, labels))
        frames = frames.append_column(LABEL_SIZE, labels[LABEL_SIZE])
    return frames.append_column(IMAGE_VERSION, images["version"]).append_column(
        LABEL_VERSION, labels["version"]
    )


def _versions(snapshot: Snapshot, fkeys: pa.ChunkedArray) -> pa.ChunkedArray:
    requested = pa.table({"place": pa.array(np.arange(len(fkeys))), "of_fkey": fkeys})
    on = f"ON {_WANTED}.of_fkey = {FILES}.fkey"
    return _joined(snapshot, requested, on, fkeys)["version"]


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
        versions = [_of_hashes(snapshot, *each) for each in zip(fkeys, hashes, strict=True)]
        return versions[0], versions[1]
    # Labels lie among the images: the files between are read once for both.
    both = [pa.chunked_array([*left.chunks, *right.chunks]) for left, right in (fkeys, hashes)]
    files = _of_hashes(snapshot, both[0], both[1])
    return files.slice(0, len(fkeys[0])), files.slice(len(fkeys[0]))


def _of_hashes(snapshot: Snapshot, fkeys: pa.ChunkedArray, hashes: pa.ChunkedArray) -> pa.Table:
    positions = np.flatnonzero(np.asarray(hashes.is_valid())).astype(np.int32)
    of_files = np.array(hashes.drop_null(), np.uint64)
    requested = pa.table({"place": positions, "of_file": of_files})
    return _joined(snapshot, requested, f"ON of_file = hash({FILES}.fkey)", fkeys)


def _joined(snapshot: Snapshot, requested: pa.Table, on: str, fkeys: pa.ChunkedArray) -> pa.Table:
    """label_size and version of the file of each fkey, at the place of each."""
    with snapshot.with_table(_WANTED, requested):
        # Inner: DuckDB then lays the few files into the join's table, and not all of the catalog's.
        rows = execute(
            snapshot,
            f"SELECT place, {FILES}.fkey AS fkey, size AS {LABEL_SIZE}, {_VERSION} AS version "
            f"FROM {_WANTED} JOIN main.{FILES} {on} WHERE {within(fkeys)}",
        )
    same = pc.equal(rows["fkey"], fkeys.take(rows["place"]))
    if not pc.all(same).as_py():  # two names have one hash
        rows = rows.filter(same)
    order = np.full(len(fkeys), -1)
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
