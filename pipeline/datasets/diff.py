"""Two datasets compared: frames, splits, distributions."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.row_counts import class_sums
from pipeline.manifest import Manifest, StoredManifest
from pipeline.manifest_store import open_manifest
from query.frames.sampling import hashes_of_column
from query.sets.distances import Distance, distance

_MEASURES = dict.fromkeys(each.name for each in fields(Distance))
"""The distances of what cannot be compared: None."""

_Positions = npt.NDArray[np.int64]


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
class Changed:
    """Frames that changed in one way."""

    frames: int
    """Number of them."""
    rows: pa.Table
    """The first of them by fkey: fkey, and its split before and after, null where it has none."""


@dataclass(frozen=True)
class DatasetDiff:
    """Changes from one dataset to another."""

    before: str
    """"name@version" of the first."""
    after: str
    frames: tuple[int, int]
    added: Changed
    """Frames that only the second has."""
    removed: Changed
    """Frames that only the first has."""
    moved: Changed
    """Frames that both have, in other splits."""
    pixels: Compared
    """Each class's share of all pixels of classes."""
    presence: Compared
    """Each class's share of the frames."""
    cameras: Compared
    scenes: Compared


def diff_datasets(
    records: RecordStore, before: Dataset, after: Dataset, most: int | None = None
) -> DatasetDiff:
    """Changes from ``before`` to ``after``.

    Args:
        most: Frames named of each kind of change; all when None.
    """
    one, other = (_Side(open_manifest(records, dataset)) for dataset in (before, after))
    _, in_one, in_other = np.intersect1d(
        one.hashes, other.hashes, assume_unique=True, return_indices=True
    )
    old, new = one.splits_of(in_one), other.splits_of(in_other)
    moves = pc.not_equal(old, new)
    moved = one.changed(in_one[np.asarray(moves)], old.filter(moves), new.filter(moves), most)
    only_one, only_other = one.without(in_one), other.without(in_other)
    # A class is a tag: another class list may have another name of it.
    names = {**other.classes, **one.classes}
    names = {tag: names[tag] for tag in dict.fromkeys([*one.classes, *other.classes])}
    return DatasetDiff(
        f"{before.name}@{before.version}",
        f"{after.name}@{after.version}",
        (one.frames, other.frames),
        other.changed(only_other, _absent(only_other), other.splits_of(only_other), most),
        one.changed(only_one, one.splits_of(only_one), _absent(only_one), most),
        moved,
        _of_classes(names, one.pixel_shares(), other.pixel_shares()),
        _presence(names, one.frame_shares(), other.frame_shares()),
        _by_value(one.cameras, other.cameras),
        _by_value(one.scenes, other.scenes),
    )


class _Side:
    """One of the datasets: of each frame its hash and its split, and counts of all.

    Attributes:
        frames: Number of frames.
        classes: Name of each class by its tag.
        hashes: Each frame's fkey_hash.
        cameras: Share of each camera.
        scenes: Share of each scene.
    """

    def __init__(self, manifest: StoredManifest | Manifest) -> None:
        """Read the manifest once."""
        self._manifest, self.frames = manifest, len(manifest)
        self.classes = dict(zip(tags_of(manifest), manifest.header.classes, strict=True))
        self._pixels = np.zeros(len(self.classes), np.int64)
        self._class_frames = np.zeros(len(self.classes), np.int64)
        hashes, splits = [], []
        values = {name: Counter[str]() for name in ("camera", "scene")}
        for rows in manifest.portions(["fkey", "split", "class_pixels", *values]):
            hashes.append(hashes_of_column(rows["fkey"]))
            splits += rows["split"].dictionary_encode().chunks
            pixels, frames = class_sums(rows, len(self.classes))
            self._pixels += pixels
            self._class_frames += frames
            for name, counts in values.items():
                for count in rows[name].value_counts().to_pylist():
                    counts[count["values"]] += count["counts"]
        self.hashes = np.concatenate([np.empty(0, np.uint64), *hashes])
        self._splits = pa.chunked_array(splits, _SPLITS).unify_dictionaries().combine_chunks()
        self.cameras, self.scenes = (
            {value: count / self.frames for value, count in counts.items()}
            for counts in values.values()
        )

    def pixel_shares(self) -> dict[str, float]:
        """Each class's share of all pixels of classes."""
        return self._by_class(self._pixels / max(int(self._pixels.sum()), 1))

    def frame_shares(self) -> dict[str, float]:
        """Each class's share of the frames."""
        return self._by_class(self._class_frames / self.frames)

    def splits_of(self, positions: _Positions) -> pa.Array:
        """The splits of frames at these positions."""
        return self._splits.take(pa.array(positions)).cast(pa.string())

    def without(self, positions: _Positions) -> _Positions:
        """The other positions, ascending."""
        others = np.ones(self.frames, bool)
        others[positions] = False
        return np.flatnonzero(others)

    def changed(
        self, positions: _Positions, before: pa.Array, after: pa.Array, most: int | None
    ) -> Changed:
        """The frames at these positions, with their splits in each dataset; ``most`` named."""
        order = np.argsort(positions)
        ascending, start, first = positions[order], 0, _CHANGED.empty_table()
        for rows in self._manifest.portions(["fkey"]) if len(positions) else ():
            low, high = np.searchsorted(ascending, (start, start + rows.num_rows))
            fkeys = rows["fkey"].take(pa.array(ascending[low:high] - start))
            places = pa.array(order[low:high])
            part = pa.table([fkeys, before.take(places), after.take(places)], _CHANGED)
            first = pa.concat_tables([first, part])
            if most is not None and len(first) > most + _UNSORTED:
                first = first.sort_by("fkey").slice(0, most)
            start += rows.num_rows
        return Changed(len(positions), first.sort_by("fkey").slice(0, most))

    def _by_class(self, shares: npt.NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(self.classes, shares.tolist(), strict=True))


