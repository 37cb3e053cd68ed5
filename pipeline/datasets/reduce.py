"""A smaller training set: of one split the frames that say most, the others as they are.

First, as few frames as have every class of the split; then, always the frame whose shares of
classes are least like those that are kept already. Where a model's weak classes or its uncertainty
are given, frames are chosen among twice as many as are kept, those that are worth most to it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.tables import Dataset
from catalog.values import NOBODY, Owner
from pipeline.datasets.class_lists import tags_of
from pipeline.datasets.datasets import Content, Provenance, save_content
from pipeline.datasets.derive import described, grown_split
from pipeline.datasets.frame_worth import Worth, worth_of
from pipeline.datasets.row_counts import class_matrix
from pipeline.datasets.stores import Stores
from pipeline.manifest_store import read_manifest
from pipeline.source_locations import SourceLocations
from query.frames.sampling import hashes_of
from query.sets.coverage import cover, packed
from query.sets.strata import one_stratum
from query.sets.stratifier import Stratifier
from query.sets.uncertain import most_uncertain, spread_out, standardised

_POOL = 2


@dataclass(frozen=True)
class Reduction:
    """Settings of a reduction: equal settings keep equal frames."""

    frames: int
    """How many the split keeps."""
    weak_classes: Mapping[str, float] = field(default_factory=dict)
    """How weak a model is in a class, by tag, 0 to 1; empty where none was asked."""
    weak_slices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """How weak it is in parts of the frames, by tag and part."""
    uncertainty: str | None = None
    """Tag of how unsure it was of a frame; None where none was imported."""
    split: str | None = None
    """That is made smaller; the only one, or "train", when None."""
    seed: int = 0
    """Decides between frames that are worth the same."""
    snapshot: int | None = None
    """Of the catalog whose tags say of uncertainty and duplicates; the newest when None."""


def reduce_dataset(
    stores: Stores, dataset: Dataset, reduction: Reduction, owner: Owner = NOBODY
) -> Dataset:
    """Keep a split's most informative frames, as a new version; its report says what it lost."""
    content, report = reduced_content(stores, dataset, reduction)
    provenance = Provenance(seed=reduction.seed, parents=[dataset], report=report, owner=owner)
    return save_content(stores.records, dataset.name, content, provenance)


def reduced_content(
    stores: Stores, dataset: Dataset, reduction: Reduction
) -> tuple[Content, dict[str, Any]]:
    """The content that `reduce_dataset` saves, and its report; it raises the same."""
    manifest = read_manifest(stores.records, dataset)
    usual = "train" if "train" in manifest.header.splits else None
    split = grown_split(dataset, manifest, reduction.split or usual)
    of_split = np.flatnonzero(np.asarray(pc.equal(manifest.frames["split"], split)))
    of_reduced = manifest.split(split).need_labels()
    if not 0 < reduction.frames < len(of_reduced):
        raise InvalidInput(
            f"dataset {dataset.name}: split {split} has {len(of_reduced):,} frames, and "
            f"{reduction.frames:,} are to be kept; give fewer, at least 1"
        )
    with stores.catalog.reading(reduction.snapshot) as snapshot:
        reduction = replace(reduction, snapshot=snapshot.number)
    tags = tags_of(manifest)
    positions = _positions(stores, of_reduced.frames, tags, reduction)
    pixels = class_matrix(of_reduced.frames, len(tags)) > 0
    rows = np.ones(len(manifest), bool)
    rows[of_split] = False
    rows[of_split[positions]] = True
    entry = {"of": dataset.content_id, **asdict(reduction), "split": split}
    content = Content(
        question={
            **dataset.question,
            "reduced": [*dataset.question.get("reduced", []), entry],
        },
        snapshot=dataset.snapshot,
        rows=manifest.frames.filter(pa.array(rows)),
        splits=tuple(manifest.header.splits),
        classes=manifest.header.dataset_classes,
        source_locations=SourceLocations.in_header(manifest.header),
    )
    counts = zip(
        tags, pixels.sum(axis=0).tolist(), pixels[positions].sum(axis=0).tolist(), strict=True
    )
    report = {
        "method": "reduce",
        "split": split,
        "frames": len(of_reduced),
        "kept": len(positions),
        "scenes": len(pc.unique(of_reduced.frames["scene"].take(pa.array(positions)))),
        "classes": [{"class": tag, "frames": had, "kept": has} for tag, had, has in counts if had],
    }
    return content, report


def _positions(stores: Stores, rows: pa.Table, tags: tuple[str, ...], reduction: Reduction) -> Any:
    """(frames,) int64, ascending: the positions of what is kept."""
    hashes = hashes_of(rows["fkey"].to_pylist())
    unsure = [reduction.uncertainty] if reduction.uncertainty else []
    slices = [tag for tag in reduction.weak_slices if tag not in ("camera", *tags)]
    # Scores come after the dataset: they are not those of its snapshot.
    pool = described(stores, rows, tags, hashes, reduction.snapshot, [*unsure, *slices])
    pool = pool.append_column(FKEY_HASH, pa.array(hashes))
    pixels = class_matrix(rows, len(tags)).astype(np.float64).T
    scenes = one_stratum(pool, Stratifier("scene"), {}).codes
    has = pixels > 0
    targets = has.any(axis=1).astype(np.int64)
    every = cover(packed(iter(has), len(hashes)), hashes, targets, reduction.seed).positions
    worth = Worth(reduction.weak_classes, reduction.weak_slices, reduction.uncertainty)
    number = reduction.frames * _POOL if worth.knows_a_model else len(hashes)
    valued = worth_of(pool, pixels, tags, worth)
    best = most_uncertain(valued, scenes, hashes, number, None, reduction.seed)
    shares = pixels[:, best] / np.maximum(pixels[:, best].sum(axis=0), 1)
    spread = best[spread_out(standardised(shares.T), scenes[best], reduction.frames, None)]
    order = np.concatenate((np.asarray(every, np.int64), spread))
    _, first = np.unique(order, return_index=True)
    return np.sort(order[np.sort(first)][: reduction.frames])
