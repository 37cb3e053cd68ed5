"""How many pixels of a label image each class covers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.label_image import open_png
from ingest.palette import Palette


@dataclass(frozen=True)
class PixelCounts:
    """Pixels per class of one label image; all counts are exact and sum to width * height.

    Attributes:
        counts: (n_classes,) int64 [pixels], in the palette's class order.
        unknown: Pixels whose colour is not in the palette.
        unknown_colours: Those colours as "#rrggbb" with their pixels, at most the 16 largest.
        width: Image width [pixels].
        height: Image height [pixels].
    """

    counts: npt.NDArray[np.int64]
    unknown: int
    unknown_colours: Mapping[str, int]
    width: int
    height: int


def count_pixels(png: bytes, palette: Palette) -> PixelCounts:
    """Exact pixels per class of a label PNG; colours are compared exactly, never nearest.

    Raises:
        BadFile: Not a PNG, truncated or damaged.
    """
    image = open_png(png)
    pixels = image.width * image.height
    counts = np.zeros(len(palette), dtype=np.int64)
    unknown: dict[str, int] = {}
    # Pillow counts in C: 19 ms per A2D2 label where a NumPy look-up table needs 28 to 43.
    for number, (red, green, blue) in image.getcolors(maxcolors=pixels):  # type: ignore[misc, union-attr]
        class_id = palette.class_of_colour.get(red << 16 | green << 8 | blue)
        if class_id is None:
            unknown[f"#{red:02x}{green:02x}{blue:02x}"] = number
        else:
            counts[class_id] += number
    total_unknown = sum(unknown.values())
    if counts.sum() + total_unknown != pixels:
        raise BadFile(f"counted {counts.sum() + total_unknown} of {pixels} pixels")
    largest = sorted(unknown.items(), key=lambda item: (-item[1], item[0]))[:16]
    return PixelCounts(counts, total_unknown, dict(largest), image.width, image.height)
