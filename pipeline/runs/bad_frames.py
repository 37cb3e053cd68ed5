"""A run's treatment of frames that cannot be read: it fails, or leaves out a few."""

import re
from dataclasses import dataclass

from catalog.errors import InvalidInput

FAIL, SKIP = "fail", "skip"
_SHARE = 0.01
_TEXT = re.compile(r"skip:([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class BadFrames:
    """The number of frames that may be left out."""

    skips: bool = False
    """Whether any may."""
    most: int | None = None
    """How many; one percent of the frames, at least one, when None."""

    @classmethod
    def parse(cls, text: str) -> "BadFrames":
        """The treatment that ``fail``, ``skip`` or ``skip:N`` says.

        Raises:
            InvalidInput: It is none of them.
        """
        if text in (FAIL, SKIP):
            return cls(text == SKIP)
        if match := _TEXT.fullmatch(text):
            return cls(True, int(match[1]))
        raise InvalidInput(
            f"bad frames '{text}': expected fail, skip (one percent of the frames at most), or "
            "skip:N (N frames at most)"
        )

    def limit(self, frames: int) -> int:
        """The number of so many frames that may be left out."""
        if not self.skips:
            return 0
        return max(1, int(frames * _SHARE)) if self.most is None else self.most

    def check(self, skipped: int, frames: int, first: str = "") -> None:
        """Accept as many as were left out.

        Args:
            first: Name of the first of them, and what is wrong with it.

        Raises:
            InvalidInput: They are too many.
        """
        if skipped > (limit := self.limit(frames)):
            raise InvalidInput(
                f"{skipped:,} of {frames:,} frames cannot be read, and --bad-frames allows "
                f"{limit:,}: put their files back, or allow more (skip:N)"
                f"{f'; the first is {first}' if first else ''}"
            )


def check_bad_frames(text: str | None) -> None:
    """Accept what becomes of frames that cannot be read; None for what is usual.

    Raises:
        InvalidInput: It is nothing that can become of them.
    """
    if text is not None:
        BadFrames.parse(text)
