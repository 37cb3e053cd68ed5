"""Small copies of predictions, as a shard's result keeps them: for pages that show errors."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.prepared.decoded_frames import UInt8, nearest
from pipeline.runs.small_predictions import MOST_BYTES, small_sizes
from training.class_picture import class_picture
from training.validation.frame_cells import Int32, Int64

_LEVEL = 3
"""Of zlib: 0.5 ms for a frame and 6 kB; the usual 6 takes 1.3 ms for 5 kB."""


@dataclass(frozen=True)
class SmallCopies:
    """The copies of a shard's frames, one behind the other."""

    sizes: Int32
    """(frames,) int32 [bytes] of each; 0 where none was kept."""
    parts: Sequence[Callable[[], bytes]] = ()
    """Their bytes, which are read when they are written: those of a shard may be many."""

    @classmethod
    def none(cls, frames: int = 0) -> "SmallCopies":
        """Of so many frames none."""
        return cls(np.zeros(frames, np.int32))

    @classmethod
    def of(cls, copies: Sequence[bytes]) -> "SmallCopies":
        """Those that are in memory, of each frame."""
        content = b"".join(copies)
        return cls(np.array([len(one) for one in copies], np.int32), (lambda: content,))

    @classmethod
    def joined(cls, pieces: "Sequence[SmallCopies]") -> "SmallCopies":
        """The copies of the frames of several pieces."""
        sizes = np.concatenate([one.sizes for one in pieces])
        return cls(sizes, [part for one in pieces for part in one.parts])

    def __iter__(self) -> Iterator[bytes]:
        """Their bytes, part by part."""
        return (part() for part in self.parts)

    @property
    def length(self) -> int:
        """Of all together [bytes]."""
        return int(self.sizes.sum(dtype=np.int64))


def small_copy(ids: UInt8, colours: UInt8) -> bytes:
    """The copy of a prediction: a PNG whose palette indices are class ids, each the nearest one's.

    Args:
        ids: (H, W) uint8 [class id] at the label's size.
        colours: (C, 3) uint8 [RGB].
    """
    png = b""
    for size in small_sizes(*ids.shape):
        picture = class_picture(nearest(ids, size), colours)
        picture.putpalette(colours.tobytes())  # 768 bytes less, and half a byte for 16 classes
        file = io.BytesIO()
        picture.save(file, "PNG", compress_level=_LEVEL)
        png = file.getvalue()
        if len(png) <= MOST_BYTES:
            break
    return png


def offsets_of(sizes: Int32) -> Int64:
    """(frames,) int64, where each copy begins among them all."""
    return np.cumsum(sizes, dtype=np.int64) - sizes
