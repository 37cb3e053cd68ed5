"""The next training data of a model: frames that cover what it is weak in.

They are taken one after another (`query.sets.lacking`): the frame whose pixels of weak classes add
most to those that the training set has, less what a frame near it in time shows already. Each
counts by how weak the model is in its camera and other slices of the report, and by how unsure it
was of it, where that is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput, NothingToAdd
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.tables import Dataset
from catalog.tags.confusion_cells import predicted_pixels
from catalog.values import NOBODY, Owner
from pipeline.datasets.class_lists import of_alike_sources, tags_of
from pipeline.datasets.datasets import Content, Provenance, save_content
from pipeline.datasets.derive import grown_by, grown_split, one_of_each
from pipeline.datasets.frame_worth import Reals, Worth
from pipeline.datasets.leakage_guard import guard_of_rows, union
from pipeline.datasets.naming import naming
from pipeline.datasets.proposal import ClassPixels, ProposedFrame, Wanted, propose
from pipeline.datasets.row_counts import class_matrix
from pipeline.datasets.spread_choice import spread_choice
from pipeline.datasets.stores import Stores
from pipeline.manifest_store import read_manifest
from query.frames.file_versions import with_versions
from query.frames.sampling import Hashes, hashes_of
from query.frames.select_frames import frames_of
from query.frames.selection import Selection
from query.question.condition import TagIs
from query.question.question import Question
from query.sets.draw import Frames, guard_columns, near_rows
from query.sets.leakage_guard import LeakageGuard
from query.sets.min_gap import MIN_GAP_S

COVER, SPREAD = "cover", "spread"


@dataclass(frozen=True)
class Improvement:
    """Settings of an improvement: the same settings choose the same frames of a snapshot."""

    frames: int
    """How many to add."""
    weak_classes: Mapping[str, float]
    """How weak the model is in a class, by tag: 1 - IoU, 1 where it has none."""
    weak_slices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """How weak it is in parts of the frames, by tag and part: 1 - mean IoU."""
    uncertainty: str | None = None
    """Tag of how unsure it was of a frame; None where none was imported."""
    split: str | None = None
    per_scene: int | None = None
    """Most of one scene."""
    min_gap_s: float = MIN_GAP_S
    """They are at least so far from frames that are validated with [s]."""
    seed: int = 0
    """Decides between frames that are worth the same."""
    classes: tuple[str, ...] = ()
    """Tags of the classes that frames are chosen for; all that it is weak in when empty."""
    rule: str = COVER
    """COVER; SPREAD of versions that 0.2.0 made, whose records name none."""
    dropped: tuple[str, ...] = ()
    """fkeys that are left out of the frames that the other settings choose."""

    @classmethod
    def of_record(cls, stored: Mapping[str, Any]) -> "Improvement":
        """The settings that a version's record holds."""
        settings = {one.name: stored[one.name] for one in fields(cls) if one.name in stored}
        return cls(**({"rule": SPREAD} | settings))

    @property
    def as_record(self) -> dict[str, Any]:
        """The settings as a version's record holds them."""
        stored = asdict(self)
        if self.rule == SPREAD:
            del stored["rule"], stored["classes"]
        if not self.dropped:
            del stored["dropped"]
        return stored

    @property
    def known(self) -> Worth:
        """What the model is weak in and unsure of, of the classes that frames are chosen for."""
        weak = self.weak_classes
        if self.classes:
            weak = {tag: weak[tag] for tag in self.classes}
        return Worth(weak, self.weak_slices, self.uncertainty)


@dataclass(frozen=True)
class Confusions:
    """What a validation found that a model's predictions mean."""

    model: str
    """The model, whose imported predictions are looked at."""
    tags: tuple[str, ...]
    """The C class tags that it tells apart."""
    truth_of: Reals
    """(C, C) float64: row truth, column prediction; the share of the pixels taken for a class that
    were of each class.
    """


@dataclass(frozen=True)
class HeldOutSplit:
    """Split of a dataset that a model is validated with; no frame is added to it."""

    dataset: Dataset
    split: str


def improve_dataset(
    stores: Stores,
    dataset: Dataset,
    improvement: Improvement,
    held_splits: list[HeldOutSplit],
    at: int | None = None,
    owner: Owner = NOBODY,
) -> tuple[Dataset, list[tuple[str, ProposedFrame]]]:
    """Add frames where a model is weak, as a new version; its report says what to expect.

    Args:
        dataset: What the model was trained on.
        held_splits: What it is validated with: no frame, scene, drive or moment of it is added.
        at: The catalog snapshot that the frames are of; the newest when None.

    Returns:
        The new version; and the fkeys that were added, those that add most first, with reasons.

    Raises:
        InvalidInput: A frame is dropped that is not chosen.
        NothingToAdd: No frame is left, or none that is expected to help.
    """
    content, report, proposed = improved_content(stores, dataset, improvement, held_splits, at)
    provenance = Provenance(seed=improvement.seed, parents=[dataset], report=report, owner=owner)
    with naming(stores.catalog, content.snapshot, dataset.name):
        return save_content(stores.records, dataset.name, content, provenance), proposed


