"""Frames of a manifest as small arrays, each PNG decoded once while memory lasts."""

import os
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import BadFile, FramesiftError
from catalog.file_version import fits, shown, version_of
from catalog.storage.beneath import open_beneath, real_place
from ingest.labels.label_image import decode_image, decode_label
from ingest.labels.palette import Palette
from pipeline.manifest import FrameFile, Manifest

UInt8 = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Frame:
    """A decoded frame.

    Attributes:
        image: (h, w, 3) uint8 [RGB] at the network's input size, averaged over area.
        label: (H, W) uint8 [class id] at its own size, UNKNOWN_CLASS where the colour is unknown.
    """

    image: UInt8
    label: UInt8


class FrameReader:
    """Reads the frames of a manifest.

    Attributes:
        failure: The first error of `small`; TensorFlow's input pipeline forgets what kind it was.
    """

    def __init__(
        self, frames: Manifest, palette: Palette, height_px: int, width_px: int, cache_bytes: int
    ) -> None:
        """Prepare to read ``frames`` for a network input of height_px by width_px pixels.

        Args:
            frames: Those that may be asked for; rows count from 0 in their order.
            palette: Of their labels.
            height_px: Network input.
            width_px: Network input.
            cache_bytes: What `small` may keep; beyond it frames are decoded again each time.

        Raises:
            StorageError: A source lies elsewhere than where it may, by now.
        """
        self.failure: FramesiftError | None = None
        within = frames.header.within
        # Asked once, and every file that is opened is held to it.
        self._real = {
            source: real_place(Path(root), within.get(source, ""))
            for source, root in frames.header.roots.items()
        }
        self._staged = frames.header.staged
        self._images = frames.images()
        self._labels = frames.labels()
        self._palette = palette
        self._size = (height_px, width_px)
        self._kept: dict[int, tuple[UInt8, UInt8]] = {}
        self._free_bytes = cache_bytes
        self._keeping = Lock()

    def image(self, row: int) -> tuple[UInt8, tuple[int, int]]:
        """A frame's image (h, w, 3) uint8 at network size, and the (H, W) it has on disk.

        Raises:
            BadFile: It is missing, or cannot be decoded.
        """
        file = self._images[row]
        try:
            picture = Image.fromarray(decode_image(self._read(file)))
        except BadFile as error:
            raise self._damaged(error, file) from error
        height_px, width_px = self._size
        small = picture.resize((width_px, height_px), Image.Resampling.BOX)
        return np.asarray(small), (picture.height, picture.width)

    def frame(self, row: int) -> Frame:
        """A frame with its label at full size.

        Raises:
            BadFile: A file is missing or cannot be decoded, image and label differ in size, or the
                frame has no label.
        """
        image, (height_px, width_px) = self.image(row)
        file = self._labels[row]
        if file is None:
            raise BadFile("the frame has no label", self._images[row].path)
        try:
            label = decode_label(self._read(file), self._palette)
        except BadFile as error:
            raise self._damaged(error, file) from error
        if label.shape != (height_px, width_px):
            raise BadFile(
                f"label has {label.shape[1]}x{label.shape[0]} pixels, but its image "
                f"{self._images[row].path} has {width_px}x{height_px}",
                file.path,
            )
        return Frame(image, label)

    def small(self, row: int) -> tuple[UInt8, UInt8]:
        """A frame at network size, from memory when it was read before.

        Returns:
            Image (h, w, 3) uint8 [RGB] and label (h, w) uint8 [class id], the latter by nearest
            pixel.

        Raises:
            BadFile: As `frame`.
        """
        kept = self._kept.get(row)
        if kept is not None:
            return kept
        try:
            frame = self.frame(row)
        except FramesiftError as error:
            self.failure = self.failure or error
            raise
        pair = frame.image, nearest(frame.label, *self._size)
        size_bytes = sum(array.nbytes for array in pair)
        with self._keeping:  # several threads read ahead
            if row not in self._kept and size_bytes <= self._free_bytes:
                self._free_bytes -= size_bytes
                self._kept[row] = pair
        return pair

    def _damaged(self, error: BadFile, file: FrameFile) -> BadFile:
        if error.file:
            return error
        mend = "delete it and stage the dataset again" if self._staged else "put a whole file there"
        return BadFile(f"{error.reason}; {mend}", file.path)

    def _read(self, file: FrameFile) -> bytes:
        try:
            with open_beneath(self._real[file.source], file.key) as opened:
                status = os.fstat(opened.fileno())
                if file.version is not None and not fits(status, file.size, file.version):
                    raise BadFile(
                        "has changed since the dataset was made: it has "
                        f"{shown(status.st_size, version_of(status))}; the dataset's has "
                        f"{shown(file.size, file.version)}. Put that one back, or make a dataset "
                        "of what is there now: framesift ingest, then framesift dataset create",
                        file.path,
                    )
                return opened.read()
        except OSError as error:
            reason = error.strerror or "cannot be read"
            mend = "stage the dataset again" if self._staged else "put the file back"
            raise BadFile(f"{reason}; {mend}", file.path) from error


def nearest(label: UInt8, height_px: int, width_px: int) -> UInt8:
    """A label (H, W) uint8 at another size, each pixel the nearest one's class id."""
    rows = (np.arange(height_px) * 2 + 1) * label.shape[0] // (2 * height_px)
    columns = (np.arange(width_px) * 2 + 1) * label.shape[1] // (2 * width_px)
    return np.ascontiguousarray(label[rows[:, None], columns])
