"""The versions of a selection's files at its snapshot, for those who read the files later."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.schema import FILES
from catalog.lake.snapshot import Snapshot
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
    labels = pc.binary_join_element_wise(
        frames["cluster"], frames["datasource"], frames["label_file"], ":"
    )
    for name, fkeys in ((IMAGE_VERSION, frames["fkey"]), (LABEL_VERSION, labels)):
        frames = frames.append_column(name, _versions(snapshot, fkeys))
    return replace(selection, frames=frames)


def _versions(snapshot: Snapshot, fkeys: pa.ChunkedArray) -> pa.ChunkedArray:
    requested = pa.table({"place": pa.array(range(len(fkeys))), "fkey": fkeys})
    with snapshot.with_table(_WANTED, requested):
        # Inner: DuckDB then lays the few files into the join's table, and not all of the catalog's.
        rows = execute(
            snapshot,
            f"SELECT place, {_VERSION} AS version FROM {_WANTED} JOIN main.{FILES} USING (fkey)",
        )
    versions = dict(zip(rows["place"].to_pylist(), rows["version"].to_pylist(), strict=True))
    return pa.chunked_array([pa.array(map(versions.get, range(len(fkeys))), pa.string())])
