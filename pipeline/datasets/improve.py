"""The next training data of a model: frames where it is weak, unsure, and unlike each other.

A frame is worth the mean of three shares, 0 to 1: of the classes that it has, how weak the model is
in them; of its camera and other slices of the report, how weak there; and how unsure the model was
of it, where that is known. Of the frames that are worth most, five times as many as wanted, those
are taken that are least alike.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import NothingToAdd
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.tables import Dataset
from catalog.tags.confusion_cells import predicted_pixels
from catalog.values import NOBODY, Owner
from pipeline.datasets.class_lists import of_alike_sources
from pipeline.datasets.datasets import Content, Provenance, save_content
from pipeline.datasets.derive import grown_by, grown_split, one_of_each
from pipeline.datasets.frame_worth import Reals, Worth, worth_of
from pipeline.datasets.leakage_guard import guard_of_rows, union
from pipeline.datasets.naming import naming
from pipeline.datasets.row_counts import class_matrix
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
from query.sets.strata import one_stratum
from query.sets.stratifier import Stratifier
from query.sets.uncertain import most_uncertain, spread_out, standardised

_POOL = 5
"""So many times the frames wanted, those that are worth most, are chosen among."""


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
) -> Dataset:
    """Add frames where a model is weak, as a new version; its report says what to expect.

    Args:
        dataset: What the model was trained on.
        held_splits: What it is validated with: no frame, scene, drive or moment of it is added.
        at: The catalog snapshot that the frames are of; the newest when None.
    """
    content, report = improved_content(stores, dataset, improvement, held_splits, at)
    provenance = Provenance(seed=improvement.seed, parents=[dataset], report=report, owner=owner)
    with naming(stores.catalog, content.snapshot, dataset.name):
        return save_content(stores.records, dataset.name, content, provenance)


def improved_content(
    stores: Stores,
    dataset: Dataset,
    improvement: Improvement,
    held_splits: list[HeldOutSplit],
    at: int | None,
) -> tuple[Content, dict[str, Any]]:
    """The content that `improve_dataset` saves, and its report; it raises the same."""
    manifest = read_manifest(stores.records, dataset)
    split = grown_split(dataset, manifest, improvement.split)
    away = _held_out_guard(stores, dataset, split, held_splits, improvement.min_gap_s)
    old = hashes_of(manifest.frames["fkey"].to_pylist())
    with stores.catalog.reading(at) as snapshot:
        alike = of_alike_sources(stores.records, manifest.header.dataset_classes)
        frames = Frames(snapshot, snapshot.relation, alike)
        pool, left_out = _pool(frames, improvement, away, old)
        chosen = _chosen(pool, snapshot, improvement)
        if not len(chosen):
            raise NothingToAdd(
                f"dataset {dataset.name}: the catalog has no labelled frame that is neither in it "
                f"nor too near to what is validated with ({left_out:,} are too near)"
            )
        rows, classes = frames_of(snapshot, np.sort(chosen))
        number = snapshot.number
        added = with_versions(snapshot, Selection(Question(snapshot=number), number, rows, classes))
    entry = {
        "of": dataset.content_id,
        "snapshot": number,
        **asdict(improvement),
        "split": split,
        "improved": True,
        "held": [{"of": one.dataset.content_id, "split": one.split} for one in held_splits],
    }
    content = grown_by(stores, dataset, manifest, added, entry)
    report = {
        "method": "improve",
        "wanted": improvement.frames,
        "added": len(added),
        "pool": pool.num_rows,
        "left_out_as_too_near": left_out,
        "scenes": len(pc.unique(added.frames["scene"])),
        "expects": _expects(improvement, split, content, added),
    }
    return content, report


def frames_to_label(
    stores: Stores,
    dataset: Dataset,
    improvement: Improvement,
    held_splits: list[HeldOutSplit],
    model: str,
    at: int | None = None,
) -> list[str]:
    """Fkeys of the unlabelled frames that are most worth a label, as many as are wanted.

    By slices and uncertainty, for nobody has counted their classes; unlike each other by the
    classes that the model found in them, where its prediction was imported.
    """
    manifest = read_manifest(stores.records, dataset)
    split = grown_split(dataset, manifest, improvement.split)
    away = _held_out_guard(stores, dataset, split, held_splits, improvement.min_gap_s)
    old = hashes_of(manifest.frames["fkey"].to_pylist())
    without = Question(condition=TagIs(kind="tag", tag="labelled", op="=", value=0))
    with stores.catalog.reading_files(at) as snapshot:  # which has what models found
        frames = Frames(snapshot, snapshot.every_frame, without)
        pool, _ = _pool(frames, improvement, away, old)
        chosen = _chosen(pool, snapshot, improvement, model)
        rows, _ = frames_of(snapshot, chosen)
    fkeys: list[str] = rows["fkey"].to_pylist()
    return fkeys


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


def _chosen(
    pool: pa.Table, snapshot: Snapshot, improvement: Improvement, model: str | None = None
) -> Hashes:
    """fkey_hash of the frames that are taken, in the order in which they were.

    Frames are alike by the classes of their labels; with a model, by those that it found in them.
    """
    hashes = np.asarray(pool[FKEY_HASH])
    if not len(pool):
        return hashes
    classes = list(snapshot.classes)
    pixels = np.array(
        [pc.fill_null(pool[tag].cast(pa.float64()), 0).to_numpy() for tag in classes]
    ).reshape(len(classes), -1)
    scenes = one_stratum(pool, Stratifier("scene"), {}).codes
    few = None if improvement.per_scene is None else improvement.per_scene * _POOL
    known = Worth(improvement.weak_classes, improvement.weak_slices, improvement.uncertainty)
    worth = worth_of(pool, pixels, classes, known)
    best = most_uncertain(worth, scenes, hashes, improvement.frames * _POOL, few, improvement.seed)
    pixels = pixels[:, best] if model is None else _predicted(snapshot, model, hashes[best])
    shares = pixels / np.maximum(pixels.sum(axis=0), 1)
    positions = spread_out(
        standardised(shares.T), scenes[best], improvement.frames, improvement.per_scene
    )
    chosen: Hashes = hashes[best[positions]]
    return chosen


def _predicted(snapshot: Snapshot, model: str, hashes: Hashes) -> Reals:
    """(C, frames) float64: pixels that a model took for each class that it found; 0 if unknown."""
    rows, _ = frames_of(snapshot, hashes)
    predicted = predicted_pixels(snapshot, model, rows["fkey"].to_pylist())
    classes = predicted["predicted"].combine_chunks().dictionary_encode()
    order = np.argsort(hashes)
    frames = order[np.searchsorted(hashes[order], hashes_of(predicted["fkey"].to_pylist()))]
    pixels = np.zeros((len(classes.dictionary), len(hashes)))
    pixels[np.asarray(classes.indices), frames] = predicted["pixels"].to_numpy()
    return pixels


def _expects(
    improvement: Improvement, split: str, content: Content, added: Selection
) -> list[dict[str, Any]]:
    """The weak classes, weakest first: in how many frames of the split they were, and come."""
    grown = content.table().filter(pc.equal(content.table()["split"], split))
    frames = (class_matrix(grown, len(content.classes.tags)) > 0).sum(axis=0).tolist()
    rows = []
    for tag, count in zip(content.classes.tags, frames, strict=True):
        if tag in improvement.weak_classes:
            come = int(pc.sum(pc.greater(added.frames[tag], 0)).as_py() or 0)
            weakness = round(improvement.weak_classes[tag], 4)
            rows.append({"class": tag, "weakness": weakness, "frames": count - come, "added": come})
    return sorted(rows, key=lambda row: (-float(row["weakness"]), str(row["class"])))
