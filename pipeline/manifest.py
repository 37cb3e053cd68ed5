"""A dataset as files on disk: all that a job needs to know of it.

A manifest is a folder with two files:

    manifest.json     the header: what the dataset is, its classes, where its sources lie
    frames.parquet    one row per frame, in the dataset's order (schema: FRAMES_SCHEMA)

Staging changes where the files lie, not which they are: a staged manifest has the same rows beside
a header whose ``roots`` name the cache. A root that is a relative path is relative to the
manifest's folder, so that a cache may be moved, or mounted elsewhere, as a whole. This module is a
leaf: a training node needs pyarrow for it and nothing else of Framesift.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from catalog.errors import EXPORT_AND_IMPORT, BadFile, InvalidInput, StorageError, UnknownName
from catalog.storage.atomic_write import part_of
from catalog.storage.to_disk import to_disk
from ingest.labels.class_list import ClassList
from ingest.labels.dataset_classes import DatasetClasses, OfSources, further_in
from pipeline.entry_name import HEADER_FILE, versioned_key
from pipeline.manifest_rows import FORMAT, FRAMES_PARQUET, FRAMES_SCHEMA
from pipeline.runs.shard_order import shard_rows

FRAMES_FILE = "frames.parquet"


@dataclass(frozen=True)
class ManifestHeader:
    """The dataset and the locations of its files."""

    name: str
    version: int
    """Its version, from 1."""
    id: str
    """Hash of its content: question, snapshot, split, frames."""
    question: Mapping[str, Any]
    """The question that chose the frames, as data."""
    snapshot: int
    """The catalog snapshot it was asked of."""
    class_list: ClassList
    """The sources' class list; its classes come first in ``classes``, in its order."""
    classes: tuple[str, ...]
    """Class names; a class id is a position in this list."""
    splits: Mapping[str, int]
    """Frames per split, in the dataset's order of splits."""
    roots: Mapping[str, str]
    """Folder (or URI) of each source; a relative one is relative to the manifest's folder."""
    datasources: Mapping[str, str] = field(default_factory=dict)
    """"cluster:datasource" of each, which begins the fkeys of its files."""
    within: Mapping[str, str] = field(default_factory=dict)
    """Folder that each of those must lie below, links followed; empty for anywhere. What may be
    read in its place is nobody's choice who can put a link there.
    """
    frames_sha256: str = ""
    """Digest of frames.parquet, which belongs to this header."""
    staged: bool = False
    """Whether ``roots`` name a cache."""
    seed: int = 0
    """Decided between frames that fitted equally."""
    parents: tuple[Mapping[str, str], ...] = ()
    """The datasets that it was made from, "name@version" and id of each."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """What was achieved of what was wanted, and how the splits are kept apart."""
    class_lists: tuple[OfSources, ...] = ()
    """Those of sources whose labels have another class list than ``class_list``."""
    layouts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Document of the layout (ingest.layouts) by which each source was read, without its classes;
    those of one layout are one row of the file.
    """
    format: int = field(default=FORMAT)
    """Of the files that it was read from."""

    @cached_property
    def dataset_classes(self) -> DatasetClasses:
        """The classes of its labels: one for each tag."""
        return DatasetClasses.of(self.class_list, self.class_lists, [*self.roots])


_DETAILS = ("size", "version", "digest")


@dataclass(frozen=True, slots=True)
class FrameFile:
    """One file of a frame, and where it lies."""

    source: str
    root: str
    """Folder or URI of its source, or its folder in a cache."""
    key: str
    """Its path below the root."""
    size: int
    """As catalogued [bytes]."""
    version: str | None
    """Which version it must be (catalog.storage.file_version); None where that is not known, or
    where its name in a cache says it.
    """
    digest: str | None
    """Of its content, "sha256:<hex>"; None where it is not known."""
    segments: str | None = None
    """Of a panoptic label (ingest.labels.segments); None of any other file."""

    @property
    def path(self) -> str:
        """Its path or URI."""
        return f"{self.root}/{self.key}"


