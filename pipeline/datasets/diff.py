"""Two datasets compared: frames, splits, distributions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.row_counts import class_sums
from pipeline.manifest import Manifest
from pipeline.manifest_store import read_manifest
from query.frames.sampling import hashes_of_column
from query.sets.distances import Distance, distance

_MEASURES = dict.fromkeys(each.name for each in fields(Distance))
"""The distances of what cannot be compared: None."""

_ROWS = pa.schema([(name, pa.string()) for name in ("fkey", "change", "before", "after")])


@dataclass(frozen=True)
class Moved:
    """A frame that both have, in other splits."""

    fkey: str
    before: str
    after: str


@dataclass(frozen=True)
class ShareChange:
    """Share of a value in each of two datasets."""

    value: str
    """Class name, camera or scene."""
    before: float | None
    """Its share in the first (0 to 1); None of a class that its labels do not have."""
    after: float | None


@dataclass(frozen=True)
class Compared:
    """Distribution in both datasets, and its distance."""

    values: tuple[ShareChange, ...]
    distance: Distance | None
    """Of the values that both have a share of; None where there are none."""


@dataclass(frozen=True)
class DatasetDiff:
    """Changes from one dataset to another."""

    before: str
    """"name@version" of the first."""
    after: str
    frames: tuple[int, int]
    added: Mapping[str, str]
    """Frames that only the second has, and the split of each."""
    removed: Mapping[str, str]
    moved: tuple[Moved, ...]
    pixels: Compared
    """Each class's share of all pixels of classes."""
    presence: Compared
    """Each class's share of the frames."""
    cameras: Compared
    scenes: Compared


def diff_datasets(records: RecordStore, before: Dataset, after: Dataset) -> DatasetDiff:
    """Changes from ``before`` to ``after``."""
    one, other = (read_manifest(records, dataset) for dataset in (before, after))
    left, right = one.frames, other.frames
    left_names, right_names = (hashes_of_column(rows["fkey"]) for rows in (left, right))
    both, in_left, in_right = np.intersect1d(left_names, right_names, return_indices=True)
    del both
    old, new = left["split"].take(pa.array(in_left)), right["split"].take(pa.array(in_right))
    differ = pc.not_equal(old, new)
    fkeys = left["fkey"].take(pa.array(in_left).filter(differ.combine_chunks()))
    columns = (fkeys, old.filter(differ), new.filter(differ))
    moved = [Moved(*frame) for frame in zip(*(c.to_pylist() for c in columns), strict=True)]
    sums = [class_sums(manifest.frames, len(manifest.header.classes)) for manifest in (one, other)]
    # A class is a tag: another class list may have another name of it.
    names = {**_names(other), **_names(one)}
    names = {tag: names[tag] for tag in dict.fromkeys([*tags_of(one), *tags_of(other)])}
    return DatasetDiff(
        f"{before.name}@{before.version}",
        f"{after.name}@{after.version}",
        (len(one), len(other)),
        _only(right, np.isin(right_names, left_names)),
        _only(left, np.isin(left_names, right_names)),
        tuple(sorted(moved, key=lambda frame: frame.fkey)),
        _of_classes(
            names,
            *(_pixels(m, pixels) for m, (pixels, _) in zip((one, other), sums, strict=True)),
        ),
        _presence(
            names,
            *(_shares(m, frames) for m, (_, frames) in zip((one, other), sums, strict=True)),
        ),
        _by_column("camera", left, right),
        _by_column("scene", left, right),
    )


def _only(rows: pa.Table, shared: npt.NDArray[np.bool_]) -> dict[str, str]:
    own = rows.select(["fkey", "split"]).filter(pa.array(~shared)).sort_by("fkey")
    return dict(zip(own["fkey"].to_pylist(), own["split"].to_pylist(), strict=True))


def _names(manifest: Manifest) -> dict[str, str]:
    """Name of each class by its tag."""
    return dict(zip(tags_of(manifest), manifest.header.classes, strict=True))


