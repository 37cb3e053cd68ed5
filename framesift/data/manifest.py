"""A manifest on disk, staged or not: docs/datasets.md describes its two files."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from framesift.data.classes import Classes
from framesift.data.frame_files import DatedFile, decoded, label_size
from framesift.data.waiting import Staging
from framesift.errors import BadFile
from framesift.forms.optional import imported

HEADER_FILE = "manifest.json"
_FRAMES_FILE = "frames.parquet"
_FORMAT = 5
_MARK_CHARACTERS = 12

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ManifestFrames:
    """Frames of a manifest; attributes as of framesift.data.frames.Stored."""

    dataset: str
    classes: Classes
    names: Sequence[str]
    splits: Sequence[str]
    images: Sequence[DatedFile]
    labels: Sequence[DatedFile | None]
    staging: Staging | None = None
    """That brings files which are missing; None where nothing does."""
    has_manifest_rows: ClassVar[bool] = True

    def read(self, row: int) -> tuple[UInt8, UInt8 | None]:
        """A frame's image and class ids."""
        return decoded(self.images[row], self.labels[row], self.classes, self.staging)

    def label_path(self, row: int) -> str | None:
        """The file of a frame's label."""
        label = self.labels[row]
        return None if label is None else label.path

    def label_size(self, row: int) -> tuple[int, int] | None:
        """Height and width of a frame's label [pixels]."""
        return label_size(self.labels[row], self.staging)


def read_manifest(folder: Path) -> ManifestFrames:
    """The frames of the manifest in a folder.

    Raises:
        BadFile: It is damaged, of another format, or its files are not on this machine.
        MissingPackage: There is no pyarrow.
    """
    parquet, pyarrow = imported("pyarrow.parquet"), imported("pyarrow")
    try:
        header = json.loads((folder / HEADER_FILE).read_text(encoding="utf-8"))
        if header["format"] != _FORMAT:
            raise BadFile(
                f"{folder}: manifest format {header['format']}; this version reads {_FORMAT}"
            )
        table = (folder / _FRAMES_FILE).read_bytes()
        if hashlib.sha256(table).hexdigest() != header["frames_sha256"]:
            raise BadFile(f"{folder}: {_FRAMES_FILE} does not belong to {HEADER_FILE} beside it")
        columns = parquet.read_table(pyarrow.BufferReader(table)).to_pydict()
        roots = {name: _root(root, folder) for name, root in header["roots"].items()}
        return ManifestFrames(
            f"{header['name']}@{header['version']}",
            Classes.of_manifest(header, roots),
            columns["fkey"],
            columns["split"],
            [file for file in _files("image", columns, roots, header) if file is not None],
            _files("label", columns, roots, header),
            Staging.beside(folder),
        )
    except OSError as error:
        raise BadFile(f"{error.filename or folder}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, pyarrow.ArrowException) as error:
        if isinstance(error, BadFile):
            raise
        raise BadFile(f"{folder}: manifest is damaged: {' '.join(str(error).split())}") from error


def _root(root: str, folder: Path) -> str:
    """A source's folder; a relative one is one beside the manifest."""
    if "://" in root:
        raise BadFile(
            f"{folder}: its files lie at {root}; framesift.data reads files of this machine: stage "
            "the dataset (framesift stage), and open the staged manifest"
        )
    return os.path.normpath(folder.absolute() / root)


def _files(
    kind: str, columns: Mapping[str, list[Any]], roots: Mapping[str, str], header: Mapping[str, Any]
) -> list[DatedFile | None]:
    """Each frame's "image" or "label", in order; None where it has none."""
    names = (f"{kind}_source", kind, f"{kind}_size", f"{kind}_version")
    files: list[DatedFile | None] = []
    # Manifests that were written before there were any have no such column.
    of_labels = columns.get("label_segments") if kind == "label" else None
    segments = of_labels or [None] * len(columns[kind])
    for source, key, size, version, its_segments in zip(
        *(columns[name] for name in names), segments, strict=True
    ):
        if key is None:
            files.append(None)
        elif header["staged"]:
            # A cache names a copy by its version, and holds whole copies only.
            copy = f"{roots[source]}/{versioned_key(key, size, version)}"
            files.append(DatedFile(copy, segments=its_segments))
        else:
            files.append(DatedFile(f"{roots[source]}/{key}", size, version, its_segments))
    return files


def versioned_key(key: str, size: int, version: str) -> str:
    """Where one version of a file lies below its source's folder in a cache.

    Source: docs/staging.md, names in a cache.
    """
    folder, slash, name = key.rpartition("/")
    stem, dot, kind = name.rpartition(".")
    mark = hashlib.sha256(f"{size} {version}".encode()).hexdigest()[:_MARK_CHARACTERS]
    return f"{folder}{slash}{stem}~{mark}.{kind}" if dot else f"{folder}{slash}{name}~{mark}"