_SPLITS = pa.dictionary(pa.int32(), pa.string())

_CHANGED = pa.schema([(name, pa.string()) for name in ("fkey", "before", "after")])

_LISTS = ("added", "removed", "moved")
"""Lists of frames of a difference's JSON, which are fields of DatasetDiff."""

_TEXT_ROWS = 8_192

_UNSORTED = 65_536
"""Frames beyond those that are named, before the named ones are found among them."""


def _absent(positions: _Positions) -> pa.Array:
    return pa.nulls(len(positions), pa.string())


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


def _by_value(before: Mapping[str, float], after: Mapping[str, float]) -> Compared:
    return _compared(
        tuple(
            ShareChange(value, before.get(value, 0.0), after.get(value, 0.0))
            for value in sorted({*before, *after})
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


def diff_to_json(diff: DatasetDiff) -> dict[str, Any]:
    """The difference as JSON."""
    return {
        **_without_frames(diff),
        "added": diff.added.rows["fkey"].to_pylist(),
        "removed": diff.removed.rows["fkey"].to_pylist(),
        "moved": diff.moved.rows.to_pylist(),
    }


def diff_to_text(diff: DatasetDiff) -> Iterator[str]:
    """The text of `diff_to_json`, indented by two: pieces of some thousand frames each.

    As lists a million frames take 1 GB, and their text as a whole 0.3.
    """
    text = json.dumps(_without_frames(diff), indent=2, ensure_ascii=False)
    for kind in _LISTS:
        changed: Changed = getattr(diff, kind)
        # A list of the document itself: all others stand deeper.
        before, begin, text = text.partition(f'\n  "{kind}": [')
        yield before + begin
        for number, rows in enumerate(changed.rows.to_batches(_TEXT_ROWS)):
            items = ",".join(_moved_texts(rows) if kind == "moved" else _fkey_texts(rows))
            yield f",{items}" if number else items
        if len(changed.rows):
            yield "\n  "
    yield text


def _fkey_texts(rows: pa.RecordBatch) -> Iterator[str]:
    for fkey in rows["fkey"].to_pylist():
        yield f"\n    {encode_basestring(fkey)}"


def _moved_texts(rows: pa.RecordBatch) -> Iterator[str]:
    columns = (map(encode_basestring, column.to_pylist()) for column in rows.columns)
    for fkey, before, after in zip(*columns, strict=True):
        yield (
            f'\n    {{\n      "fkey": {fkey},\n      "before": {before},\n'
            f'      "after": {after}\n    }}'
        )


def _without_frames(diff: DatasetDiff) -> dict[str, Any]:
    """`diff_to_json` with empty lists of frames."""
    return {
        "before": diff.before,
        "after": diff.after,
        "frames_before": diff.frames[0],
        "frames_after": diff.frames[1],
        "frames_added": diff.added.frames,
        "frames_removed": diff.removed.frames,
        "frames_moved": diff.moved.frames,
        **{kind: list[Any]() for kind in _LISTS},
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


def diff_to_rows(diff: DatasetDiff) -> pa.Table:
    """A row for each frame that is named.

    Returns:
        fkey, change ("added", "removed" or "moved"), and the split that the frame has in the first
        dataset and in the second, null where it is not in it.
    """
    parts = []
    for change in ("added", "removed", "moved"):
        rows: pa.Table = getattr(diff, change).rows
        parts.append(rows.add_column(1, "change", pa.array([change] * len(rows), pa.string())))
    return pa.concat_tables(parts)
