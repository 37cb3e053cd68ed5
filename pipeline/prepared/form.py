"""A prepared form on disk: every frame of a dataset at one size, in arrays that are memory-mapped.

    CACHE/.prepared/<WIDTHxHEIGHT>-<key>/
        images.npy      (N, h, w, 3) uint8 [RGB], averaged over area
        labels.npy      (N, h, w) uint8 [class id], by nearest pixel
        frames.npy      (N,) FRAME: which frames it has, their size on disk, checksums
        classes.json    its classes (pipeline.prepared.class_file)
        prepared.json   what it is of; with it the form is whole

The key is made of what decides the arrays: the versions of all files in the dataset's order, the
size, the class list, and the code that decodes. So a changed file is another form, and a job goes
on with the one that it has mapped. A frame that could not be decoded is not in it (FRAME's `has`),
and each frame has checksums: a reader of a row that the form lacks, or that was damaged since,
decodes the frame's files, and treats them as without a form.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import deflate
import numpy as np
import numpy.typing as npt

from catalog.storage.bounded_file import parsed_json
from ingest.labels.dataset_classes import further_lists
from pipeline.entry_name import FORMS as FOLDER
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import RESIZING, UInt8
from pipeline.runs.size import FormSize, Size

FORMAT = 1
ABOUT_FILE = "prepared.json"
IMAGES_FILE, LABELS_FILE, FRAMES_FILE = "images.npy", "labels.npy", "frames.npy"

HAS_IMAGE, HAS_LABEL = 1, 2

FRAME = np.dtype(
    [("has", "u1"), ("height_px", "u4"), ("width_px", "u4"), ("image", "u4"), ("label", "u4")]
)
"""`has`: HAS_IMAGE, with HAS_LABEL both, or 0. `height_px`, `width_px`: of the image on disk.
`image`, `label`: CRC-32 of the frame's part of each array."""

_KEY_CHARACTERS = 16
_FILES = ("image_source", "image", "image_size", "image_version")
_LABELS = ("label_source", "label", "label_size", "label_version")


@dataclass(frozen=True)
class About:
    """The identity of a form."""

    key: str
    """Digest of what decides its arrays."""
    height_px: int | None
    """h; None at full size."""
    width_px: int | None
    """w; None at full size."""
    frames: int
    """N."""
    frames_crc: int
    """CRC-32 of frames.npy's content."""
    dataset: str
    """NAME@VERSION that it was made for, for people."""
    format: int = FORMAT

    def to_json(self) -> str:
        """The text of prepared.json."""
        return json.dumps(asdict(self), indent=2)


@dataclass(frozen=True)
class PreparedForm:
    """A form, opened."""

    FILES: ClassVar = (IMAGES_FILE, LABELS_FILE, FRAMES_FILE)
    """Names of those that hold frames."""

    folder: Path
    images: UInt8
    """(N, h, w, 3) uint8, mapped."""
    labels: UInt8
    """(N, h, w) uint8, mapped."""
    frames: npt.NDArray[Any]
    """(N,) FRAME."""
    fkeys: dict[str, int]
    """Position of each frame by fkey."""

    def rows(self, fkeys: Sequence[str]) -> "PreparedRows":
        """The rows of some of its dataset's frames, such as a split's, in their order."""
        return PreparedRows(self, np.array([self.fkeys[fkey] for fkey in fkeys], np.int64))

    def image(self, position: int) -> UInt8 | None:
        """A frame's image (h, w, 3); None where the form lacks it or it was damaged."""
        frame = self.frames[position]
        image = self.images[position]
        return image if frame["has"] & HAS_IMAGE and checksum(image) == frame["image"] else None

    def label(self, position: int) -> UInt8 | None:
        """A frame's label (h, w); None where the form lacks it or it was damaged."""
        frame = self.frames[position]
        label = self.labels[position]
        return label if frame["has"] & HAS_LABEL and checksum(label) == frame["label"] else None

    def is_intact(self, position: int, *, labelled: bool) -> bool:
        """True where a frame is there undamaged, with its label where it has one."""
        return self.image(position) is not None and (
            not labelled or self.label(position) is not None
        )


@dataclass(frozen=True)
class PreparedRows:
    """Frames of a form by rows of a split or shard."""

    form: PreparedForm
    positions: npt.NDArray[np.int64]
    """(n,) int64, of each row in the form."""

    def lacks(self) -> npt.NDArray[np.int64]:
        """(k,) int64, ascending: the rows that it was made without, or without a label."""
        rows: npt.NDArray[np.int64] = np.flatnonzero(
            (self.form.frames["has"][self.positions] & HAS_LABEL) == 0
        )
        return rows

    def image(self, row: int) -> tuple[UInt8, tuple[int, int]] | None:
        """An image (h, w, 3) and its (H, W) on disk; None where the form does not have it."""
        position = int(self.positions[row])
        image = self.form.image(position)
        frame = self.form.frames[position]
        if image is None:
            return None
        return image, (int(frame["height_px"]), int(frame["width_px"]))

    def small(self, row: int) -> tuple[UInt8, UInt8] | None:
        """Image (h, w, 3) and label (h, w); None where the form does not have both."""
        position = int(self.positions[row])
        image, label = self.form.image(position), self.form.label(position)
        return None if image is None or label is None else (image, label)


