"""Frames saved: named, versioned, divided into splits, never changed again."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from catalog.errors import InvalidInput
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset
from catalog.values import NOBODY, Owner
from ingest.labels.dataset_classes import DatasetClasses
from pipeline.datasets.division import Division, divide
from pipeline.datasets.row_counts import RowCounts
from pipeline.datasets.rows_file import RowsFile, StoredRows
from pipeline.datasets.selection_rows import portioned_rows, rows_of
from pipeline.datasets.stores import Stores
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_store import folder_of_new, store_manifest
from pipeline.source_locations import SourceLocations
from query.frames.frame_portions import FramePortions
from query.frames.sampling import hashes_of
from query.frames.selection import Selection
from query.sets.strata import Codes

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")
_LONGEST_NAME = 128


@dataclass(frozen=True)
class Provenance:
    """The provenance of a dataset's frames, besides the question."""

    built: Mapping[str, Any] = field(default_factory=dict)
    """What chose or added the frames, as data; part of the dataset's id."""
    seed: int = 0
    """Decided between frames that fitted equally."""
    parents: Sequence[Dataset] = ()
    report: Mapping[str, Any] = field(default_factory=dict)
    """What was achieved of what was wanted."""
    owner: Owner = NOBODY
    """The user who makes it; nobody on the machine's own command line."""


@dataclass(frozen=True)
class Content:
    """A dataset's frames, ready to be saved."""

    question: Mapping[str, Any]
    """The question, the method and the division, as data."""
    snapshot: int
    """The catalog snapshot that was asked."""
    rows: pa.Table | RowsFile
    """One row per frame, schema FRAMES_SCHEMA."""
    splits: Sequence[str]
    classes: DatasetClasses
    """The classes of the labels; class_pixels has an entry for each."""
    source_locations: SourceLocations
    counts: RowCounts | None = None
    """Of the rows, where they were counted while they were written."""

    def counted(self) -> RowCounts:
        """Counts of the rows, and the dataset's id."""
        if self.counts is not None:
            return self.counts
        counts = RowCounts(self.question, self.snapshot, len(self.classes))
        counts.add(self.table())
        return counts

    def table(self) -> pa.Table:
        """The rows, in memory."""
        return self.rows.table() if isinstance(self.rows, RowsFile) else self.rows


def create_dataset(
    stores: Stores,
    name: str,
    selection: Selection | FramePortions,
    division: Division | None = None,
    provenance: Provenance | None = None,
) -> Dataset:
    """Save a selection as a new version of the dataset ``name``, its manifest on disk.

    Args:
        name: Letters, digits, dots, dashes and underscores; see `name_of_new`.
        selection: The frames, with the division's columns and their files' versions.
        division: How to divide them; one split "all" when None.
        provenance: How they were come by, where it was not the question alone.

    Returns:
        The dataset; the version that has the same content where there is one.
    """
    provenance = provenance or Provenance()
    name = name_of_new(stores.records, name)
    content, report = content_of(stores, name, selection, division or Division(), provenance)
    return save_content(
        stores.records, name, content, replace(provenance, report={**provenance.report, **report})
    )


def content_of(
    stores: Stores,
    name: str,
    selection: Selection | FramePortions,
    division: Division,
    provenance: Provenance,
) -> tuple[Content, dict[str, Any]]:
    """A selection divided, ready to be saved; and what is to be said of the division."""
    question = selection.question.model_dump(mode="json", exclude_defaults=True)
    question = {**question, **provenance.built, **division.to_json()}
    splits = division.splits
    if isinstance(selection, FramePortions):
        portions = portioned_rows(stores, name, selection, division, splits, question)
        if portions is None:
            raise _no_frames(name, provenance.report)
        content = Content(
            question=question,
            snapshot=selection.snapshot,
            rows=portions.rows,
            splits=splits,
            classes=portions.classes,
            source_locations=portions.source_locations,
            counts=portions.counts,
        )
        return content, portions.report
    if not len(selection):
        raise _no_frames(name, provenance.report)
    sides, report = _sides(selection, division)
    of_rows = pa.array(splits).take(pa.array(sides))
    rows, classes, source_locations = rows_of(stores, name, selection, of_rows)
    content = Content(
        question=question,
        snapshot=selection.snapshot,
        rows=rows,
        splits=splits,
        classes=classes,
        source_locations=source_locations,
    )
    return content, report