@dataclass(frozen=True)
class Manifest:
    """A manifest read from disk, or about to be written."""

    header: ManifestHeader
    frames: pa.Table
    """One row per frame, schema FRAMES_SCHEMA."""
    folder: Path | None = None
    """Where it was read from or written to; None before."""

    def __len__(self) -> int:
        """Number of frames."""
        return int(self.frames.num_rows)

    def split(self, name: str | None) -> "Manifest":
        """The frames of one split, in order; all of them for None.

        Raises:
            UnknownName: The dataset has no such split.
        """
        if name is None:
            return self
        if name not in self.header.splits:
            raise UnknownName(
                "split", name, self.header.splits, f"Dataset {self.header.name} has no such split."
            )
        return replace(self, frames=self.frames.filter(pc.equal(self.frames["split"], name)))

    def shard(self, index: int, of: int) -> "Manifest":
        """One shard's frames, in order: shards are disjoint (pipeline.runs.shard_order).

        Raises:
            InvalidInput: Not 0 <= index < of.
        """
        if not 0 <= index < of:
            raise InvalidInput(f"shard {index} of {of}: expected 0 <= shard < shards")
        return replace(self, frames=self.frames.take(pa.array(self.shard_rows(index, of))))

    def shard_rows(self, index: int, of: int) -> npt.NDArray[np.int64]:
        """(n,) int64, ascending: the rows of `shard`'s frames."""
        return shard_rows(self.frame_bytes(), index, of)

    def frame_bytes(self) -> npt.NDArray[np.int64]:
        """(frames,) int64: the bytes of each frame's files."""
        label = pc.fill_null(self.frames["label_size"], 0)
        sizes: npt.NDArray[np.int64] = pc.add(self.frames["image_size"], label).to_numpy()
        return sizes

    def unlabelled(self) -> int:
        """Number of frames without a label."""
        return int(self.frames["label"].null_count)

    def need_labels(self) -> "Manifest":
        """The manifest itself, where every frame has a label, as training and validation need.

        Raises:
            InvalidInput: Some have none.
        """
        if without := self.unlabelled():
            splits = ", ".join(pc.unique(self.frames["split"]).to_pylist())
            raise InvalidInput(
                f"dataset {self.header.name}@{self.header.version}: {without:,} of the "
                f"{len(self):,} frames of {splits} have no label, which training and validation "
                "need; make a dataset of labelled frames: framesift dataset create NAME "
                '--where "labelled = 1"'
            )
        return self

    def image_paths(self) -> list[str]:
        """Path of each frame's camera image, in order."""
        return [file.path for file in self.images()]

    def label_paths(self) -> list[str | None]:
        """Path of each frame's label image, in order; None where it has none."""
        return [file.path if file else None for file in self.labels()]

    def images(self) -> list[FrameFile]:
        """Each frame's camera image, in order."""
        return [file for file in self.files("image") if file]

    def labels(self) -> list[FrameFile | None]:
        """Each frame's label image, in order; None where it has none."""
        return list(self.files("label"))

    def files(self, kind: str) -> Iterator[FrameFile | None]:
        """Each frame's "image" or "label", in order, one after another; None where it has none."""
        header, columns = self.header, (f"{kind}_source", kind, *(f"{kind}_{n}" for n in _DETAILS))
        segments = self.frames["label_segments"].to_pylist() if kind == "label" else repeat(None)
        of_frames = zip(*(self.frames[name].to_pylist() for name in columns), strict=True)
        for (source, key, size, version, digest), its_segments in zip(
            of_frames, segments, strict=False
        ):
            if key is None:
                yield None
                continue
            location = versioned_key(key, size, version) if header.staged else key
            known = None if header.staged else version
            root = header.roots[source]
            yield FrameFile(source, root, location, size, known, digest, its_segments)

    def write(self, folder: Path) -> "Manifest":
        """Write both files into ``folder``, the header last, each by a temporary file.

        Raises:
            StorageError: The folder cannot be written.
        """
        table = self.frames.cast(FRAMES_SCHEMA)
        header = write_manifest(
            folder, self.header, lambda path: pq.write_table(table, path, **FRAMES_PARQUET)
        )
        return Manifest(header, table, folder)

    def portions(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of the rows, as StoredManifest has them: in one portion."""
        yield self.frames.select(columns)

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """The manifest in a folder, or whose header file is given.

        Raises:
            BadFile: No manifest there, damaged, or of another format.
            StorageError: It is there and cannot be read.
        """
        return StoredManifest.open(path).manifest()


@dataclass(frozen=True)
class StoredManifest:
    """A manifest on disk, whose rows are read portion by portion."""

    header: ManifestHeader
    folder: Path
    rows: int
    """Number of frames."""

    def __len__(self) -> int:
        """Number of frames."""
        return self.rows

    @classmethod
    def open(cls, path: Path) -> "StoredManifest":
        """The manifest in a folder, or whose header file is given: see Manifest.read."""
        folder = path.parent if path.name == HEADER_FILE else path
        header_file, frames_file = folder / HEADER_FILE, folder / FRAMES_FILE
        with _being_read(folder):
            data = json.loads(header_file.read_text(encoding="utf-8"))
            if (written := data["format"]) != FORMAT:
                is_former = isinstance(written, int) and written < FORMAT
                raise BadFile(
                    f"manifest format {written}; this version reads {FORMAT}"
                    + (f"; {EXPORT_AND_IMPORT}" if is_former else ""),
                    str(header_file),
                )
            tuples = {key: tuple(data[key]) for key in ("classes", "parents")}
            lists = {
                "class_list": ClassList.from_json(data["class_list"]),
                "class_lists": further_in(data),
                "layouts": _layouts_in(data.get("layouts", ())),
            }
            header = ManifestHeader(**(data | tuples | lists))
            if _sha256(frames_file) != header.frames_sha256:
                raise BadFile("does not belong to the manifest.json beside it", str(frames_file))
            roots = {name: _root(location, folder) for name, location in header.roots.items()}
            with pq.ParquetFile(frames_file) as file:
                names = file.schema_arrow.names
                if {*names, SEGMENTS} != {*FRAMES_SCHEMA.names}:
                    raise KeyError(f"columns {', '.join(names)}")
                manifest = cls(replace(header, roots=roots), folder, file.metadata.num_rows)
        for rows in manifest.portions(_NAMING):
            _check_together(header, rows, folder)
        return manifest

    def portions(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of the rows, as FRAMES_SCHEMA has them, some ten thousand rows at a time."""
        path = self.folder / FRAMES_FILE
        with (
            _being_read(self.folder),
            pq.ParquetFile(path, pre_buffer=False, buffer_size=_READ_BYTES) as file,
        ):
            for batch in file.iter_batches(_PORTION_ROWS, columns=[*columns]):
                yield _as_frames(pa.table(batch), columns)

    def manifest(self) -> Manifest:
        """The manifest with all rows in memory."""
        with _being_read(self.folder):
            rows = pq.read_table(self.folder / FRAMES_FILE)
            table = _as_frames(rows, FRAMES_SCHEMA.names)
        return Manifest(self.header, table, self.folder)


SEGMENTS = "label_segments"
"""Column that manifests lack which were written before there were panoptic labels."""

_NAMING = ("image_source", "label_source", "split")
"""Columns with names that the header knows."""

_PORTION_ROWS = 16_384
"""Rows decoded at once: with the buffers below 0.1 GB for all columns of 38 classes; row groups as
pyarrow reads them by itself took 0.3.
"""

_READ_BYTES = 65_536
"""What is read of a column at once."""


@contextmanager
def _being_read(folder: Path) -> Iterator[None]:
    """Say what ails a manifest that the block reads."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadFile(
            "no such file; expected a manifest folder as 'framesift dataset create' "
            "or 'framesift stage' writes it",
            str(error.filename),
        ) from error
    except (
        InvalidInput, ValueError, TypeError, KeyError, AttributeError, pa.ArrowException
    ) as error:  # fmt: skip
        reason = " ".join(str(error).split())
        raise BadFile(f"manifest is damaged: {reason}", str(folder)) from error
    except OSError as error:
        raise StorageError(
            f"{error.filename or folder}: the manifest cannot be read: {error.strerror or error}",
            str(error.filename or folder),
        ) from error


def write_manifest(
    folder: Path, header: ManifestHeader, write_frames: Callable[[Path], object]
) -> ManifestHeader:
    """Write both files, as `Manifest.write` does; the header as it is written.

    Args:
        write_frames: Writes frames.parquet to a path.

    Raises:
        StorageError: The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Of this call alone: two stagings of one dataset may write the same manifest.
        with (
            part_of(folder / FRAMES_FILE) as frames_part,
            part_of(folder / HEADER_FILE) as header_part,
        ):
            write_frames(frames_part)
            header = replace(header, frames_sha256=_sha256(frames_part), format=FORMAT)
            header_part.write_text(json.dumps(_header_json(header), indent=2), encoding="utf-8")
            for temporary in (frames_part, header_part):
                to_disk(temporary)
            frames_part.replace(folder / FRAMES_FILE)
            header_part.replace(folder / HEADER_FILE)
            to_disk(folder)
    except OSError as error:
        raise StorageError(
            f"{folder}: the manifest cannot be written: {error.strerror or error}", str(folder)
        ) from error
    return header


def _header_json(header: ManifestHeader) -> dict[str, Any]:
    content = {field.name: getattr(header, field.name) for field in fields(header)}
    del content["class_lists"]
    content["layouts"] = layout_rows(header.layouts)
    return content | header.dataset_classes.to_json()


def layout_rows(layouts: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each layout once, with its sources."""
    rows: list[dict[str, Any]] = []
    for source, layout in layouts.items():
        same = next((row for row in rows if row["layout"] == layout), None)
        if same is None:
            rows.append({"sources": [source], "layout": layout})
        else:
            same["sources"].append(source)
    return rows


def _layouts_in(rows: Any) -> dict[str, Mapping[str, Any]]:
    """The layout of each source, of rows that `layout_rows` made."""
    return {source: dict(row["layout"]) for row in rows for source in row["sources"]}


def _as_frames(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Columns of rows as FRAMES_SCHEMA has them.

    Raises:
        KeyError, pa.ArrowException: They are no manifest's.
    """
    if SEGMENTS in columns and SEGMENTS not in table.column_names:
        table = table.append_column(SEGMENTS, pa.nulls(len(table), pa.string()))
    schema = pa.schema([FRAMES_SCHEMA.field(name) for name in columns])
    return table.select(columns).cast(schema)


def _check_together(header: ManifestHeader, rows: pa.Table, folder: Path) -> None:
    """Refuse a header that does not know its rows' sources or splits."""
    for column, kind, known in (
        ("image_source", "source", header.roots),
        ("label_source", "source", header.roots),
        ("split", "split", header.splits),
    ):
        for name in pc.unique(rows[column]).to_pylist():
            if name is not None and name not in known:
                raise BadFile(f"manifest is damaged: it has no {kind} '{name}'", str(folder))


def _root(location: str, folder: Path) -> str:
    """A source's folder or URI; a relative path is one beside the manifest."""
    if "://" in location or Path(location).is_absolute():
        return location
    return os.path.normpath(folder.absolute() / location)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