def checksum(array: UInt8) -> int:
    """CRC-32 of an array's bytes, by libdeflate."""
    crc: int = deflate.crc32(array.data)
    return crc


def prepared_folder(manifest: Path | None) -> Path | None:
    """The folder of a staged manifest's forms, beside it in its cache; None for any other."""
    path = None if manifest is None else manifest.absolute()
    if path is None or path.parent.name != ".manifests":
        return None
    return path.parent.parent / FOLDER


def form_path(folder: Path, key: str, size: FormSize) -> Path:
    """The folder of one form below that of all."""
    return folder / f"{size}-{key}"


def form_key(manifest: Manifest, size: FormSize) -> str | None:
    """The identity of a manifest's form; None where it does not know the versions of its files."""
    header, rows = manifest.header, manifest.frames
    if rows["image_version"].null_count or (
        rows["label_version"].null_count != rows["label"].null_count
    ):
        return None
    about = [FORMAT, RESIZING, str(size), header.class_list.to_json()]
    about += further_lists(header.dataset_classes).values()
    sources = {name: header.datasources.get(name, name) for name in header.roots}
    digest = hashlib.sha256(json.dumps([*about, sources]).encode())
    names = ["fkey", *_FILES, *_LABELS]
    if rows["label_segments"].null_count < len(rows):
        names.append("label_segments")
    columns = (rows[name].to_pylist() for name in names)
    for row in zip(*columns, strict=True):
        digest.update(json.dumps(row).encode())
    return digest.hexdigest()[:_KEY_CHARACTERS]


def open_form(manifest: Manifest, size: Size, folder: Path | None = None) -> PreparedForm | None:
    """The form of a manifest's frames at a size; None where there is none that is whole.

    Args:
        manifest: The dataset, with all its splits.
        folder: That of all forms; beside the staged manifest by default.
    """
    described = described_form(manifest, size, folder)
    if described is None:
        return None
    path, about = described
    shape = (len(manifest), size.height_px, size.width_px)
    try:
        images = np.load(path / IMAGES_FILE, mmap_mode="r", allow_pickle=False)
        labels = np.load(path / LABELS_FILE, mmap_mode="r", allow_pickle=False)
        frames = np.load(path / FRAMES_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_intact = (
        (images.shape, images.dtype) == ((*shape, 3), np.uint8)
        and (labels.shape, labels.dtype) == (shape, np.uint8)
        and (frames.shape, frames.dtype) == (shape[:1], FRAME)
        and checksum(frames.view(np.uint8)) == about.frames_crc
    )
    if not is_intact:
        return None
    note_use(path)
    return PreparedForm(path, images, labels, frames, positions(manifest))


def described_form(
    manifest: Manifest, size: FormSize, folder: Path | None
) -> tuple[Path, About] | None:
    """The folder of a manifest's form and what it is of; None where there is none.

    Args:
        folder: That of all forms; beside the staged manifest by default.
    """
    folder = folder or prepared_folder(manifest.folder)
    key = form_key(manifest, size) if folder is not None and folder.is_dir() else None
    if folder is None or key is None:
        return None
    path = form_path(folder, key, size)
    try:
        about = About(**parsed_json((path / ABOUT_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return (path, about) if (about.format, about.key) == (FORMAT, key) else None


def note_use(path: Path) -> None:
    """Note that a form is used now: what was used last is evicted last."""
    with suppress(OSError):  # a cache that is mounted read-only
        os.utime(path / ABOUT_FILE)


def positions(manifest: Manifest) -> dict[str, int]:
    """Position of each frame of a dataset by fkey."""
    return {fkey: n for n, fkey in enumerate(manifest.frames["fkey"].to_pylist())}


def prepared_rows(frames: Manifest, size: Size) -> PreparedRows | None:
    """Some frames of a staged manifest on disk in its form at a size; None where there is none."""
    if frames.folder is None or prepared_folder(frames.folder) is None:
        return None
    form = open_form(Manifest.read(frames.folder), size)
    return form.rows(frames.frames["fkey"].to_pylist()) if form else None


def form_bytes(frames: int, size: Size) -> int:
    """Space that a form takes [bytes], but for some hundred of headers."""
    return frames * (4 * size.height_px * size.width_px + FRAME.itemsize)
