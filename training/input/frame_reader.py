"""Frames of a split as small arrays: from a prepared form, from memory, or decoded."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from catalog.errors import BadFile
from ingest.labels.class_list import UNKNOWN_CLASS
from ingest.labels.dataset_classes import DatasetClasses
from ingest.labels.numbered_colours import NumberedColours
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames, UInt8, nearest, small_image
from pipeline.prepared.form import PreparedRows
from pipeline.prepared.full_form import FullRows
from pipeline.prepared.label_classes import LabelClasses, renumbered
from pipeline.runs.size import Size
from training.command import say
from training.input.skipped_frames import SkippedFrames

_LOOKING = 16
"""Threads that look for files: each waits for the file system, which may be a network's."""


@dataclass(frozen=True)
class Frame:
    """A frame."""

    image: UInt8
    """(h, w, 3) uint8 [RGB] at the network's input size, averaged over area."""
    label: UInt8
    """(H, W) uint8 [class id] at its own size, UNKNOWN_CLASS of pixels of no class or of
    an ignored one.
    """
    colours: UInt8 | None = None
    """(H, W) uint8 [number of the label's colour]; None where they are not kept apart."""

    @property
    def size(self) -> Size:
        """The network's input size."""
        return Size(*self.image.shape[:2])


@dataclass(frozen=True)
class LabelledFrame:
    """A frame whose image is decoded only when it is asked for."""

    label: UInt8
    """As Frame's."""
    colours: UInt8 | None
    """As Frame's."""
    size: Size
    """That the image has."""
    read_image: Callable[[], UInt8]

    @property
    def image(self) -> UInt8:
        """(h, w, 3) uint8 [RGB], averaged over area; black where it cannot be decoded."""
        try:
            return self.read_image()
        except BadFile as error:
            say(f"warning: a picture is black: {error}")
            return np.zeros((self.size.height_px, self.size.width_px, 3), np.uint8)


class FrameReader:
    """Reads the frames of a manifest, whose rows count from 0 in their order."""

    def __init__(
        self,
        frames: Manifest,
        dataset_classes: DatasetClasses,
        size: Size,
        *,
        cache_bytes: int = 0,
        prepared: PreparedRows | None = None,
        full: FullRows | None = None,
        wait_for: Callable[[str], bool] = lambda _: False,
        classes: LabelClasses | None = None,
        bad: SkippedFrames | None = None,
        numbered: NumberedColours | None = None,
    ) -> None:
        """Prepare to read ``frames`` for a network input of that size.

        Args:
            cache_bytes: What `small` may keep of decoded frames; beyond it they are decoded again.
            prepared: The same frames at that size; what it lacks is made of the next.
            full: The same frames at full size; what it lacks is decoded.
            classes: To which labels are merged; None for the dataset's.
            bad: Is told of frames that cannot be read, in whose place `small` gives black without
                a label; None where they raise.
            numbered: The labels' colours, which `frame` keeps apart, too; None where it need not.
        """
        self._numbered = numbered
        decoded_by = dataset_classes if numbered is None else numbered.classes
        self._full = full
        self._decoded = DecodedFrames(frames, decoded_by, wait_for, full, self._report_lacking)
        self._frames = len(frames)
        self._size = size
        self._prepared = prepared
        self._classes, self._bad = classes, bad
        self._kept: dict[int, tuple[UInt8, UInt8]] = {}
        self._free_bytes = cache_bytes
        self._keeping = Lock()
        self._has_reported_decoding = False

    def look_for_files(self) -> None:
        """Go on where every file that will be decoded is there; looked for, and not read.

        Raises:
            BadFile: Some are missing, and of more frames than may be bad.
        """
        rows = range(self._frames) if self._prepared is None else self._prepared.lacks().tolist()
        with ThreadPoolExecutor(_LOOKING, thread_name_prefix="look") as pool:
            errors = zip(rows, pool.map(self._decoded.missing, rows), strict=True)
            missing = [(row, error) for row, error in errors if error is not None]
        if self._bad is not None:
            for row, error in missing:
                self._bad.note(row, error)
        elif missing:
            first = missing[0][1]
            raise BadFile(
                f"{first.reason}; frames that lack a file: {len(missing):,} of {self._frames:,}",
                first.file,
            )

    def image(self, row: int) -> tuple[UInt8, tuple[int, int]]:
        """A frame's image (h, w, 3) uint8 at network size, and the (H, W) it has on disk."""
        if self._prepared is not None:
            stored = self._prepared.image(row)
            if stored is not None:
                return stored
            self._report_decoding(self._prepared)
        image = self._decoded.image(row)
        return small_image(image, self._size), (image.shape[0], image.shape[1])

    def frame(self, row: int) -> Frame:
        """A frame with its label at full size."""
        image, size_px = self.image(row)
        return Frame(image, *self._label(row, size_px))

    def labelled(self, row: int) -> LabelledFrame:
        """A frame with its label at full size, for what does without its image."""
        stored = None if self._prepared is None else self._prepared.image(row)
        size_px = self._decoded.size_px(row) if stored is None else stored[1]
        label, colours = self._label(row, size_px)
        return LabelledFrame(label, colours, self._size, lambda: self.image(row)[0])

    def _label(self, row: int, size_px: tuple[int, int]) -> tuple[UInt8, UInt8 | None]:
        """A frame's label as class ids, and the numbers of its colours where they are kept apart.

        Args:
            size_px: (H, W) of its image.
        """
        label = self._decoded.label(row, size_px)
        if self._numbered is None:
            return self._merged(label), None
        return self._merged(renumbered(label, self._numbered.label_class)), label

    def small(self, row: int) -> tuple[UInt8, UInt8]:
        """A frame at network size.

        Returns:
            Image (h, w, 3) uint8 [RGB] and label (h, w) uint8 [class id], the latter by nearest
            pixel.

        Raises:
            BadFile: As `frame`, or more frames are bad than may be.
        """
        stored = None if self._prepared is None else self._prepared.small(row)
        if stored is None and self._prepared is not None:
            self._report_decoding(self._prepared)
        if stored is not None:
            return stored[0], self._merged(stored[1])
        if (cached := self._kept.get(row)) is not None:
            return cached
        try:
            frame = self.frame(row)
        except BadFile as error:
            if self._bad is None:
                raise
            self._bad.note(row, error)
            return self._blank()
        pair = frame.image, nearest(frame.label, self._size)
        size_bytes = sum(array.nbytes for array in pair)
        with self._keeping:  # several threads read ahead
            if row not in self._kept and size_bytes <= self._free_bytes:
                self._free_bytes -= size_bytes
                self._kept[row] = pair
        return pair

    def _blank(self) -> tuple[UInt8, UInt8]:
        size = self._size.height_px, self._size.width_px
        return np.zeros((*size, 3), np.uint8), np.full(size, UNKNOWN_CLASS, np.uint8)

    def _merged(self, label: UInt8) -> UInt8:
        return label if self._classes is None else self._classes.merged(label)

    def _report_lacking(self) -> None:
        if self._full is not None:
            self._report_decoding(self._full)

    def _report_decoding(self, prepared: PreparedRows | FullRows) -> None:
        """Tell once why a run with a prepared form decodes."""
        with self._keeping:
            is_reported, self._has_reported_decoding = self._has_reported_decoding, True
        if not is_reported:
            say(
                f"warning: the prepared form {prepared.form.folder} lacks frames, or some were "
                "damaged: their files are decoded (framesift stage --prepare makes them again)"
            )
