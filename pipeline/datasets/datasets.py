"""Frames saved: named, versioned, divided into splits, never changed again."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from catalog.errors import InvalidInput, NotFound
from catalog.records.sources import recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Dataset, Source
from catalog.values import NOBODY, Owner
from ingest.labels.class_list import ClassList
from pipeline.datasets.chosen_split import UNDIVIDED
from pipeline.datasets.class_lists import class_list_of
from pipeline.datasets.division import Division, divide
from pipeline.manifest import Manifest, ManifestHeader
from pipeline.manifest_rows import FRAMES_SCHEMA
from pipeline.manifest_store import folder_of_new, store_manifest
from pipeline.source_locations import SourceLocations
from query.frames.file_versions import IMAGE_VERSION, LABEL_VERSION
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
    rows: pa.Table
    """One row per frame, schema FRAMES_SCHEMA."""
    splits: Sequence[str]
    tags: Sequence[str]
    """Class tag of each entry of class_pixels."""
    classes: tuple[str, ...]
    """Class names in the same order."""
    class_list: ClassList
    """The sources' class list, in the same order."""
    source_locations: SourceLocations


def create_dataset(
    records: RecordStore,
    name: str,
    selection: Selection,
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
    name = name_of_new(records, name)
    content, report = content_of(records, name, selection, division or Division(), provenance)
    return save_content(
        records, name, content, replace(provenance, report={**provenance.report, **report})
    )


def content_of(
    records: RecordStore,
    name: str,
    selection: Selection,
    division: Division,
    provenance: Provenance,
) -> tuple[Content, dict[str, Any]]:
    """A selection divided, ready to be saved; and what is to be said of the division."""
    if not len(selection):
        raise _no_frames(name, provenance.report)
    splits = tuple(division.shares) or (UNDIVIDED,)
    sides, report = _sides(selection, division)
    of_rows = pa.array(splits).take(pa.array(sides))
    rows, class_list, source_locations = rows_of(records, name, selection, of_rows)
    question = selection.question.model_dump(mode="json", exclude_defaults=True)
    content = Content(
        question={**question, **provenance.built, **division.to_json()},
        snapshot=selection.snapshot,
        rows=rows,
        splits=splits,
        tags=class_list.tags,
        classes=class_list.classes,
        class_list=class_list,
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


def rows_of(
    records: RecordStore, name: str, selection: Selection, splits: pa.Array
) -> tuple[pa.Table, ClassList, SourceLocations]:
    """A selection as a manifest's rows; its class list, and its sources' places."""
    _refuse_labels_alone(name, selection)
    sources = _sources_of(selection, records)
    class_list = class_list_of(records, sources.values())
    rows = _rows(selection, splits, sources, class_list.tags)
    return rows, class_list, SourceLocations.of(sources.values())


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
        dataset, manifest = _dataset_of(session, name, content, provenance)
        if manifest is not None:
            dataset.manifest = store_manifest(records, manifest)
            session.add(dataset)
    return dataset


def preview_dataset(
    records: RecordStore, name: str, content: Content, provenance: Provenance
) -> tuple[Dataset, Manifest | None]:
    """The dataset that `save_content` would save, and its manifest as it would lie there.

    Nothing is written. Without a manifest it is the version that has the same content.
    """
    with records.reading() as session:
        dataset, manifest = _dataset_of(session, name, content, provenance)
    if manifest is not None:
        manifest = replace(manifest, folder=folder_of_new(records, dataset))
        dataset.manifest = str(manifest.folder)
    return dataset, manifest


def _dataset_of(
    session: Session, name: str, content: Content, provenance: Provenance
) -> tuple[Dataset, Manifest | None]:
    """The dataset with that content and its manifest; without one where it is saved already."""
    rows = content.rows
    own_id = content_id(content.question, content.snapshot, rows)
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
        header_of(name, newest + 1, own_id, content),
        seed=provenance.seed,
        parents=tuple(parents),
        report=provenance.report,
    )
    matrix = class_matrix(rows, len(content.tags))
    dataset = Dataset(
        name=name,
        version=newest + 1,
        content_id=own_id,
        question=content.question,
        snapshot=content.snapshot,
        frames=rows.num_rows,
        splits=dict(header.splits),
        class_pixels=dict(zip(content.tags, matrix.sum(axis=0).tolist(), strict=True)),
        class_frames=dict(zip(content.tags, (matrix > 0).sum(axis=0).tolist(), strict=True)),
        seed=str(provenance.seed),
        parents=parents,
        report=dict(provenance.report),
        owner=provenance.owner.name,
        account=provenance.owner.account,
    )
    return dataset, Manifest(header, rows)


def header_of(name: str, version: int, id_: str, content: Content) -> ManifestHeader:
    """The header of a dataset's manifest, without how its frames were come by."""
    counts = Counter(content.rows["split"].to_pylist())
    return ManifestHeader(
        name=name,
        version=version,
        id=id_,
        question=content.question,
        snapshot=content.snapshot,
        class_list=content.class_list,
        classes=content.classes,
        splits={split: counts[split] for split in content.splits},
        roots=content.source_locations.roots,
        datasources=content.source_locations.datasources,
        within=content.source_locations.within,
    )


def class_matrix(rows: pa.Table, classes: int) -> npt.NDArray[np.int64]:
    """Pixels of each class (columns) in each of a manifest's rows, 0 where it has no label."""
    pixels = rows["class_pixels"].combine_chunks()
    matrix = np.zeros((rows.num_rows, classes), np.int64)
    matrix[np.asarray(pixels.is_valid())] = np.asarray(pixels.flatten()).reshape(-1, classes)
    return matrix


def _sides(selection: Selection, division: Division) -> tuple[Codes, dict[str, Any]]:
    if not division.shares:
        return np.zeros(len(selection), np.int64), {}
    hashes = hashes_of(selection.frames["fkey"].to_pylist())
    classes = dict.fromkeys(selection.classes, "")
    return divide(selection.frames, hashes, division, classes)


def _refuse_labels_alone(name: str, selection: Selection) -> None:
    """A frame whose label carries its tags has no camera image to train on."""
    frames = selection.frames
    alone = pc.sum(pc.equal(frames["image_file"], frames["label_file"])).as_py()
    if alone:
        raise InvalidInput(
            f"dataset {name}: {alone:,} of the selection's {len(selection):,} frames are labels "
            "without a camera image; ingest the images too, or leave those frames out: "
            "--where \"filename LIKE '%_camera_%'\""
        )


def _sources_of(selection: Selection, records: RecordStore) -> dict[tuple[str, str], Source]:
    pairs = selection.frames.select(["cluster", "datasource"]).group_by(["cluster", "datasource"])
    named = sorted(tuple(row.values()) for row in pairs.aggregate([]).to_pylist())
    known = {(source.cluster, source.datasource): source for source in recorded_sources(records)}
    for pair in named:
        if pair not in known:
            raise NotFound("source", pair[1], f"of cluster {pair[0]}; it has been removed")
    return {pair: known[pair] for pair in named}


def _rows(
    selection: Selection,
    splits: pa.Array,
    sources: Mapping[tuple[str, str], Source],
    tags: Sequence[str],
) -> pa.Table:
    frames = selection.frames
    pairs = zip(frames["cluster"].to_pylist(), frames["datasource"].to_pylist(), strict=True)
    none_counted = pa.nulls(len(selection), pa.int32())  # by an earlier class list
    counted = [frames[tag] if tag in selection.classes else none_counted for tag in tags]
    pixels = [np.asarray(column.fill_null(0)).astype(np.int32) for column in counted]
    ends = np.arange(len(selection) + 1, dtype=np.int32) * len(pixels)
    per_frame = np.array(pixels, np.int32).reshape(len(pixels), -1).T.ravel()
    of_each = pa.ListArray.from_arrays(pa.array(ends), pa.array(per_frame))
    names = pa.array([sources[pair].name for pair in pairs])
    labelled = frames["label_file"].is_valid().combine_chunks()
    none = pa.nulls(len(selection), pa.string())
    return pa.table(
        {
            "fkey": frames["fkey"],
            "split": splits,
            "scene": frames["scene"],
            "camera": frames["camera"],
            "image_source": names,
            "image": frames["image_file"],
            "image_size": frames["image_size"],
            IMAGE_VERSION: frames[IMAGE_VERSION],
            "image_digest": none,
            "label_source": pc.if_else(labelled, names, None),
            "label": frames["label_file"],
            "label_size": frames["label_size"],
            LABEL_VERSION: frames[LABEL_VERSION],
            "label_digest": none,
            "class_pixels": pc.if_else(labelled, of_each, None),
        },
        schema=FRAMES_SCHEMA,
    )


def content_id(question: Mapping[str, object], snapshot: int, rows: pa.Table) -> str:
    """Hash of what a dataset is: the question, the snapshot, the frames, their files' versions."""
    digest = hashlib.sha256()
    digest.update(json.dumps([question, snapshot], sort_keys=True).encode())
    for values in zip(*(rows[name].to_pylist() for name in _IDENTIFYING), strict=True):
        digest.update(json.dumps(values).encode())
    return digest.hexdigest()


_IDENTIFYING = ("split", "fkey", "image_version", "label", "label_version")
