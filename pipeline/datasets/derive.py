"""Datasets made of datasets: divided again, or extended where something is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from catalog.records.tables import Dataset
from catalog.values import NOBODY, Owner
from pipeline.datasets.class_lists import of_alike_sources, tags_of
from pipeline.datasets.datasets import Content, Provenance, save_content
from pipeline.datasets.division import Division, divide, leakage
from pipeline.datasets.leakage_guard import frame_numbers, guard_of_rows
from pipeline.datasets.naming import naming
from pipeline.datasets.row_counts import class_matrix
from pipeline.datasets.selection_rows import rows_of
from pipeline.datasets.stores import Stores
from pipeline.manifest import Manifest
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.manifest_store import read_manifest
from pipeline.source_locations import SourceLocations
from query.frames.candidates import DUPLICATE, Candidates, columns_of, once
from query.frames.file_versions import with_versions
from query.frames.sampling import Hashes, hashes_of
from query.frames.select_frames import frames_of
from query.frames.selection import Selection
from query.question.question import Question
from query.sets.coverage import Covered, cover, packed
from query.sets.draw import Frames, covers_of, demand_columns, guard_columns, near_rows
from query.sets.methods import Demand
from query.sets.min_gap import MIN_GAP_S


def split_dataset(
    stores: Stores, dataset: Dataset, division: Division, owner: Owner = NOBODY
) -> Dataset:
    """A dataset's frames divided again, as a new version of it."""
    content, report = split_content(stores, dataset, division)
    # How the frames were chosen stays true; how they were divided does not.
    chosen = {k: v for k, v in dataset.report.items() if k not in ("leakage", "split_strata")}
    provenance = Provenance(
        seed=division.seed, parents=[dataset], report={**chosen, **report}, owner=owner
    )
    return save_content(stores.records, dataset.name, content, provenance)


def split_content(
    stores: Stores, dataset: Dataset, division: Division
) -> tuple[Content, dict[str, Any]]:
    """The content that `split_dataset` saves, and the division's report; it raises the same."""
    manifest = read_manifest(stores.records, dataset)
    tags = tags_of(manifest)
    hashes = hashes_of(manifest.frames["fkey"].to_pylist())
    rows = described(stores, manifest.frames, tags, hashes, dataset.snapshot, division.columns())
    sides, report = divide(rows, hashes, division, dict.fromkeys(tags, ""))
    splits = division.splits
    content = Content(
        question={**dataset.question, **division.to_json()},
        snapshot=dataset.snapshot,
        rows=_with_splits(manifest.frames, pa.array(splits).take(pa.array(sides))),
        splits=splits,
        classes=manifest.header.dataset_classes,
        source_locations=SourceLocations.in_header(manifest.header),
    )
    return content, report


def _with_splits(rows: pa.Table, splits: pa.Array) -> pa.Table:
    index = rows.column_names.index("split")
    return rows.set_column(index, "split", splits).cast(FRAMES_SCHEMA)


def described(
    stores: Stores,
    rows: pa.Table,
    tags: Sequence[str],
    hashes: Hashes,
    at: int | None,
    columns: Sequence[str],
) -> pa.Table:
    """A manifest's rows as a division looks at them; other columns come from the catalog.

    Args:
        tags: Class tag of each entry of class_pixels.
        hashes: The rows' fkey_hash.
        at: The catalog snapshot that they are of; the newest when None.
        columns: Which, besides scene, camera and classes.
    """
    matrix = class_matrix(rows, len(tags))
    known = {
        "scene": rows["scene"],
        "camera": rows["camera"],
        "frame_number": frame_numbers(rows),
        **{tag: pa.array(matrix[:, index]) for index, tag in enumerate(tags)},
    }
    described = pa.table(known)
    with stores.catalog.reading(at) as snapshot:
        relation = snapshot.every_frame
        guarded = guard_columns(snapshot, relation)
        more = [name for name in dict.fromkeys([*columns, *guarded]) if name not in known]
        if more:
            fetched = columns_of(snapshot, relation, hashes, more)
            aligned = _aligned(fetched, hashes)
            for name in more:
                described = described.append_column(name, aligned[name])
    return described


def _aligned(candidates: Candidates, hashes: Hashes) -> pa.Table:
    """The rows in the order of the hashes; nulls where the catalog has a frame no more."""
    there = candidates.hashes
    order = np.argsort(there)
    index = np.searchsorted(there[order], hashes).clip(0, max(len(there) - 1, 0))
    if not len(there):
        return candidates.rows.take(pa.nulls(len(hashes), pa.int64()))
    rows = order[index]
    return candidates.rows.take(pa.array(rows, mask=there[rows] != hashes))


