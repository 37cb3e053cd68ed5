"""A class and how many of its pixels a frame may have."""

import re

from pydantic import BaseModel, ConfigDict, Field, model_validator

from catalog.errors import InvalidInput
from catalog.text.bounded import Name
from query.question.wrong_value import checked

_RANGE = re.compile(
    r"(?P<tag>.+)=(?P<low>[0-9]{0,18})(?P<colon>:?)(?P<high>[0-9]{0,18})", re.DOTALL
)


class LabelRange(BaseModel):
    """Lowest and highest number of pixels of a tag, both included; None leaves an end open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tag: Name = Field(min_length=1, examples=["car"])
    lowest: int | None = Field(default=None, ge=0, examples=[10_000])
    highest: int | None = Field(default=None, ge=0, examples=[20_000])

    @model_validator(mode="after")
    def _ordered(self) -> "LabelRange":
        if self.lowest is None and self.highest is None:
            raise ValueError(f"range of {self.tag}: give a lowest or a highest number of pixels")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise ValueError(
                f"range of {self.tag}: lowest {self.lowest} is above highest {self.highest}; "
                "swap them"
            )
        return self

    @classmethod
    def parse(cls, text: str) -> "LabelRange":
        """The range written as ``car=10000:20000``, ``car=10000:``, ``car=:20000`` or ``car=0``.

        Raises:
            InvalidInput: It is not written so, or its ends are the wrong way round.
        """
        match = _RANGE.fullmatch(text.strip())
        if match is None or not (match["low"] or match["high"]):
            raise InvalidInput(
                f"range '{text}': expected CLASS=LOWEST:HIGHEST in pixels, such as "
                "car=10000:20000; either end may be left out"
            )
        low = int(match["low"]) if match["low"] else None
        high = int(match["high"]) if match["high"] else (None if match["colon"] else low)
        return checked(cls, tag=match["tag"].strip(), lowest=low, highest=high)

    def to_text(self) -> str:
        """The range as `parse` reads it."""
        low = "" if self.lowest is None else str(self.lowest)
        high = "" if self.highest is None else str(self.highest)
        return f"{self.tag}={low}:{high}"
