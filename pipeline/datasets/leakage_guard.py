"""Frames of a dataset that a new set must stay away from."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.lake.catalog import Catalog
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.manifest_store import read_manifest
from query.frames.candidates import DUPLICATE, columns_of, mark_column
from query.frames.sampling import Hashes, hashes_of
from query.sets.leakage_guard import DRIVE, LeakageGuard, frame_times

_NUMBER = r"_(?P<number>[0-9]{1,9})\.[^./]*$"


def guard_of(
    store: Catalog, records: RecordStore, dataset: Dataset, min_gap_s: float
) -> LeakageGuard:
    """Frames, scenes, drives and times of a dataset."""
    rows = read_manifest(records, dataset).frames
    return guard_of_rows(store, rows, dataset.snapshot, min_gap_s)


def guard_of_rows(store: Catalog, rows: pa.Table, at: int, min_gap_s: float) -> LeakageGuard:
    """Frames, scenes, drives and times of a manifest's rows."""
    hashes = hashes_of(rows["fkey"].to_pylist())
    drives: frozenset[str] = frozenset()
    with store.reading(at) as snapshot:
        relation = snapshot.every_frame
        if DRIVE in relation.tags and len(hashes):
            column = columns_of(snapshot, relation, hashes, [DRIVE]).rows[DRIVE]
            values = pc.unique(column.cast(pa.string())).to_pylist()
            drives = frozenset(value for value in values if value is not None)
    return LeakageGuard(
        hashes,
        frozenset(pc.unique(rows["scene"]).to_pylist()),
        drives,
        frame_times(rows["scene"], frame_numbers(rows)) if len(rows) else np.empty(0),
        min_gap_s,
        marks_of(store, hashes),
    )


def marks_of(store: Catalog, hashes: Hashes) -> frozenset[str]:
    """The marks of frames that are there more than once, by now: a copy may have come later."""
    with store.reading() as snapshot:
        if not len(hashes) or not mark_column(snapshot):
            return frozenset()
        marks = columns_of(snapshot, snapshot.every_frame, hashes, [DUPLICATE]).rows[DUPLICATE]
    return frozenset(pc.unique(marks.cast(pa.string()).drop_null()).to_pylist())


def union(parts: Sequence[LeakageGuard], min_gap_s: float) -> LeakageGuard | None:
    """The frames to be kept away from for the sake of any of them; None for none."""
    if not parts:
        return None
    return LeakageGuard(
        np.concatenate([guard.hashes for guard in parts]),
        frozenset().union(*(guard.scenes for guard in parts)),
        frozenset().union(*(guard.drives for guard in parts)),
        np.concatenate([guard.times for guard in parts]),
        min_gap_s,
        frozenset().union(*(guard.marks for guard in parts)),
    )


def frame_numbers(rows: pa.Table) -> pa.ChunkedArray:
    """The number at the end of each image's name; null where there is none."""
    matches = pc.extract_regex(rows["image"], _NUMBER)
    return pc.struct_field(matches, "number").cast(pa.int64())
