"""Datasets as users limited to collections see them: other, smaller datasets.

A dataset's frame is seen where the limited catalog has both of its files, image and label, at the
dataset's own snapshot; at the newest one where that has expired. The frames that are seen
are a manifest of their own, so that whatever reads a dataset's manifest (exports,
comparisons, statistics, sets that are to be like it) reads of nothing else. Neither what is asked
nor what is seen of a snapshot ever changes: what is remembered of it, in memory and on disk, stays
true, and a disk that takes nothing more costs time alone.
"""

import hashlib
import json
import logging
import shutil
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import BadFile, NotFound, StorageError
from catalog.lake.schema import FILES
from catalog.limited_store import LimitedStore
from catalog.records.tables import Dataset
from catalog.storage.atomic_write import atomic_write
from catalog.storage.eviction import Bounds, entries_in, entries_to_evict
from catalog.storage.lru import Lru
from catalog.values import Owner
from pipeline.datasets.row_counts import class_matrix
from pipeline.manifest import Manifest
from query.run.run_sql import execute

_COUNTED = 32_768
"""Datasets whose visible part is counted on disk, in 1 kB each."""

_KEPT = 256
"""Manifests that are kept on disk."""

_CLEARED_EVERY = 1_024
"""Of so many datasets that are looked at, one has those on disk counted."""

_HEX = "[0-9a-f]" * 32
_VERSION = installed_version("framesift")

_WANTED = "wanted_files"
_LOG = logging.getLogger(__name__)


class _Unreadable(Exception):
    """A dataset's own manifest is damaged, or cannot be read now."""


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """Visible part of a dataset: its id and counts; at least one frame."""

    id: str
    """Digest of it; it tells nothing of the other frames."""
    frames: int
    splits: Mapping[str, int]
    """Frames of each split that has some."""
    class_pixels: Sequence[int]
    """Pixels of each class, in the order of the dataset's."""
    class_frames: Sequence[int]
    """Frames with each class, in the same order."""


