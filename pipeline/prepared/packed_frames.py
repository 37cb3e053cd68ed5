"""The files of a form at full size that is being made, written by several processes."""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.manifest import Manifest
from pipeline.prepared.form import FRAMES_FILE, HAS_IMAGE, HAS_LABEL, checksum
from pipeline.prepared.full_form import FULL_FRAME, PACKED_FILE, PARTS, FullForm
from pipeline.prepared.packed import UInt8, packed_image, packed_label


@dataclass(frozen=True)
class PackedFrames:
    """The files, as pipeline.prepared.full_form describes them."""

    folder: Path
    frames: npt.NDArray[Any]
    classes: DatasetClasses
    """That labels are decoded with for `put`."""
    numbered: NumberedColours | None

    @classmethod
    def create(cls, folder: Path, manifest: Manifest) -> "PackedFrames":
        """New ones that hold no frame."""
        (folder / PACKED_FILE).touch()
        np.lib.format.open_memmap(  # type: ignore[no-untyped-call]
            folder / FRAMES_FILE, "w+", FULL_FRAME, (len(manifest),)
        )
        with (folder / FRAMES_FILE).open("r+b") as file:
            # Here a full disk is an error; to a process that writes a mapped array, the end.
            os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        return cls.open(folder, manifest)

    @classmethod
    def open(cls, folder: Path, manifest: Manifest) -> "PackedFrames":
        """Files that another process created, for the frames of a manifest."""
        numbered = NumberedColours.of(manifest.header.dataset_classes)
        classes = manifest.header.dataset_classes if numbered is None else numbered.classes
        frames = np.load(folder / FRAMES_FILE, mmap_mode="r+", allow_pickle=False)
        return cls(folder, frames, classes, numbered)

    def put(self, position: int, image: UInt8, label: UInt8 | None) -> None:
        """Write a frame.

        Args:
            position: Of the frame in its dataset.
            image: (H, W, 3) uint8 [RGB].
            label: (H, W) uint8 [class id of ``classes``]; None where it has none.
        """
        parts = [packed_image(image)]
        if label is not None and self.numbered is not None:
            parts += [packed_label(self.numbered.label_class[label]), packed_label(label)]
        elif label is not None:
            parts += [packed_label(label), b""]
        self._write(position, parts, image.shape[:2], has_label=label is not None)

    def copy(self, position: int, earlier: FullForm) -> None:
        """Write a frame that an earlier form of the same dataset has undamaged."""
        frame = earlier.frames[position]
        size_px = int(frame["height_px"]), int(frame["width_px"])
        parts = (earlier.part(position, plane) for plane in PARTS)
        written = [b"" if plane is None else plane.tobytes() for plane in parts]
        self._write(position, written, size_px, has_label=bool(frame["has"] & HAS_LABEL))

    def _write(
        self, position: int, parts: Iterable[bytes], size_px: tuple[int, ...], *, has_label: bool
    ) -> None:
        parts = [*parts, b"", b""][: len(PARTS)]
        content = b"".join(parts)
        path = self.folder / PACKED_FILE
        with path.open("ab", buffering=0) as file:
            # One call: where it goes to the file's end no other process writes.
            if file.write(content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            at = file.tell() - len(content)
        has = HAS_IMAGE | HAS_LABEL if has_label else HAS_IMAGE
        checksums = (checksum(np.frombuffer(plane, np.uint8)) if plane else 0 for plane in parts)
        self.frames[position] = (has, *size_px, at, *map(len, parts), *checksums)
