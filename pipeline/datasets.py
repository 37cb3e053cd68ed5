"""A selection saved: named, versioned, divided into splits, never changed again."""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping
from fractions import Fraction
from importlib.metadata import version as installed_version
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import func, select

from catalog.errors import InvalidInput, NotFound
from catalog.record_store import RecordStore
from catalog.tables import Dataset, Source
from pipeline.manifest import FRAMES_SCHEMA, Manifest, ManifestHeader
from pipeline.split import GROUPINGS, assign_splits
from query.selection import Selection

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,126}")


def create_dataset(
    records: RecordStore,
    folder: Path,
    name: str,
    selection: Selection,
    *,
    shares: Mapping[str, Fraction] | None = None,
    split_by: str = "scene",
    seed: int = 0,
) -> Dataset:
    """Save a selection as a new version of the dataset ``name``, its manifest on disk.

    Args:
        records: The records.
        folder: Where manifests lie; the dataset's is ``folder/name/vN``.
        name: Letters, digits, dots, dashes and underscores.
        selection: The frames.
        shares: Share of each split; one split "all" when None.
        split_by: "scene", "camera" or "frame": what stays together on one side.
        seed: Decides the division.

    Returns:
        The dataset; the version that has the same content where there is one.

    Raises:
        InvalidInput: A bad name, no frames, or too few groups for the splits.
        NotFound: A frame's source has been removed.
        StorageError: The manifest cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"dataset name '{name}': expected letters, digits, '.', '_' and '-', such as val-bikes"
        )
    if not len(selection):
        raise InvalidInput(
            f"dataset {name}: the selection has no frames; widen its ranges "
            "(framesift classes shows what there is)"
        )
    _refuse_labels_alone(name, selection)
    splits = _splits(selection, shares, split_by, seed)
    sources = _sources_of(selection, records)
    rows = _rows(selection, splits, sources)
    question = {
        **selection.question.model_dump(mode="json", exclude_defaults=True),
        "split": {key: str(share) for key, share in (shares or {}).items()},
        "split_by": split_by if shares else None,
        "split_seed": seed if shares else None,
    }
    content_id = _content_id(question, selection.snapshot, rows)
    class_list, classes = _classes(sources, selection, records)
    with records.session() as session:
        newest = session.scalar(select(func.max(Dataset.version)).where(Dataset.name == name)) or 0
        same = session.scalar(
            select(Dataset).where(Dataset.name == name, Dataset.content_id == content_id)
        )
        if same is not None:
            return same
        place = folder / name / f"v{newest + 1}"
        header = ManifestHeader(
            name=name,
            version=newest + 1,
            id=content_id,
            question=question,
            snapshot=selection.snapshot,
            class_list=class_list,
            classes=classes,
            splits={split: splits.count(split) for split in (shares or ("all",))},
            roots={source.name: _root(source) for source in sources.values()},
        )
        # Leftovers of a creation that was killed before its record was committed.
        shutil.rmtree(place, ignore_errors=True)
        Manifest(header, rows).write(place)
        dataset = Dataset(
            name=name,
            version=newest + 1,
            content_id=content_id,
            question=question,
            snapshot=selection.snapshot,
            frames=len(selection),
            splits=dict(header.splits),
            class_pixels=selection.class_pixels(),
            manifest=str(place),
        )
        session.add(dataset)
    return dataset


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


def _splits(
    selection: Selection, shares: Mapping[str, Fraction] | None, split_by: str, seed: int
) -> list[str]:
    if split_by not in GROUPINGS:
        raise InvalidInput(f"split by '{split_by}': expected one of {', '.join(GROUPINGS)}")
    if shares is None:
        return ["all"] * len(selection)
    column = "fkey" if split_by == "frame" else split_by
    return assign_splits(selection.frames[column].to_pylist(), shares, seed)


def _sources_of(selection: Selection, records: RecordStore) -> dict[tuple[str, str], Source]:
    frames = selection.frames
    wanted = set(zip(frames["cluster"].to_pylist(), frames["datasource"].to_pylist(), strict=True))
    found = {(source.cluster, source.datasource): source for source in records.sources()}
    for cluster, datasource in sorted(wanted):
        if (cluster, datasource) not in found:
            raise NotFound("source", datasource, f"of cluster {cluster}; it has been removed")
    return {pair: found[pair] for pair in sorted(wanted)}


def _rows(
    selection: Selection, splits: list[str], sources: Mapping[tuple[str, str], Source]
) -> pa.Table:
    frames = selection.frames
    pairs = zip(frames["cluster"].to_pylist(), frames["datasource"].to_pylist(), strict=True)
    per_class = [frames[tag].fill_null(0).to_pylist() for tag in selection.classes]
    return pa.table(
        {
            "fkey": frames["fkey"],
            "split": splits,
            "scene": frames["scene"],
            "camera": frames["camera"],
            "source": [sources[pair].name for pair in pairs],
            "image": frames["image_file"],
            "label": frames["label_file"],
            "image_size": frames["image_size"],
            "label_size": frames["label_size"],
            "class_pixels": [list(row) for row in zip(*per_class, strict=True)],
        },
        schema=FRAMES_SCHEMA,
    )


def _classes(
    sources: Mapping[tuple[str, str], Source], selection: Selection, records: RecordStore
) -> tuple[dict[str, str], tuple[str, ...]]:
    lists = {source.name: source.class_list for source in sources.values()}
    first_name, first = next(iter(lists.items()))
    for name, class_list in lists.items():
        if class_list != first:
            raise InvalidInput(
                f"sources {first_name} and {name} have different class lists; "
                "make one dataset of each"
            )
    names = records.class_names()
    return first, tuple(names[tag] for tag in selection.classes)


def _root(source: Source) -> str:
    """The source's folder; its URI where it is in no folder."""
    parts = urlsplit(source.uri)
    return unquote(parts.path) if parts.scheme == "file" else source.uri


def _content_id(question: Mapping[str, object], snapshot: int, rows: pa.Table) -> str:
    """Hash of what the dataset is: the question, the snapshot, the program, the frames."""
    digest = hashlib.sha256()
    program = installed_version("framesift")
    digest.update(json.dumps([question, snapshot, program], sort_keys=True).encode())
    for fkey, split in zip(rows["fkey"].to_pylist(), rows["split"].to_pylist(), strict=True):
        digest.update(f"\n{split} {fkey}".encode())
    return digest.hexdigest()