def _pixels(manifest: Manifest, sums: npt.NDArray[np.int64]) -> dict[str, float]:
    shares = (sums / max(int(sums.sum()), 1)).tolist()
    return dict(zip(tags_of(manifest), shares, strict=True))


def _shares(manifest: Manifest, frames: npt.NDArray[np.int64]) -> dict[str, float]:
    return dict(zip(tags_of(manifest), (frames / len(manifest)).tolist(), strict=True))


def _of_classes(
    names: Mapping[str, str], before: Mapping[str, float], after: Mapping[str, float]
) -> Compared:
    return _compared(_changes(names, before, after))


def _changes(
    names: Mapping[str, str], before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[ShareChange, ...]:
    return tuple(ShareChange(name, before.get(tag), after.get(tag)) for tag, name in names.items())


def _presence(
    names: Mapping[str, str], before: Mapping[str, float], after: Mapping[str, float]
) -> Compared:
    """Shares that do not sum to 1: their distance is the classes' mean of two-valued ones."""
    changes = _changes(names, before, after)
    of_each = [distance([p, 1 - p], [q, 1 - q]) for p, q in _shared(changes)]
    if not of_each:
        return Compared(changes, None)
    return Compared(
        changes,
        Distance(
            float(np.mean([d.total_variation for d in of_each])),
            float(np.mean([d.jensen_shannon for d in of_each])),
            max(d.largest_difference for d in of_each),
        ),
    )


def _by_column(column: str, left: pa.Table, right: pa.Table) -> Compared:
    shares = []
    for rows in (left, right):
        counts = rows[column].value_counts().to_pylist()
        shares.append({item["values"]: item["counts"] / rows.num_rows for item in counts})
    values = sorted(set(shares[0]) | set(shares[1]))
    return _compared(
        tuple(
            ShareChange(each, shares[0].get(each, 0.0), shares[1].get(each, 0.0)) for each in values
        )
    )


def _compared(changes: tuple[ShareChange, ...]) -> Compared:
    """Shares that sum to 1; those of the values that both have are scaled to it."""
    shared = _shared(changes)
    apart = distance([p for p, _ in shared], [q for _, q in shared]) if shared else None
    return Compared(changes, apart)


def _shared(changes: Sequence[ShareChange]) -> list[tuple[float, float]]:
    """Shares of the values that both datasets have."""
    return [
        (change.before, change.after)
        for change in changes
        if change.before is not None and change.after is not None
    ]


def diff_to_json(diff: DatasetDiff, most: int | None = None) -> dict[str, Any]:
    """The difference as JSON; of each list of frames the first ``most``, all when None."""
    return {
        "before": diff.before,
        "after": diff.after,
        "frames_before": diff.frames[0],
        "frames_after": diff.frames[1],
        "frames_added": len(diff.added),
        "frames_removed": len(diff.removed),
        "frames_moved": len(diff.moved),
        "added": list(islice(diff.added, most)),
        "removed": list(islice(diff.removed, most)),
        "moved": [vars(frame) for frame in diff.moved[:most]],
        **{
            name: {
                "distance": _MEASURES if compared.distance is None else compared.distance.to_json(),
                "values": [vars(change) for change in compared.values],
            }
            for name, compared in (
                ("class_pixels", diff.pixels),
                ("class_frames", diff.presence),
                ("cameras", diff.cameras),
                ("scenes", diff.scenes),
            )
        },
    }


def diff_to_rows(diff: DatasetDiff, most: int | None = None) -> pa.Table:
    """A row for each frame that differs, of each kind of change the first ``most``.

    Returns:
        fkey, change ("added", "removed" or "moved"), and the split that the frame has in the first
        dataset and in the second, null where it is not in it.
    """
    rows = [
        *((fkey, "added", None, split) for fkey, split in islice(diff.added.items(), most)),
        *((fkey, "removed", split, None) for fkey, split in islice(diff.removed.items(), most)),
        *((frame.fkey, "moved", frame.before, frame.after) for frame in diff.moved[:most]),
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(_ROWS)
    return pa.table([pa.array(column, pa.string()) for column in columns], _ROWS)
