"""Small pictures of the frames that a report shows: image, truth, prediction, errors.

Each shard keeps those of its worst and of its most uncertain frames, so that those of the whole
validation are among them, whatever the number of shards.
"""

import heapq
import io
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from PIL import Image

from framesift.forms.cards import CARD_WIDTH
from pipeline.prepared.decoded_frames import UInt8
from training.class_picture import class_picture

SHOWN = 8
"""Frames of each kind that a report shows."""

PICTURE_BYTES = 8_000
"""Of a picture at most: those of a report's frames are 700 kB of its page at most."""

_QUALITIES = (75, 50, 25, 10, 1)

_WRONG = np.array((255, 40, 40), np.float32)
_DARKER = 0.45


@dataclass(frozen=True)
class FramePictures:
    """Pictures of one frame, each a JPEG of at most PICTURE_BYTES, CARD_WIDTH wide at most."""

    row: int
    """Its position in the split, from 0."""
    image: bytes
    truth: bytes
    """In the classes' colours, black where no class is known."""
    prediction: bytes
    """In the classes' colours."""
    errors: bytes
    """The image darkened, wrong pixels red."""


PICTURES_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("image", pa.binary()),
        ("truth", pa.binary()),
        ("prediction", pa.binary()),
        ("errors", pa.binary()),
    ]
)


def pictures_of(
    row: int, image: UInt8, truth: UInt8, prediction: UInt8, colours: UInt8
) -> FramePictures:
    """The pictures of a frame.

    Args:
        row: Its position in the split.
        image: (h, w, 3) uint8 [RGB].
        truth: (h, w) uint8 [class id]; ids that are no class are black.
        prediction: (h, w) uint8 [class id].
        colours: (C, 3) uint8 [RGB].
    """
    wrong = (truth != prediction) & (truth < len(colours))
    errors = image * np.float32(_DARKER)
    errors[wrong] = errors[wrong] * np.float32(0.4) + _WRONG * np.float32(0.6)
    return FramePictures(
        row,
        _jpeg(Image.fromarray(image), Image.Resampling.BILINEAR),
        _jpeg(class_picture(truth, colours).convert("RGB"), Image.Resampling.NEAREST),
        _jpeg(class_picture(prediction, colours).convert("RGB"), Image.Resampling.NEAREST),
        _jpeg(Image.fromarray(errors.astype(np.uint8)), Image.Resampling.BILINEAR),
    )


def _jpeg(picture: Image.Image, resampling: Image.Resampling) -> bytes:
    """A picture as a card shows it; of the first quality at which it is small enough."""
    width, height = picture.size
    if max(width, height) > CARD_WIDTH:
        share = CARD_WIDTH / max(width, height)
        size = max(1, round(width * share)), max(1, round(height * share))
        picture = picture.resize(size, resampling)
    for quality in _QUALITIES:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=quality, optimize=True)
        if file.tell() <= PICTURE_BYTES:
            break
    return file.getvalue()


@dataclass
class PictureSelection:
    """The pictures of a shard's worst and most uncertain frames so far."""

    _worst: list[tuple[float, int]] = field(default_factory=list)
    _unsure: list[tuple[float, int]] = field(default_factory=list)
    _pictures: dict[int, FramePictures] = field(default_factory=dict)

    def add(
        self,
        row: int,
        miou: float | None,
        uncertainty: float | None,
        make: Callable[[], FramePictures],
    ) -> None:
        """Keep a frame's pictures, which are made only then, where it is one of them.

        Args:
            row: The frame's position in the split.
            miou: 0 to 1; None where no pixel of it is known.
            uncertainty: 0 to 1; None where no probabilities are known.
        """
        selected = []
        if uncertainty is not None:
            selected.append(_insert(self._unsure, (uncertainty, -row)))
        if miou is not None:
            selected.append(_insert(self._worst, (-miou, -row)))
        if any(selected):
            self._pictures[row] = make()
            rows = {-entry[1] for entry in (*self._worst, *self._unsure)}
            self._pictures = {n: one for n, one in self._pictures.items() if n in rows}

    def pictures(self) -> list[FramePictures]:
        """Those that are kept, by row."""
        return [self._pictures[row] for row in sorted(self._pictures)]


def _insert(heap: list[tuple[float, int]], entry: tuple[float, int]) -> bool:
    """Put an entry among the SHOWN largest; False where it is none of them."""
    if len(heap) < SHOWN:
        heapq.heappush(heap, entry)
        return True
    return heapq.heappushpop(heap, entry) != entry
