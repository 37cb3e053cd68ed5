"""A prepared form at full size on disk: every frame of a dataset as it is, decoded but for LZ4.

    CACHE/.prepared/full-<key>/
        frames.lz4      frame after frame (pipeline.prepared.packed): its image; its label's class
                        ids; and where colours number objects ("Car 1"), each pixel's position in
                        the class list, which validation takes
        frames.npy      (N,) FULL_FRAME: where each frame begins, its size, checksums
        classes.json    its classes (pipeline.prepared.class_file)
        prepared.json   what it is of; with it the form is whole

Frames may have different sizes. What pipeline.prepared.form says of keys, of frames that are not in
a form, and of damaged ones holds here, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.manifest import Manifest
from pipeline.prepared.form import (
    FRAMES_FILE,
    HAS_IMAGE,
    HAS_LABEL,
    checksum,
    described_form,
    note_use,
    positions,
    prepared_folder,
)
from pipeline.prepared.packed import UInt8, image_of, label_of
from pipeline.runs.size import FULL

PACKED_FILE = "frames.lz4"

PARTS = ("image", "label", "colours")
"""The parts of a frame, in the order in which they lie in frames.lz4."""

FULL_FRAME = np.dtype(
    [
        ("has", "u1"), ("height_px", "u4"), ("width_px", "u4"), ("at", "u8"),
        *((f"{part}_bytes", "u4") for part in PARTS), *((part, "u4") for part in PARTS),
    ]
)  # fmt: skip
"""`has`: HAS_IMAGE, with HAS_LABEL both, or 0. `at`: place of the frame's first byte in frames.lz4.
`image_bytes`...: of each part there; 0 for one that it does not have. `image`...: their CRC-32."""


@dataclass(frozen=True)
class FullForm:
    """A form at full size, opened."""

    FILES: ClassVar = (PACKED_FILE, FRAMES_FILE)
    """Names of those that hold frames."""

    folder: Path
    packed: UInt8
    """(n,) uint8, content of frames.lz4, mapped."""
    frames: npt.NDArray[Any]
    """(N,) FULL_FRAME."""
    fkeys: dict[str, int]
    """Position of each frame by fkey."""
    classes: DatasetClasses
    """Of its class ids."""
    numbered: NumberedColours | None
    """Of its colours; None where none of them numbers objects."""

    def rows(self, fkeys: Sequence[str]) -> "FullRows":
        """The rows of some of its dataset's frames, such as a split's, in their order."""
        return FullRows(self, np.array([self.fkeys[fkey] for fkey in fkeys], np.int64))

    def image(self, position: int) -> UInt8 | None:
        """A frame's image (H, W, 3); None where the form lacks it or it was damaged."""
        packed = self.part(position, "image")
        return None if packed is None else image_of(packed, self._size_px(position))

    def label(self, position: int, classes: DatasetClasses) -> UInt8 | None:
        """A frame's label (H, W) with the ids of ``classes``; None where the form lacks it.

        Args:
            classes: The form's own, or those of its numbered colours; it has no other label.
        """
        plane = "label"
        if self.numbered is not None and classes == self.numbered.classes:
            plane = "colours"
        elif classes != self.classes:
            return None
        packed = self.part(position, plane)
        return None if packed is None else label_of(packed, self._size_px(position))

    def is_intact(self, position: int, *, labelled: bool) -> bool:
        """True where a frame is there undamaged, with its label where it has one."""
        parts = 1 if not labelled else 2 if self.numbered is None else 3
        return all(self.part(position, plane) is not None for plane in PARTS[:parts])

    def part(self, position: int, plane: str) -> UInt8 | None:
        """A part's bytes; None where the form lacks it or it was damaged."""
        frame = self.frames[position]
        if not frame["has"] & (HAS_IMAGE if plane == "image" else HAS_LABEL):
            return None
        before = PARTS[: PARTS.index(plane)]
        begin = int(frame["at"]) + sum(int(frame[f"{name}_bytes"]) for name in before)
        packed = self.packed[begin : begin + int(frame[f"{plane}_bytes"])]
        return packed if checksum(packed) == frame[plane] else None

    def _size_px(self, position: int) -> tuple[int, int]:
        frame = self.frames[position]
        return int(frame["height_px"]), int(frame["width_px"])


@dataclass(frozen=True)
class FullRows:
    """Frames of a form at full size by rows of a split or shard."""

    form: FullForm
    positions: npt.NDArray[np.int64]
    """(n,) int64, of each row in the form."""

    def has(self, row: int) -> bool:
        """True where the form was made with a frame, and with its label where that has one."""
        return bool(self.form.frames["has"][self.positions[row]])

    def image(self, row: int) -> UInt8 | None:
        """As FullForm's, by row."""
        return self.form.image(int(self.positions[row]))

    def label(self, row: int, classes: DatasetClasses) -> UInt8 | None:
        """As FullForm's, by row."""
        return self.form.label(int(self.positions[row]), classes)


def open_full_form(manifest: Manifest, folder: Path | None = None) -> FullForm | None:
    """The form of a manifest's frames at full size; None where there is none that is whole.

    Args:
        manifest: The dataset, with all its splits.
        folder: That of all forms; beside the staged manifest by default.
    """
    described = described_form(manifest, FULL, folder)
    if described is None:
        return None
    path, about = described
    try:
        size = (path / PACKED_FILE).stat().st_size
        packed = np.memmap(path / PACKED_FILE, np.uint8, "r") if size else np.zeros(0, np.uint8)
        frames = np.load(path / FRAMES_FILE, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if (frames.shape, frames.dtype) != ((len(manifest),), FULL_FRAME):
        return None
    if checksum(frames.view(np.uint8)) != about.frames_crc or packed_bytes(frames) > size:
        return None
    note_use(path)
    classes = manifest.header.dataset_classes
    numbered = NumberedColours.of(classes)
    return FullForm(path, packed, frames, positions(manifest), classes, numbered)


def full_rows(frames: Manifest) -> FullRows | None:
    """Some frames of a staged manifest on disk in its form at full size; None without one."""
    if frames.folder is None or prepared_folder(frames.folder) is None:
        return None
    form = open_full_form(Manifest.read(frames.folder))
    return form.rows(frames.frames["fkey"].to_pylist()) if form else None


def packed_bytes(frames: npt.NDArray[Any]) -> int:
    """Where the last of some frames (FULL_FRAME) ends in frames.lz4 [bytes]."""
    ends = frames["at"].astype(np.int64)
    for plane in PARTS:
        ends += frames[f"{plane}_bytes"]
    return int(ends.max(initial=0))