def _no_frames(name: str, report: Mapping[str, Any]) -> InvalidInput:
    """The error of a selection without frames, which says what took them."""
    near = report.get("left_out_as_too_near")
    if near and not report.get("candidates"):
        apart = ", ".join(report.get("disjoint_from", ()))
        return InvalidInput(
            f"dataset {name}: {near:,} frames answer the question, and all of them share a scene, "
            f"drive or moment with {apart}, from which it is to be disjoint; ask for other scenes, "
            "or leave --disjoint-from out"
        )
    return InvalidInput(
        f"dataset {name}: the selection has no frames; widen its ranges or conditions "
        "(framesift select with them says which of them holds for none)"
    )


def name_of_new(records: RecordStore, name: str) -> str:
    """The name that a dataset is saved under; users limited to collections have names of their own.

    Else a name that is taken, or a version that is not the first, would tell them of a dataset
    that they may not read.

    Raises:
        InvalidInput: It could not be a folder's on every system, or is too long.
    """
    base = name.removeprefix(records.own_names)
    if not _NAME.fullmatch(base):
        raise InvalidInput(
            f"dataset name '{name}': expected letters, digits, '.', '_' and '-', such as val-bikes"
        )
    saved = records.own_names + base
    if len(saved) > _LONGEST_NAME:
        raise InvalidInput(
            f"dataset name '{saved}': expected at most {_LONGEST_NAME} characters with the user's"
        )
    return saved


def save_content(
    records: RecordStore, name: str, content: Content, provenance: Provenance
) -> Dataset:
    """Save frames as a dataset's new version, or find the version that has the same content."""
    with records.session() as session:
        dataset, header = _dataset_of(session, name, content, provenance)
        if header is not None:
            rows = content.rows
            dataset.manifest = store_manifest(
                records,
                StoredRows(header, rows) if isinstance(rows, RowsFile) else Manifest(header, rows),
            )
            session.add(dataset)
    return dataset


def preview_dataset(
    records: RecordStore, name: str, content: Content, provenance: Provenance
) -> tuple[Dataset, Manifest | None]:
    """The dataset that `save_content` would save, and its manifest as it would lie there.

    Nothing is written. Without a manifest it is the version that has the same content.
    """
    with records.reading() as session:
        dataset, header = _dataset_of(session, name, content, provenance)
    if header is None:
        return dataset, None
    manifest = Manifest(header, content.table(), folder_of_new(records, dataset))
    dataset.manifest = str(manifest.folder)
    return dataset, manifest


def _dataset_of(
    session: Session, name: str, content: Content, provenance: Provenance
) -> tuple[Dataset, ManifestHeader | None]:
    """The dataset with that content and its header; without one where it is saved already."""
    counts = content.counted()
    own_id = counts.id
    parents = [{"name": f"{p.name}@{p.version}", "id": p.content_id} for p in provenance.parents]
    # Of removed and renamed ones, too: a version once told of never means another dataset.
    known = or_(Dataset.name == name, Dataset.first_name == name)
    newest = session.scalar(select(func.max(Dataset.version)).where(known)) or 0
    same = session.scalar(
        select(Dataset).where(
            Dataset.name == name, Dataset.content_id == own_id, Dataset.removed.is_(None)
        )
    )
    if same is not None:
        return same, None
    header = replace(
        header_of(name, newest + 1, own_id, content, counts),
        seed=provenance.seed,
        parents=tuple(parents),
        report=provenance.report,
    )
    dataset = Dataset(
        name=name,
        version=newest + 1,
        content_id=own_id,
        question=content.question,
        snapshot=content.snapshot,
        frames=counts.frames,
        splits=dict(header.splits),
        class_pixels=dict(zip(content.classes.tags, counts.class_pixels.tolist(), strict=True)),
        class_frames=dict(zip(content.classes.tags, counts.class_frames.tolist(), strict=True)),
        seed=str(provenance.seed),
        parents=parents,
        report=dict(provenance.report),
        owner=provenance.owner.name,
        account=provenance.owner.account,
    )
    return dataset, header


def header_of(
    name: str, version: int, id_: str, content: Content, counts: RowCounts
) -> ManifestHeader:
    """The header of a dataset's manifest, without how its frames were come by."""
    return ManifestHeader(
        name=name,
        version=version,
        id=id_,
        question=content.question,
        snapshot=content.snapshot,
        class_list=content.classes.lists[0],
        class_lists=content.classes.further,
        classes=content.classes.names,
        splits={split: counts.splits[split] for split in content.splits},
        roots=content.source_locations.roots,
        datasources=content.source_locations.datasources,
        within=content.source_locations.within,
        layouts=content.source_locations.layouts,
    )


def _sides(selection: Selection, division: Division) -> tuple[Codes, dict[str, Any]]:
    if not division.is_divided:
        return np.zeros(len(selection), np.int64), {}
    hashes = hashes_of(selection.frames["fkey"].to_pylist())
    classes = dict.fromkeys(selection.classes, "")
    return divide(selection.frames, hashes, division, classes)