class VisibleDatasets:
    """Visible parts of datasets through one limited catalog. Safe to use from threads."""

    def __init__(
        self,
        catalog: LimitedStore,
        folder: Path,
        read: Callable[[Dataset], Manifest],
        known: Lru[str, VisiblePart | None],
    ) -> None:
        """Look at nothing yet.

        Args:
            folder: Where manifests of what is seen lie; whatever is in it can be made again.
            known: What this process remembers, of all limited catalogs.
        """
        self._read, self._known = read, known
        self._catalog, self._folder = catalog, folder
        self._looking, self._looks = threading.Lock(), 0

    def of(self, dataset: Dataset) -> tuple[VisiblePart, Path] | None:
        """The visible part of a dataset, and the folder of its manifest, once that was read.

        None without a frame, or where its manifest is unreadable.
        """
        try:
            return self._at(dataset, dataset.snapshot)
        except NotFound:
            return self._at(dataset, self._catalog.snapshot())

    def manifest(self, dataset: Dataset) -> Manifest:
        """The manifest of the visible part; kept on disk, where that takes it."""
        try:
            return self._manifest_at(dataset, dataset.snapshot)
        except NotFound:
            return self._manifest_at(dataset, self._catalog.snapshot())

    def _at(self, dataset: Dataset, snapshot: int) -> tuple[VisiblePart, Path] | None:
        key = self._key(dataset, snapshot)
        with self._looking:
            if key in self._known:
                portion = self._known.get(key)
            else:
                try:
                    portion = self._look(dataset, snapshot, key)
                except _Unreadable as error:
                    # Not remembered: it may be mended. And not told: it may be one that is not
                    # seen.
                    _LOG.warning("dataset %s@%s: %s", dataset.name, dataset.version, error)
                    return None
            self._known.put(key, portion)
        return None if portion is None else (portion, self._folder / key)

    def _manifest_at(self, dataset: Dataset, snapshot: int) -> Manifest:
        folder = self._folder / self._key(dataset, snapshot)
        with suppress(BadFile, StorageError):
            return Manifest.read(folder)
        visible = self._visible(dataset, snapshot)
        if visible is None:
            raise BadFile("no frame of it is seen any more", f"{dataset.name}@{dataset.version}")
        with suppress(StorageError):  # a full disk: the next reader computes it again
            self._forget_old()
            # Another process may write the same at the same time.
            return visible.write(folder)
        return visible

    def _key(self, dataset: Dataset, snapshot: int) -> str:
        parts = (
            _VERSION,
            self._catalog.condition,
            f"{dataset.name}@{dataset.version}",
            dataset.content_id,
            str(snapshot),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def _look(self, dataset: Dataset, snapshot: int, key: str) -> VisiblePart | None:
        file = self._folder / "counts" / f"{key}.json"
        with suppress(OSError, ValueError, KeyError, TypeError):
            return _of_json(json.loads(file.read_bytes()))
        try:
            visible = self._visible(dataset, snapshot)
        except (BadFile, StorageError) as error:
            raise _Unreadable(str(error)) from error
        portion = None if visible is None else _described(visible, len(dataset.class_pixels))
        with suppress(StorageError):
            atomic_write(file, _json_of(portion), fsync=False, parents=True, clear=False)
        self._looks += 1
        if self._looks % _CLEARED_EVERY == 1:
            counts = entries_in(file.parent.glob("*"))
            for entry in entries_to_evict(counts, Bounds(entries=_COUNTED)):
                entry.path.unlink(missing_ok=True)
        return portion

    def _visible(self, dataset: Dataset, snapshot: int) -> Manifest | None:
        """The visible part of a dataset, unwritten; None without a frame."""
        full = self._read(dataset)
        rows = self._visible_rows(full.frames, full.header.datasources, snapshot)
        return visible_part(full, rows) if rows.num_rows else None

    def _visible_rows(
        self, rows: pa.Table, datasources: Mapping[str, str], snapshot: int
    ) -> pa.Table:
        images, labels = rows["fkey"], _label_fkeys(rows, datasources)
        visible_fkeys = self._visible_fkeys(
            pa.chunked_array([*images.chunks, labels.drop_null()]), snapshot
        )
        label_is_seen = pc.or_(labels.is_null(), pc.is_in(labels, value_set=visible_fkeys))
        both = pc.and_(pc.is_in(images, value_set=visible_fkeys), label_is_seen)
        return rows.filter(both)

    def _visible_fkeys(self, fkeys: pa.ChunkedArray, at: int) -> pa.ChunkedArray:
        """The fkeys whose rows are visible: one scan, where a selection takes five."""
        statement = f"SELECT fkey FROM main.{FILES} WHERE fkey IN (SELECT fkey FROM {_WANTED})"
        with (
            self._catalog.reading(at) as snapshot,
            snapshot.with_table(_WANTED, pa.table({"fkey": fkeys})),
        ):
            return execute(snapshot, statement)["fkey"]

    def _forget_old(self) -> None:
        """Make room for one more; where one is wanted again, it is made again."""
        for manifest in entries_to_evict(
            entries_in(self._folder.glob(_HEX)), Bounds(entries=_KEPT - 1)
        ):
            shutil.rmtree(manifest.path, ignore_errors=True)


def visible_to(
    owner: Owner, datasets: VisibleDatasets, *, has_rows: bool = True
) -> Callable[[Dataset], Dataset | None]:
    """A function that turns a dataset into the record that a user sees (docs/decisions/0020).

    Args:
        owner: The user.
        datasets: What the user sees of them.
        has_rows: Whether the user is in a collection: without one no dataset is looked at.
    """

    def as_visible(dataset: Dataset) -> Dataset | None:
        portion = datasets.of(dataset) if has_rows else None
        return None if portion is None else _record_of(dataset, *portion, owner)

    return as_visible


def _record_of(dataset: Dataset, portion: VisiblePart, manifest: Path, owner: Owner) -> Dataset:
    """The visible part, as a record without the question, which tells of other rows."""
    is_own = Owner(dataset.owner, dataset.account) == owner
    if is_own and portion.frames == dataset.frames:
        return dataset
    return Dataset(
        id=dataset.id,
        name=dataset.name,
        version=dataset.version,
        content_id=portion.id,
        question={},
        snapshot=dataset.snapshot,
        frames=portion.frames,
        splits=dict(portion.splits),
        class_pixels=dict(zip(dataset.class_pixels, portion.class_pixels, strict=True)),
        class_frames=dict(zip(dataset.class_pixels, portion.class_frames, strict=True)),
        manifest=str(manifest),
        seed="0",
        parents=[],
        report={},
        owner=owner.name if is_own else "",
        account=owner.account if is_own else "",
        created=dataset.created,
        description=dataset.description if is_own else "",
        first_name=dataset.first_name,
    )


def _label_fkeys(rows: pa.Table, datasources: Mapping[str, str]) -> pa.Array:
    """The fkey of each frame's label; null where it has none."""
    pairs = zip(rows["label_source"].to_pylist(), rows["label"].to_pylist(), strict=True)
    return pa.array(
        [None if label is None else f"{datasources[source]}:{label}" for source, label in pairs],
        pa.string(),
    )


def visible_part(manifest: Manifest, rows: pa.Table) -> Manifest:
    """A manifest of some of the frames, which tells of no other, nor of how they were chosen."""
    header = manifest.header
    counts = Counter(rows["split"].to_pylist())
    sources = {
        name
        for kind in ("image", "label")
        for name in pc.unique(rows[f"{kind}_source"]).to_pylist()
    }
    digest = hashlib.sha256(f"{header.name}@{header.version} {header.snapshot}".encode())
    for fkey, split in zip(rows["fkey"].to_pylist(), rows["split"].to_pylist(), strict=True):
        digest.update(f"\n{split} {fkey}".encode())
    visible_header = replace(
        header,
        id=digest.hexdigest(),
        question={},
        splits={split: counts[split] for split in header.splits if counts[split]},
        roots={name: root for name, root in header.roots.items() if name in sources},
        datasources={n: names for n, names in header.datasources.items() if n in sources},
        layouts={name: of for name, of in header.layouts.items() if name in sources},
        class_lists=tuple(
            (tuple(name for name in its_sources if name in sources), class_list)
            for its_sources, class_list in header.class_lists
        ),
        within={name: folder for name, folder in header.within.items() if name in sources},
        seed=0,
        parents=(),
        report={},
    )
    return Manifest(visible_header, rows)


def _described(manifest: Manifest, classes: int) -> VisiblePart:
    matrix = class_matrix(manifest.frames, classes)
    return VisiblePart(
        manifest.header.id,
        len(manifest),
        manifest.header.splits,
        array("q", matrix.sum(axis=0).tolist()),
        array("q", (matrix > 0).sum(axis=0).tolist()),
    )


def _json_of(portion: VisiblePart | None) -> str:
    if portion is None:
        return "null"
    pixels, frames = list(portion.class_pixels), list(portion.class_frames)
    return json.dumps([portion.id, portion.frames, dict(portion.splits), pixels, frames])


def _of_json(data: Any) -> VisiblePart | None:
    """The part that `_json_of` was given."""
    if data is None:
        return None
    id_, frames, splits, pixels, class_frames = data
    return VisiblePart(
        str(id_), int(frames), dict(splits), array("q", pixels), array("q", class_frames)
    )
