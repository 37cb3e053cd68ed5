"""The arrays of a form that is being made: mapped, and written by several processes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.prepared.decoded_frames import UInt8
from pipeline.prepared.form import (
    FRAME,
    FRAMES_FILE,
    HAS_IMAGE,
    HAS_LABEL,
    IMAGES_FILE,
    LABELS_FILE,
    checksum,
)
from pipeline.runs.size import Size


@dataclass(frozen=True)
class Arrays:
    """The arrays, as pipeline.prepared.form describes them."""

    images: UInt8
    labels: UInt8
    frames: npt.NDArray[Any]

    @classmethod
    def create(cls, folder: Path, frames: int, size: Size) -> "Arrays":
        """New ones that hold no frame, with all their space."""
        shape = (frames, size.height_px, size.width_px)
        for name, dtype, of in (
            (IMAGES_FILE, np.dtype(np.uint8), (*shape, 3)),
            (LABELS_FILE, np.dtype(np.uint8), shape),
            (FRAMES_FILE, FRAME, shape[:1]),
        ):
            np.lib.format.open_memmap(folder / name, "w+", dtype, of)  # type: ignore[no-untyped-call]
            with (folder / name).open("r+b") as file:
                # Here a full disk is an error; to a process that writes a mapped array, the end.
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path) -> "Arrays":
        """Arrays that another process created."""
        return cls(*(np.load(folder / name, mmap_mode="r+", allow_pickle=False) for name in _FILES))

    def put(
        self, position: int, image: UInt8, label: UInt8 | None, size_px: tuple[int, int]
    ) -> None:
        """Write a frame.

        Args:
            position: Of the frame in its dataset.
            image: (h, w, 3) uint8 [RGB].
            label: (h, w) uint8 [class id]; None where it has none.
            size_px: (H, W) of its image on disk.
        """
        self.images[position] = image
        has, label_crc = HAS_IMAGE, 0
        if label is not None:
            self.labels[position] = label
            has, label_crc = HAS_IMAGE | HAS_LABEL, checksum(label)
        self.frames[position] = (has, *size_px, checksum(image), label_crc)


_FILES = (IMAGES_FILE, LABELS_FILE, FRAMES_FILE)
