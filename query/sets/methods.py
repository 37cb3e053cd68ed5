"""Methods that build a set from the frames that answer a question, as data."""

import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from catalog.errors import InvalidInput
from catalog.text.bounded import MOST_FEW, MOST_MANY, Few, Name
from query.question.label_range import LabelRange
from query.question.question import Question
from query.sets.stratifier import Stratifier

_Frames = Annotated[int, Field(ge=1, lt=2**31)]
_Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Shares = Annotated[dict[Name, _Share], Field(max_length=MOST_MANY, fail_fast=True)]


REST = "*"
"""In a target: every value that is not named."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _parsed(texts: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(Stratifier.parse(text).to_text() for text in texts)
    except InvalidInput as error:
        raise ValueError(str(error)) from error


class Sample(_Data):
    """So many frames at random, of each stratum its part."""

    method: Literal["sample"] = "sample"
    frames: _Frames = Field(examples=[5000])
    stratify: Few[Name] = Field(
        default=(),
        description="Tags, or tags with edges of bins: strata are their combinations.",
        examples=[("camera", "car:0,1000,10000")],
    )
    allocation: Literal["proportional", "equal"] | _Shares = Field(
        default="proportional",
        description="As many of a stratum as it has, equally many, or shares by stratum.",
        examples=[{"front_center": 0.7, "rear_center": 0.3}],
    )

    _stratify = field_validator("stratify")(_parsed)


class Match(_Data):
    """So many frames, distributed as the targets say."""

    method: Literal["match"] = "match"
    frames: _Frames
    targets: dict[Name, _Shares] = Field(
        default={},
        max_length=MOST_FEW,
        fail_fast=True,
        description="Share of each value, by tag or tag with edges of bins; '*' is all the rest.",
        examples=[{"camera": {"front_center": 0.7, "*": 0.3}, "car:0,1000": {"0:1000": 1}}],
    )
    like: Name | None = Field(
        default=None,
        description="A dataset, NAME or NAME@VERSION, whose distribution is the target.",
    )
    like_split: Name | None = Field(default=None, description="Only of this split of it.")
    by: Few[Name] = Field(
        default=(), description="What is compared with it; camera and every class by default."
    )
    tolerance: float = Field(default=0.01, ge=0, le=1, description="Most a share may be off by.")

    _by = field_validator("by")(_parsed)

    @field_validator("targets")
    @classmethod
    def _summing_to_1(cls, targets: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
        for text, shares in targets.items():
            _parsed((text,))
            if abs(sum(shares.values()) - 1) > 1e-6:
                raise ValueError(
                    f"the shares of {text} sum to {sum(shares.values()):g}, not 1; "
                    f"'{REST}' stands for all values that are not named"
                )
        return {_parsed((text,))[0]: shares for text, shares in targets.items()}

    @model_validator(mode="after")
    def _one_target(self) -> "Match":
        if bool(self.targets) == bool(self.like):
            raise ValueError("match: give targets, or a dataset to be like")
        return self


class Demand(_Data):
    """A class, or a situation, and in how many frames it is wanted."""

    question: Question = Field(description="What such a frame fulfils.")
    frames: _Frames
    per: Few[Name] = Field(
        default=(), description="So many for every value of these tags.", examples=[("camera",)]
    )
    name: Name = Field(default="", description="What to call it in the report.")

    _per = field_validator("per")(_parsed)

    @classmethod
    def parse(cls, text: str) -> "Demand":
        """The demand ``car=100``, ``car:5000=100`` (so many pixels), ``camera/car=100`` (each).

        Raises:
            InvalidInput: It is not written so.
        """
        match = _DEMAND.fullmatch(text.strip())
        if match is None:
            raise InvalidInput(
                f"'{text}': expected CLASS=FRAMES, CLASS:PIXELS=FRAMES or TAG/CLASS=FRAMES, "
                "such as bicycle=50, bicycle:5000=50 or camera/bicycle=50"
            )
        per = tuple(tag.strip() for tag in match["per"].split("/") if tag)
        pixels = LabelRange(tag=match["tag"].strip(), lowest=int(match["pixels"] or 1))
        return cls(
            question=Question(ranges=(pixels,)),
            frames=int(match["frames"]),
            per=per,
            name=text.strip().rpartition("=")[0],
        )


_DEMAND = re.compile(
    r"(?P<per>(?:[^/=:]+/)*)(?P<tag>[^/=:]+)(?::(?P<pixels>[0-9]{1,18}))?"
    r"=(?P<frames>0*[1-9][0-9]{0,8})"
)


class Cover(_Data):
    """The smallest set of frames in which every demand is met, as far as one is found."""

    method: Literal["cover"] = "cover"
    demands: Few[Demand] = Field(min_length=1)


class Uncertain(_Data):
    """The frames with the highest scores, unlike each other."""

    method: Literal["uncertain"] = "uncertain"
    tag: Name = Field(min_length=1, description="A number; the highest is the most uncertain.")
    frames: _Frames = Field(description="The budget.")
    lowest: bool = Field(default=False, description="The lowest is the most uncertain.")
    per_scene: int | None = Field(default=None, ge=1, description="Most of one scene.")
    pool: float = Field(
        default=5.0,
        ge=1,
        le=1000,
        description="So many times the budget, the most uncertain, are chosen among; 1: no others.",
    )


Method = Annotated[Sample | Match | Cover | Uncertain, Field(discriminator="method")]


def fractions_of(shares: dict[str, float]) -> dict[str, Fraction]:
    """Shares as exact as they were written."""
    return {name: Fraction(str(share)) for name, share in shares.items()}
