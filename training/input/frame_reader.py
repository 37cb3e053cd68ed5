"""Frames of a split as small arrays: from the prepared form, from memory, or decoded."""

from dataclasses import dataclass
from threading import Lock

from ingest.labels.palette import Palette
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames, UInt8, nearest, small_image
from pipeline.prepared.form import PreparedRows
from pipeline.prepared.size import Size
from training.command import say


@dataclass(frozen=True)
class Frame:
    """A frame.

    Attributes:
        image: (h, w, 3) uint8 [RGB] at the network's input size, averaged over area.
        label: (H, W) uint8 [class id] at its own size, UNKNOWN_CLASS where the colour is unknown.
    """

    image: UInt8
    label: UInt8


class FrameReader:
    """Reads the frames of a manifest, whose rows count from 0 in their order."""

    def __init__(
        self,
        frames: Manifest,
        palette: Palette,
        size: Size,
        *,
        cache_bytes: int = 0,
        prepared: PreparedRows | None = None,
    ) -> None:
        """Prepare to read ``frames`` for a network input of that size.

        Args:
            frames: Those that may be asked for.
            palette: Of their labels.
            size: Network input.
            cache_bytes: What `small` may keep of decoded frames; beyond it they are decoded again.
            prepared: The same frames at that size; what it lacks is decoded.

        Raises:
            StorageError: A source lies elsewhere than where it may, by now.
        """
        self._decoded = DecodedFrames(frames, palette)
        self._size = size
        self._prepared = prepared
        self._kept: dict[int, tuple[UInt8, UInt8]] = {}
        self._free_bytes = cache_bytes
        self._keeping = Lock()
        self._said_lacking = False

    def image(self, row: int) -> tuple[UInt8, tuple[int, int]]:
        """A frame's image (h, w, 3) uint8 at network size, and the (H, W) it has on disk.

        Raises:
            BadFile: It is missing, or cannot be decoded.
        """
        if self._prepared is not None:
            found = self._prepared.image(row)
            if found is not None:
                return found
            self._say_lacking(self._prepared)
        image = self._decoded.image(row)
        return small_image(image, self._size), (image.shape[0], image.shape[1])

    def frame(self, row: int) -> Frame:
        """A frame with its label at full size.

        Raises:
            BadFile: A file is missing or cannot be decoded, image and label differ in size, or the
                frame has no label.
        """
        image, size_px = self.image(row)
        return Frame(image, self._decoded.label(row, size_px))

    def small(self, row: int) -> tuple[UInt8, UInt8]:
        """A frame at network size.

        Returns:
            Image (h, w, 3) uint8 [RGB] and label (h, w) uint8 [class id], the latter by nearest
            pixel.

        Raises:
            BadFile: As `frame`.
        """
        found = None if self._prepared is None else self._prepared.small(row)
        if found is None and self._prepared is not None:
            self._say_lacking(self._prepared)
        found = found or self._kept.get(row)
        if found is not None:
            return found
        frame = self.frame(row)
        pair = frame.image, nearest(frame.label, self._size)
        size_bytes = sum(array.nbytes for array in pair)
        with self._keeping:  # several threads read ahead
            if row not in self._kept and size_bytes <= self._free_bytes:
                self._free_bytes -= size_bytes
                self._kept[row] = pair
        return pair

    def _say_lacking(self, prepared: PreparedRows) -> None:
        """Tell once why a run with a prepared form decodes."""
        with self._keeping:
            said, self._said_lacking = self._said_lacking, True
        if not said:
            say(
                f"warning: the prepared form {prepared.form.folder} lacks frames, or some were "
                "damaged: their files are decoded (framesift stage --prepare makes them again)"
            )
