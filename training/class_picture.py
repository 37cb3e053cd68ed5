"""Class ids as a picture: a palette image, whose indices are the ids."""

import numpy as np
import numpy.typing as npt
from PIL import Image

UInt8 = npt.NDArray[np.uint8]


def class_picture(ids: UInt8, colours: UInt8) -> Image.Image:
    """Class ids (H, W) as an image of mode P; ids that are no class are black.

    Args:
        colours: (C, 3) uint8 [RGB] of each class.
    """
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(colours)] = colours
    picture = Image.fromarray(np.ascontiguousarray(ids))
    picture.putpalette(palette.tobytes())
    return picture
