"""The arrays of a small form that is being made: mapped, and written by several processes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ingest.labels.dataset_classes import DatasetClasses
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import UInt8, nearest, small_image
from pipeline.prepared.form import (
    FRAME,
    FRAMES_FILE,
    HAS_IMAGE,
    HAS_LABEL,
    IMAGES_FILE,
    LABELS_FILE,
    PreparedForm,
    checksum,
)
from pipeline.runs.size import Size


@dataclass(frozen=True)
class Arrays:
    """The arrays, as pipeline.prepared.form describes them."""

    images: UInt8
    labels: UInt8
    frames: npt.NDArray[Any]
    classes: DatasetClasses
    """That labels are decoded with for `put`."""

    @classmethod
    def create(cls, folder: Path, manifest: Manifest, size: Size) -> "Arrays":
        """New ones that hold no frame, with all their space."""
        shape = (len(manifest), size.height_px, size.width_px)
        for name, dtype, of in (
            (IMAGES_FILE, np.dtype(np.uint8), (*shape, 3)),
            (LABELS_FILE, np.dtype(np.uint8), shape),
            (FRAMES_FILE, FRAME, shape[:1]),
        ):
            np.lib.format.open_memmap(folder / name, "w+", dtype, of)  # type: ignore[no-untyped-call]
            with (folder / name).open("r+b") as file:
                # Here a full disk is an error; to a process that writes a mapped array, the end.
                os.posix_fallocate(file.fileno(), 0, os.fstat(file.fileno()).st_size)
        return cls.open(folder, manifest)

    @classmethod
    def open(cls, folder: Path, manifest: Manifest) -> "Arrays":
        """Arrays that another process created, for the frames of a manifest."""
        images, labels, frames = (
            np.load(folder / name, mmap_mode="r+", allow_pickle=False)
            for name in PreparedForm.FILES
        )
        return cls(images, labels, frames, manifest.header.dataset_classes)

    def put(self, position: int, image: UInt8, label: UInt8 | None) -> None:
        """Write a frame, made small.

        Args:
            position: Of the frame in its dataset.
            image: (H, W, 3) uint8 [RGB], at its size on disk.
            label: (H, W) uint8 [class id]; None where it has none.
        """
        size = Size(*self.labels.shape[1:])
        small = small_image(image, size)
        self.images[position] = small
        has, label_crc = HAS_IMAGE, 0
        if label is not None:
            ids = nearest(label, size)
            self.labels[position] = ids
            has, label_crc = HAS_IMAGE | HAS_LABEL, checksum(ids)
        self.frames[position] = (has, *image.shape[:2], checksum(small), label_crc)

    def copy(self, position: int, earlier: PreparedForm) -> None:
        """Write a frame that an earlier form of the same dataset has undamaged."""
        self.images[position] = earlier.images[position]
        self.labels[position] = earlier.labels[position]
        self.frames[position] = earlier.frames[position]