def improved_content(
    stores: Stores,
    dataset: Dataset,
    improvement: Improvement,
    held_splits: list[HeldOutSplit],
    at: int | None,
) -> tuple[Content, dict[str, Any], list[tuple[str, ProposedFrame]]]:
    """The content that `improve_dataset` saves, its report and its frames; it raises the same."""
    manifest = read_manifest(stores.records, dataset)
    split = grown_split(dataset, manifest, improvement.split)
    away = _held_out_guard(stores, dataset, split, held_splits, improvement.min_gap_s)
    old = hashes_of(manifest.frames["fkey"].to_pylist())
    with stores.catalog.reading(at) as snapshot:
        alike = of_alike_sources(stores.records, manifest.header.dataset_classes)
        frames = Frames(snapshot, snapshot.relation, alike)
        pool, left_out = _pool(frames, improvement, away, old)
        tags = tuple(snapshot.classes)
        pixels = [pc.fill_null(pool[tag].cast(pa.float64()), 0).to_numpy() for tag in tags]
        of_pool = ClassPixels(tags, np.array(pixels).reshape(len(tags), -1).T)
        had = _amounts(manifest.split(split).frames, tags_of(manifest))
        proposed = (
            propose(pool, of_pool, had, _wanted(improvement))
            if improvement.rule == COVER
            else _spread(pool, of_pool, improvement)
        )
        if not proposed:
            raise NothingToAdd(_why_nothing(dataset, improvement, len(pool), left_out))
        proposed = _kept(dataset, proposed, improvement.dropped)
        chosen = np.array([one.fkey_hash for one in proposed], np.uint64)
        rows, classes = frames_of(snapshot, np.sort(chosen))
        number = snapshot.number
        added = with_versions(snapshot, Selection(Question(snapshot=number), number, rows, classes))
    entry = {
        "of": dataset.content_id,
        "snapshot": number,
        **improvement.as_record,
        "split": split,
        "improved": True,
        "held": [{"of": one.dataset.content_id, "split": one.split} for one in held_splits],
    }
    content = grown_by(stores, dataset, manifest, added, entry)
    report = {
        "method": "improve",
        "wanted": improvement.frames,
        "added": len(added),
        "dropped": len(improvement.dropped),
        "pool": pool.num_rows,
        "left_out_as_too_near": left_out,
        "scenes": len(pc.unique(added.frames["scene"])),
        "expects": _expects(improvement, split, content, added),
    }
    return content, report, _with_fkeys(rows, proposed)


def frames_to_label(
    stores: Stores,
    dataset: Dataset,
    improvement: Improvement,
    held_splits: list[HeldOutSplit],
    confusions: Confusions,
    at: int | None = None,
) -> list[tuple[str, ProposedFrame]]:
    """The unlabelled frames that are most worth a label, as many as are wanted, with their fkeys.

    By slices and uncertainty, and by the pixels of weak classes that the model's predictions let
    expect, where they were imported. No label is looked at.
    """
    manifest = read_manifest(stores.records, dataset)
    split = grown_split(dataset, manifest, improvement.split)
    away = _held_out_guard(stores, dataset, split, held_splits, improvement.min_gap_s)
    old = hashes_of(manifest.frames["fkey"].to_pylist())
    without = Question(condition=TagIs(kind="tag", tag="labelled", op="=", value=0))
    with stores.catalog.reading_files(at) as snapshot:  # which has what models found
        frames = Frames(snapshot, snapshot.every_frame, without)
        pool, _ = _pool(frames, improvement, away, old)
        expected = _expected(snapshot, confusions, np.asarray(pool[FKEY_HASH]))
        proposed = propose(pool, expected, {}, _wanted(improvement))
        chosen = np.array([one.fkey_hash for one in proposed], np.uint64)
        rows, _ = frames_of(snapshot, np.sort(chosen))
    return _with_fkeys(rows, proposed)


def _kept(
    dataset: Dataset, proposed: list[ProposedFrame], dropped: Sequence[str]
) -> list[ProposedFrame]:
    """The frames that are not dropped.

    Raises:
        InvalidInput: A frame is dropped that is not among them.
        NothingToAdd: All are dropped.
    """
    hash_of = dict(zip(dropped, hashes_of([*dropped]).tolist(), strict=True))
    chosen = {one.fkey_hash for one in proposed}
    if strange := [fkey for fkey, fkey_hash in hash_of.items() if fkey_hash not in chosen]:
        raise InvalidInput(
            f"drop {strange[0]}: it is not among the {len(proposed):,} frames that are chosen; "
            "drop none but those that the same request names without drop"
        )
    left_out = {*hash_of.values()}
    kept = [one for one in proposed if one.fkey_hash not in left_out]
    if not kept:
        raise NothingToAdd(
            f"dataset {dataset.name}: all {len(proposed):,} frames that are chosen are dropped; "
            "keep one, or ask for more"
        )
    return kept