@dataclass(frozen=True)
class Gap:
    """The gap of a dataset that an extension closes."""

    demands: tuple[Demand, ...]
    split: str | None = None
    """Of which split; the only one when None."""
    min_gap_s: float = MIN_GAP_S
    """Added frames are at least so far from those of other splits [s]."""
    allow_leakage: bool = False
    """They may be of any scene, at any time."""
    seed: int = 0
    """Decides between frames that close the gap equally well."""


def extend_dataset(
    stores: Stores, dataset: Dataset, gap: Gap, at: int | None = None, owner: Owner = NOBODY
) -> Dataset:
    """Add as few frames as close the gap, as a new version; the report says what stays open.

    Args:
        at: The catalog snapshot that the new frames are of; the newest when None.
    """
    content, report = grown_content(stores, dataset, gap, at)
    provenance = Provenance(seed=gap.seed, parents=[dataset], report=report, owner=owner)
    with naming(stores.catalog, content.snapshot, dataset.name):
        return save_content(stores.records, dataset.name, content, provenance)


def grown_content(
    stores: Stores, dataset: Dataset, gap: Gap, at: int | None
) -> tuple[Content, dict[str, Any]]:
    """The content that `extend_dataset` saves, and its report; it raises the same."""
    manifest = read_manifest(stores.records, dataset)
    split = grown_split(dataset, manifest, gap.split)
    old = hashes_of(manifest.frames["fkey"].to_pylist())
    of_split = np.asarray(pc.equal(manifest.frames["split"], split))
    with stores.catalog.reading(at) as snapshot:
        pool = of_alike_sources(stores.records, manifest.header.dataset_classes)
        candidates, covers = _candidates(snapshot, pool, gap.demands)
        hashes = np.asarray(candidates[FKEY_HASH])
        here = np.isin(hashes, old[of_split])
        had = np.array([int((holds & here).sum()) for holds in covers.members()], np.int64)
        free = ~np.isin(hashes, old)
        left_out = 0
        other_splits = manifest.frames.filter(pa.array(~of_split))
        if not gap.allow_leakage and other_splits.num_rows:
            away = guard_of_rows(stores.catalog, other_splits, dataset.snapshot, gap.min_gap_s)
            near = near_rows(candidates, away)
            left_out = int((near & free).sum())
            free &= ~near
        free = one_of_each(candidates, free, np.isin(hashes, old))
        covered = cover(
            packed((holds[free] for holds in covers.members()), int(free.sum())),
            hashes[free],
            np.maximum(covers.targets - had, 0),
            gap.seed,
        )
        report = _report(covers.names, covers.targets, had, covered, left_out)
        _refuse_nothing(dataset, report)
        number, grown = snapshot.number, hashes[free][covered.positions]
        rows, classes = frames_of(snapshot, grown)
        chosen = Selection(Question(snapshot=number), number, rows, classes)
        added = with_versions(snapshot, chosen)
    entry = {
        "of": dataset.content_id,
        "snapshot": number,
        "split": split,
        "demands": [one.model_dump(mode="json", exclude_defaults=True) for one in gap.demands],
        "min_gap_s": gap.min_gap_s,
        "allow_leakage": gap.allow_leakage,
        "seed": gap.seed,
    }
    content = grown_by(stores, dataset, manifest, added, entry)
    splits = np.asarray(content.table()["split"].dictionary_encode().combine_chunks().indices)
    times = content.table().append_column("frame_number", frame_numbers(content.table()))
    guard = Division(min_gap_s=gap.min_gap_s, allow_leakage=gap.allow_leakage)
    if len(content.splits) > 1:
        report["leakage"] = leakage(times, splits.astype(np.int64), guard)
    return content, report


def _candidates(
    snapshot: Snapshot, pool: Question, demands: Sequence[Demand]
) -> tuple[pa.Table, Any]:
    relation = snapshot.relation
    frames = Frames(snapshot, relation, pool)
    columns = [*demand_columns(demands), *guard_columns(snapshot, relation)]
    rows = frames.fetch_all(columns, [demand.question for demand in demands])
    return rows, covers_of(rows, demands, snapshot.classes_and_groups)


