"""The encoding of label images: how a pixel's samples give the key of its class."""

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from catalog.errors import InvalidInput

ENCODINGS = "index, colour, index//1000, index//256, channel:0 to channel:3, panoptic"
"""The texts that `Encoding.parse` reads."""

_TEXT = re.compile(r"index(//(1000|256))?|colour|panoptic|channel:[0-3]")

SAMPLES = 1 << 16
"""Values of a sample of up to 16 bits."""

COLOURS = 1 << 24
"""Values of an 8-bit RGB pixel, 0xRRGGBB."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of a source's label images."""

    text: str
    """As a layout writes it: "index", "colour", "index//1000", "channel:0"..."""

    @classmethod
    def parse(cls, text: object) -> "Encoding":
        """The encoding of that text.

        Raises:
            InvalidInput: It is none.
        """
        if not isinstance(text, str) or not _TEXT.fullmatch(text):
            raise InvalidInput(f"encoding {text!r}: expected one of {ENCODINGS}")
        return cls(text)

    @property
    def is_colour(self) -> bool:
        """True where a key is a colour 0xRRGGBB; a palette's index stands for its colour then."""
        return self.text == "colour"

    @property
    def is_panoptic(self) -> bool:
        """True where a key is the category that a JSON file names for the segment of a pixel."""
        return self.text == "panoptic"

    @property
    def divisor(self) -> int:
        """What a sample is divided by, in whole numbers: the class part of an instance's id."""
        _, _, divisor = self.text.partition("//")
        return int(divisor or 1)

    @property
    def channel(self) -> int | None:
        """The channel of an RGB or RGBA image that holds the key; None where no channel does."""
        kind, _, number = self.text.partition(":")
        return int(number) if kind == "channel" else None

    @property
    def values(self) -> int:
        """How many values a pixel may have: the length of a table by value."""
        return COLOURS if self.is_colour else SAMPLES

    @property
    def most_keys(self) -> int:
        """One more than the largest key that a number may be."""
        if self.channel is not None or self.divisor == 256:
            return 256
        return 1000 if self.divisor == 1000 else SAMPLES

    def keys(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The key of each value of a pixel.

        With a divisor of 1000 a value below it is a key itself: so Cityscapes' instance maps write
        classes that have no instances. With 256 it is the class's part alone, as in Mapillary's and
        KITTI's.

        Source: cityscapesScripts, README.md ("instanceIds"); datumaro, mapillary_vistas/format.py.

        >>> Encoding("index//1000").keys(np.array([7, 24_003])).tolist()
        [7, 24]
        """
        if self.divisor == 1:
            return values
        keys = values // self.divisor
        return np.where(values < self.divisor, values, keys) if self.divisor == 1000 else keys

    def key_text(self, key: int) -> str:
        """A key as people write it: "#rrggbb" of a colour, a decimal number of any other.

        Of panoptic labels "segment 9" for an id that is no segment (label_image.decode_keys).
        """
        if key < 0:
            return f"segment {-key}"
        return f"#{key:06x}" if self.is_colour else str(key)