def _spread(pool: pa.Table, classes: ClassPixels, improvement: Improvement) -> list[ProposedFrame]:
    chosen = spread_choice(
        pool, classes.pixels.T, classes.tags, improvement.known, improvement.frames,
        improvement.per_scene, improvement.seed,
    )  # fmt: skip
    return [ProposedFrame(one) for one in chosen.tolist()]


def _wanted(improvement: Improvement) -> Wanted:
    return Wanted(improvement.frames, improvement.known, improvement.per_scene, improvement.seed)


def _with_fkeys(rows: pa.Table, proposed: list[ProposedFrame]) -> list[tuple[str, ProposedFrame]]:
    fkeys = rows["fkey"].to_pylist()
    of_hash = dict(zip(hashes_of(fkeys).tolist(), fkeys, strict=True))
    return [(of_hash[one.fkey_hash], one) for one in proposed]


def _amounts(rows: pa.Table, tags: Sequence[str]) -> dict[str, float]:
    """The amount of each class in a split, as pipeline.datasets.proposal has it, by tag."""
    amounts = np.sqrt(class_matrix(rows, len(tags))).sum(axis=0).tolist()
    return dict(zip(tags, amounts, strict=True))


def _why_nothing(dataset: Dataset, improvement: Improvement, pool: int, left_out: int) -> str:
    if not pool:
        return (
            f"dataset {dataset.name}: the catalog has no labelled frame that is neither in it "
            f"nor too near to what is validated with ({left_out:,} are too near)"
        )
    tags = improvement.classes or tuple(improvement.weak_classes)
    return (
        f"dataset {dataset.name}: no frame of the pool is expected to help: none of {pool:,} shows "
        f"{', '.join(sorted(tags))}; ingest frames that do, or give other classes"
    )


def _held_out_guard(
    stores: Stores, dataset: Dataset, split: str, held_splits: list[HeldOutSplit], min_gap_s: float
) -> LeakageGuard | None:
    """The frames of all that is validated with; the dataset's other splits are, too."""
    parts = []
    own = read_manifest(stores.records, dataset).frames
    for one, rows in [
        (dataset, own.filter(pc.not_equal(own["split"], split))),
        *(
            (each.dataset, read_manifest(stores.records, each.dataset).split(each.split).frames)
            for each in held_splits
        ),
    ]:
        if rows.num_rows:
            parts.append(guard_of_rows(stores.catalog, rows, one.snapshot, min_gap_s))
    return union(parts, min_gap_s)


def _pool(
    frames: Frames, improvement: Improvement, away: LeakageGuard | None, old: Hashes
) -> tuple[pa.Table, int]:
    """The frames to choose from, once each, and how many are too near to what is held apart."""
    snapshot = frames.snapshot
    unsure = [improvement.uncertainty] if improvement.uncertainty in snapshot.tags else []
    slices = [tag for tag in improvement.weak_slices if tag in snapshot.tags]
    columns = ["camera", *snapshot.classes, *filter(None, unsure), *slices]
    guarded = guard_columns(snapshot, frames.relation)
    rows = frames.fetch_all([*dict.fromkeys([*columns, *guarded])])
    had = np.isin(np.asarray(rows[FKEY_HASH]), old)
    near = np.zeros(len(rows), bool) if away is None else near_rows(rows, away)
    free = one_of_each(rows, ~had & ~near, had)
    return rows.filter(pa.array(free)), int((near & ~had).sum())


def _expected(snapshot: Snapshot, confusions: Confusions, hashes: Hashes) -> ClassPixels:
    """Pixels of each class that a model's predictions let expect; 0 where none was imported."""
    rows, _ = frames_of(snapshot, np.sort(hashes))
    predicted = predicted_pixels(snapshot, confusions.model, rows["fkey"].to_pylist())
    known = np.isin(predicted["predicted"].to_pylist(), confusions.tags)
    predicted = predicted.filter(pa.array(known))
    column_of = {tag: column for column, tag in enumerate(confusions.tags)}
    columns = [column_of[tag] for tag in predicted["predicted"].to_pylist()]
    order = np.argsort(hashes)
    frames = order[np.searchsorted(hashes[order], hashes_of(predicted["fkey"].to_pylist()))]
    pixels = np.zeros((len(hashes), len(confusions.tags)))
    pixels[frames, columns] = predicted["pixels"].to_numpy()
    return ClassPixels(confusions.tags, pixels @ confusions.truth_of.T, predicted=True)


def _expects(
    improvement: Improvement, split: str, content: Content, added: Selection
) -> list[dict[str, Any]]:
    """The weak classes, weakest first: in how many frames of the split they were, and come."""
    grown = content.table().filter(pc.equal(content.table()["split"], split))
    frames = (class_matrix(grown, len(content.classes.tags)) > 0).sum(axis=0).tolist()
    rows = []
    for tag, count in zip(content.classes.tags, frames, strict=True):
        if tag in improvement.known.weak_classes:
            come = int(pc.sum(pc.greater(added.frames[tag], 0)).as_py() or 0)
            weakness = round(improvement.weak_classes[tag], 4)
            rows.append({"class": tag, "weakness": weakness, "frames": count - come, "added": come})
    return sorted(rows, key=lambda row: (-float(row["weakness"]), str(row["class"])))
