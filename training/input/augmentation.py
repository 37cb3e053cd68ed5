"""Changes of examples, so that a network sees more: mirroring, window, scale and colours.

They are made of what was read at the network's size, and follow from the run's seed and the
example's place, whichever worker reads it. Labels are taken by nearest pixel alone.
"""

from collections.abc import Collection

import numpy as np
from PIL import Image

from ingest.labels.class_list import UNKNOWN_CLASS
from pipeline.example_order import Example
from pipeline.prepared.decoded_frames import UInt8

_MIRRORING, _AUGMENTING = 1, 2
"""Keep their random numbers apart, and from those of the order, which has seed and epoch alone."""
CROP_LEAST = 2 / 3
"""Least side of a window, as share of the frame's; it lies anywhere."""
SCALE_MOST = 1.5
"""A frame is shown so many times as large at most, and as small; around it nothing counts."""
BRIGHTNESS, CONTRAST, BALANCE = 0.12, 0.2, 0.06
"""Largest changes: of the mean as share of white, of the range, and of each channel's gain."""
_AROUND = (127, 127, 127)


def is_mirrored(example: Example, seed: int) -> bool:
    """True where an example is mirrored, whichever rank reads it."""
    random = np.random.default_rng([seed, example.epoch, example.position, _MIRRORING])
    return bool(random.random() < 0.5)


def augmented(
    image: UInt8, label: UInt8, example: Example, seed: int, names: Collection[str]
) -> tuple[UInt8, UInt8]:
    """An example with the named changes; the arrays themselves where there are none.

    Args:
        image: (h, w, 3) uint8 [RGB].
        label: (h, w) uint8 [class id].
        names: Of pipeline.runs.augmentations; for mirroring see `is_mirrored`.

    Returns:
        Image and label of the same sizes; UNKNOWN_CLASS where a scaled frame does not reach.
    """
    if not {"crop", "scale", "colour"} & {*names}:
        return image, label
    random = np.random.default_rng([seed, example.epoch, example.position, _AUGMENTING])
    side, scale, *offset = random.random(4).tolist()
    share = 1 - (1 - CROP_LEAST) * side if "crop" in names else 1.0
    if "scale" in names:
        share *= SCALE_MOST ** (2 * scale - 1)
    if share != 1:
        down, right = offset if "crop" in names else (0.5, 0.5)
        image, label = _window(image, label, share, (1 - share) * down, (1 - share) * right)
    return (_recoloured(image, random) if "colour" in names else image), label


def _window(
    image: UInt8, label: UInt8, share: float, top: float, left: float
) -> tuple[UInt8, UInt8]:
    """The window of a frame, at the frame's size; its side and corner as shares of the frame's."""
    height_px, width_px = label.shape
    rows = np.floor((np.arange(height_px) + 0.5) * share + top * height_px).astype(np.int64)
    columns = np.floor((np.arange(width_px) + 0.5) * share + left * width_px).astype(np.int64)
    inside_rows = (rows >= 0) & (rows < height_px)
    inside_columns = (columns >= 0) & (columns < width_px)
    window_label = label[rows.clip(0, height_px - 1)[:, None], columns.clip(0, width_px - 1)]
    window_label[~inside_rows] = UNKNOWN_CLASS
    window_label[:, ~inside_columns] = UNKNOWN_CLASS
    window = Image.fromarray(image).transform(
        (width_px, height_px),
        Image.Transform.AFFINE,
        (share, 0, left * width_px, 0, share, top * height_px),
        Image.Resampling.BILINEAR,
        fillcolor=_AROUND,
    )
    return np.asarray(window), window_label


def _recoloured(image: UInt8, random: np.random.Generator) -> UInt8:
    """The image with another brightness, contrast and balance of its channels."""
    brightness, contrast, *balance = random.uniform(-1, 1, 5).tolist()
    levels = (np.arange(256) - 127.5) * (1 + CONTRAST * contrast) + 127.5
    levels += 255 * BRIGHTNESS * brightness
    result = np.empty_like(image)
    for channel in range(3):
        table = (levels * (1 + BALANCE * balance[channel])).clip(0, 255).round().astype(np.uint8)
        result[..., channel] = table[image[..., channel]]
    return result