def one_of_each(
    candidates: pa.Table, free: npt.NDArray[np.bool_], had: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """The free candidates less those that are the same as one that is had, or as one another."""
    if DUPLICATE not in candidates.column_names:
        return free
    marks = candidates[DUPLICATE].cast(pa.string())
    known = pc.unique(marks.filter(pa.array(had)).drop_null())
    free = free & ~np.asarray(pc.fill_null(pc.is_in(marks, value_set=known), False))
    first = np.asarray(once(candidates.filter(pa.array(free)))[FKEY_HASH])
    return free & np.isin(np.asarray(candidates[FKEY_HASH]), first)


def grown_split(dataset: Dataset, manifest: Manifest, split: str | None) -> str:
    """The split that gets the new frames."""
    names = list(manifest.header.splits)
    if split is None and len(names) == 1:
        return names[0]
    if split is None:
        raise InvalidInput(
            f"dataset {dataset.name} has the splits {', '.join(names)}: say with --grow which of "
            "them lacks frames"
        )
    if split not in names:
        raise UnknownName("split", split, names, f"Dataset {dataset.name} has no such split.")
    return split


def _report(
    names: Sequence[str],
    targets: npt.NDArray[np.int64],
    had: npt.NDArray[np.int64],
    covered: Covered,
    left_out: int,
) -> dict[str, Any]:
    demands = [
        {"demand": name, "wanted": want, "had": have, "added": add, "available": there}
        for name, want, have, add, there in zip(
            names, targets.tolist(), had.tolist(), covered.achieved.tolist(),
            covered.available.tolist(), strict=True,
        )
    ]  # fmt: skip
    unmet = [
        {**one, "short_by": one["wanted"] - one["had"] - one["added"]}
        for one in demands
        if one["had"] + one["added"] < one["wanted"]
    ]
    return {
        "method": "extend",
        "added": len(covered.positions),
        "lower_bound": covered.lower_bound,
        "bound_factor": round(covered.factor, 4),
        "left_out_as_too_near": left_out,
        "demands": demands,
        "unmet": unmet,
    }


def _refuse_nothing(dataset: Dataset, report: Mapping[str, Any]) -> None:
    if report["added"]:
        return
    state = ", ".join(f"{d['demand']} {d['had']} of {d['wanted']}" for d in report["demands"])
    if not report["unmet"]:
        raise InvalidInput(f"dataset {dataset.name}: nothing is missing: {state}")
    near = report["left_out_as_too_near"]
    raise InvalidInput(
        f"dataset {dataset.name}: no frame of the catalog closes the gap: {state}"
        + (f"; {near:,} are too near to its other splits (--allow-leakage)" if near else "")
    )


def grown_by(
    stores: Stores,
    dataset: Dataset,
    manifest: Manifest,
    added: Selection,
    entry: Mapping[str, Any],
) -> Content:
    """A dataset's content with more frames.

    Args:
        stores: The stores.
        added: The frames, with their files' versions.
        entry: How they were chosen, as data: `split` gets them; with `of` and `snapshot` they can
            be chosen again.

    Raises:
        InvalidInput: Its classes are other ones by now.
    """
    header = manifest.header
    new, its_classes, source_locations = rows_of(
        stores, dataset.name, added, pa.array([entry["split"]] * len(added))
    )
    known = header.dataset_classes
    classes = known.joined([*header.roots], its_classes, [*source_locations.roots])
    if classes is None:
        raise InvalidInput(
            f"dataset {dataset.name}: its source has another class list by now; make it again"
        )
    new = _with_classes(new, its_classes.tags, known.tags)
    question = {
        **dataset.question,
        "extended": [*dataset.question.get("extended", []), dict(entry)],
    }
    return Content(
        question=question,
        snapshot=added.snapshot,
        rows=pa.concat_tables([manifest.frames, new]),
        splits=tuple(header.splits),
        classes=classes,
        source_locations=SourceLocations.in_header(header).and_of(source_locations),
    )


def _with_classes(rows: pa.Table, old: Sequence[str], new: Sequence[str]) -> pa.Table:
    """A manifest's rows with the pixels of its classes in another order."""
    if list(old) == list(new):
        return rows
    matrix = class_matrix(rows, len(old)).astype(np.int32)
    ordered = np.zeros((rows.num_rows, len(new)), np.int32)  # others' classes have no pixel here
    ordered[:, [list(new).index(tag) for tag in old]] = matrix
    ends = np.arange(rows.num_rows + 1, dtype=np.int32) * len(new)
    pixels = pa.ListArray.from_arrays(pa.array(ends), pa.array(ordered.ravel()))
    labelled = rows["class_pixels"].is_valid().combine_chunks()
    index = rows.column_names.index("class_pixels")
    made_of = pc.if_else(labelled, pixels, None)
    return rows.set_column(index, "class_pixels", made_of).cast(FRAMES_SCHEMA)
