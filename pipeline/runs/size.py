"""The size that frames are prepared at: one for all, or each frame's own."""

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput

LONGEST_SIDE_PX = 8192
_TEXT = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


@dataclass(frozen=True)
class Size:
    """A size of images [pixels]."""

    height_px: int
    width_px: int

    @classmethod
    def parse(cls, text: str) -> "Size":
        """The size that a text such as "240x152" says: width, then height.

        Raises:
            InvalidInput: It says none.

        >>> Size.parse("240x152")
        Size(height_px=152, width_px=240)
        """
        match = _TEXT.fullmatch(text)
        size = cls(int(match[2]), int(match[1])) if match else None
        if size is None or max(size.height_px, size.width_px) > LONGEST_SIDE_PX:
            raise InvalidInput(
                f"size '{text}': expected WIDTHxHEIGHT in pixels, each from 1 to "
                f"{LONGEST_SIDE_PX}, such as 240x152"
            )
        return size

    def __str__(self) -> str:
        """WIDTHxHEIGHT."""
        return f"{self.width_px}x{self.height_px}"

    @property
    def words(self) -> str:
        """The size, for people."""
        return str(self)


@dataclass(frozen=True)
class FullSize:
    """Each frame's own size."""

    def __str__(self) -> str:
        """The word for it."""
        return "full"

    @property
    def words(self) -> str:
        """The size, for people."""
        return "full size"


FULL = FullSize()

FormSize = Size | FullSize
"""A size that frames are prepared at."""


def form_size(text: str) -> FormSize:
    """The size that "full" or a text such as "240x152" says.

    Raises:
        InvalidInput: It says none.

    >>> form_size("full")
    FullSize()
    """
    if text == str(FULL):
        return FULL
    try:
        return Size.parse(text)
    except InvalidInput as error:
        raise InvalidInput(f"{error}, or {FULL}") from error
