"""Frames of a manifest at full size, each decoded from its files, or once for all."""

import os
import shlex
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import BadFile
from catalog.storage.beneath import open_beneath, real_path, status_beneath
from catalog.storage.file_version import fits, version_of, version_text
from ingest.images.camera_image import decode_image, image_size, whole_image_size
from ingest.images.jpeg_segments import SEGMENT_BYTES
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.label_image import decode_ids
from pipeline.manifest import FrameFile, Manifest, ManifestHeader
from pipeline.runs.size import Size

UInt8 = npt.NDArray[np.uint8]

RESIZING = 1
"""Raised with every change of what `small_image`, `nearest` or the decoders give."""


class StoredFrames(Protocol):
    """The same frames, decoded before: pipeline.prepared.full_form.FullRows."""

    def has(self, row: int) -> bool:
        """True where they have a frame, and its label where it has one."""
        ...

    def image(self, row: int) -> UInt8 | None:
        """A frame's image; None where they lack it."""
        ...

    def label(self, row: int, classes: DatasetClasses) -> UInt8 | None:
        """A frame's label with the class ids of ``classes``; None where they lack it."""
        ...


class DecodedFrames:
    """Decodes the frames of a manifest, whose rows count from 0 in their order."""

    def __init__(
        self,
        frames: Manifest,
        classes: DatasetClasses,
        wait_for: Callable[[str], bool] = lambda _: False,
        stored: StoredFrames | None = None,
        lacking: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare to decode frames whose labels have these classes.

        Args:
            wait_for: Waits until a missing file is there, for frames that a staging fetches
                meanwhile (pipeline.cache.reading); False where none does.
            stored: The same frames; the files of those that it has are not read.
            lacking: Called when a file is read although there are such.
        """
        within = frames.header.within
        # Asked once, and every file that is opened is held to it.
        self._real = {
            source: real_path(Path(root), within.get(source, ""))
            for source, root in frames.header.roots.items()
        }
        self._repair = _repair(frames.header)
        self._images = frames.images()
        self._labels = frames.labels()
        self._classes = classes
        self._wait_for = wait_for
        self._stored, self._lacking = stored, lacking

    def has_label(self, row: int) -> bool:
        """True where a frame has a label."""
        return self._labels[row] is not None

    def missing(self, row: int) -> BadFile | None:
        """The file of a frame that is not there, and no staging waited for; None where all are."""
        if self._stored is not None and self._stored.has(row):
            return None
        for file in (self._images[row], self._labels[row]):
            if file is not None:
                try:
                    status_beneath(self._real[file.source], file.key)
                except OSError as error:
                    return self._unread(error, file)
        return None

    def size_px(self, row: int) -> tuple[int, int]:
        """(H, W) of a frame's image, as its file says, of which nothing more is read.

        Raises:
            BadFile: It is missing, or no image.
        """
        if self._stored is not None and self._stored.has(row):
            stored = self._stored.image(row)
            if stored is not None:
                return stored.shape[0], stored.shape[1]
        file = self._images[row]
        try:
            with self._open(file) as opened:
                descriptor = opened.fileno()
                size = os.fstat(descriptor).st_size
                width, height = image_size(
                    lambda begin: os.pread(descriptor, SEGMENT_BYTES, begin), size
                )
        except OSError as error:
            raise self._unread(error, file) from error
        return height, width

    def image(self, row: int) -> UInt8:
        """A frame's image, (H, W, 3) uint8 [RGB] at its own size.

        Raises:
            BadFile: It is missing, or cannot be decoded.
        """
        if self._stored is not None:
            image = self._stored.image(row)
            if image is not None:
                return image
            self._lacking()
        file = self._images[row]
        try:
            return decode_image(self._read(file))
        except BadFile as error:
            raise self._damaged(error, file) from error

    def image_file(self, row: int) -> tuple[bytes, tuple[int, int]]:
        """The file of a frame's image, as it is, and the (H, W) of the image.

        Raises:
            BadFile: It is missing, cut short, or no image; its pixels are not decoded.
        """
        file = self._images[row]
        try:
            content = self._read(file)
            width, height = whole_image_size(content)
        except BadFile as error:
            raise self._damaged(error, file) from error
        return content, (height, width)

    def label(self, row: int, size_px: tuple[int, int]) -> UInt8:
        """A frame's label, (H, W) uint8 [class id], UNKNOWN_CLASS of pixels of no class.

        Args:
            size_px: (H, W) of its image.

        Raises:
            BadFile: It is missing, cannot be decoded, or has another size than its image.
        """
        file = self._labels[row]
        if file is None:
            raise BadFile("the frame has no label", self._images[row].path)
        if self._stored is not None:
            stored = self._stored.label(row, self._classes)
            if stored is not None:
                return stored
            self._lacking()
        try:
            label = decode_ids(
                self._read(file),
                self._classes.list_of(file.source).encoding,
                self._classes.table_of(file.source),
                file.segments,
            )
        except BadFile as error:
            raise self._damaged(error, file) from error
        if label.shape != size_px:
            raise BadFile(
                f"label has {label.shape[1]}x{label.shape[0]} pixels, but its image "
                f"{self._images[row].path} has {size_px[1]}x{size_px[0]}",
                file.path,
            )
        return label

    def _damaged(self, error: BadFile, file: FrameFile) -> BadFile:
        if error.file:
            return error
        return BadFile(f"{error.reason}; {self._repair or 'put a whole file there'}", file.path)

    def _read(self, file: FrameFile) -> bytes:
        try:
            with self._open(file) as opened:
                status = os.fstat(opened.fileno())
                if file.version is not None and not fits(status, file.size, file.version):
                    raise BadFile(
                        "has changed since the dataset was made: it has "
                        f"{version_text(status.st_size, version_of(status))}; the dataset's has "
                        f"{version_text(file.size, file.version)}. Put that one back, or make "
                        "a dataset of what is there now: framesift ingest, then framesift dataset "
                        "create",
                        file.path,
                    )
                return opened.read()
        except OSError as error:
            raise self._unread(error, file) from error

    def _unread(self, error: OSError, file: FrameFile) -> BadFile:
        reason = error.strerror or "cannot be read"
        return BadFile(f"{reason}; {self._repair or 'put the file back'}", file.path)

    def _open(self, file: FrameFile) -> BinaryIO:
        while True:
            try:
                return open_beneath(self._real[file.source], file.key)
            except FileNotFoundError:
                if not self._wait_for(file.path):
                    raise


def _repair(header: ManifestHeader) -> str:
    """Command that repairs a staged manifest's files; empty for files that lie in their source."""
    if not header.staged:
        return ""
    cache = {str(Path(root).parent) for root in header.roots.values()}
    in_cache = f" --cache {shlex.quote(cache.pop())}" if len(cache) == 1 else ""
    return f"framesift cache verify {header.name}@{header.version}{in_cache} fetches it again"


def small_image(image: UInt8, size: Size) -> UInt8:
    """An image (H, W, 3) uint8 [RGB] at another size, averaged over area."""
    picture = Image.fromarray(image).resize((size.width_px, size.height_px), Image.Resampling.BOX)
    return np.asarray(picture)


def nearest(label: UInt8, size: Size) -> UInt8:
    """A label (H, W) uint8 at another size, each pixel the nearest one's class id."""
    at = _nearest_pixels(label.shape[0], label.shape[1], size)
    return np.ascontiguousarray(label).reshape(-1).take(at)


@lru_cache(8)
def _nearest_pixels(height_px: int, width_px: int, size: Size) -> npt.NDArray[np.intp]:
    """(h, w) int64, the position of each pixel's nearest one among those of (H, W)."""
    rows = (np.arange(size.height_px) * 2 + 1) * height_px // (2 * size.height_px)
    columns = (np.arange(size.width_px) * 2 + 1) * width_px // (2 * size.width_px)
    return rows[:, None] * width_px + columns
