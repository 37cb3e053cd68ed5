"""A condition on frames, as data: leaves about one thing, and groups of them.

    {"kind": "all", "of": [
        {"kind": "pixels", "tag": "car", "lowest": 10000, "highest": 20000},
        {"kind": "any", "of": [
            {"kind": "has", "tag": "bicycle"},
            {"kind": "tag", "tag": "vehicle_speed_kmh", "op": ">=", "value": 30}]}]}

A condition on a tag that a frame does not have is neither true nor false, as in SQL, and neither
is its opposite: the frame is not chosen unless another member of an ``any`` holds for it.
"""

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    field_validator,
    model_validator,
)

from catalog.text.bounded import Few, Many, Name, Text
from query.question.label_range import LabelRange
from query.question.operators import OPERATORS, SHAPES

MAX_DEPTH = 8
"""Groups inside each other, of one question."""

MAX_LEAVES = 100
"""Leaves of one question."""

SHARE_DIGITS = 9
"""Decimals that a share may have."""

_MOMENT = re.compile(
    r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?)?)?",
    re.ASCII,
)


_Scalar = StrictBool | StrictInt | StrictFloat | Text


def _without_cam(name: object) -> object:
    return name.removeprefix("cam_") if isinstance(name, str) else name


CameraName = Annotated[Text, BeforeValidator(_without_cam)]
"""A camera; A2D2's folders are named cam_front_center, the camera itself front_center."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PixelRange(LabelRange):
    """A class has so many pixels in the frame; any tag with numbers may stand in its place."""

    kind: Literal["pixels"]


class ShareRange(_Data):
    """A class takes such a share of the frame's pixels.

    The whole is the frame's own image, image_width x image_height, pixels of no class included, so
    that frames of several sizes are each measured by their own.
    """

    kind: Literal["share"]
    tag: Name = Field(min_length=1, examples=["car"])
    lowest: float | None = Field(default=None, ge=0, le=1, examples=[0.01])
    highest: float | None = Field(default=None, ge=0, le=1, examples=[0.2])

    @model_validator(mode="after")
    def _ordered(self) -> "ShareRange":
        if self.lowest is None and self.highest is None:
            raise ValueError(f"share of {self.tag}: give a lowest or a highest share, 0 to 1")
        if self.lowest is not None and self.highest is not None and self.lowest > self.highest:
            raise ValueError(
                f"share of {self.tag}: lowest {self.lowest} is above highest {self.highest}; "
                "swap them"
            )
        for end in (self.lowest, self.highest):
            if end is not None and round(end, SHARE_DIGITS) != end:
                raise ValueError(
                    f"share of {self.tag}: {end} has more than {SHARE_DIGITS} decimals"
                )
        return self


class Has(_Data):
    """A class is in the frame, with so many pixels or more."""

    kind: Literal["has"]
    tag: Name = Field(min_length=1, examples=["bicycle"])
    pixels: int = Field(default=1, ge=1, lt=2**63)


class Without(_Data):
    """A class is not in the frame, or with fewer pixels than so many."""

    kind: Literal["without"]
    tag: Name = Field(min_length=1, examples=["rain_dirt"])
    pixels: int = Field(default=1, ge=1, lt=2**63)


class CameraIn(_Data):
    """The frame is one of these cameras'."""

    kind: Literal["camera"]
    names: Few[CameraName] = Field(min_length=1, examples=[("front_center",)])


class SceneIn(_Data):
    """The frame is of one of these scenes."""

    kind: Literal["scene"]
    names: Many[Text] = Field(min_length=1, examples=[("20180807_145028",)])


class TimeRange(_Data):
    """The frame's recording began in this time, both ends included.

    That is the time in the names of the scene and of the frame's file, local time where it was
    recorded; the frames of a scene share it. mtime is when the file was copied, and the clock of
    the bus is in no tag. A moment may leave out what comes after the year, and means all of it.
    """

    kind: Literal["time"]
    start: Name | None = Field(default=None, examples=["2018-08-07T14:50"])
    end: Name | None = Field(default=None, examples=["2018-08"])

    @field_validator("start", "end")
    @classmethod
    def _is_a_moment(cls, value: str | None) -> str | None:
        if value is not None:
            earliest(value)
        return value

    @model_validator(mode="after")
    def _ordered(self) -> "TimeRange":
        if self.start is None and self.end is None:
            raise ValueError("time: give a start or an end, such as 2018-08-07T14:50")
        if (
            self.start is not None
            and self.end is not None
            and earliest(self.start) > latest(self.end)
        ):
            raise ValueError(f"time: start {self.start} is after end {self.end}; swap them")
        return self


class TagIs(_Data):
    """A tag of any family, or one of the file's own columns, compared: query.question.operators."""

    kind: Literal["tag"]
    tag: Name = Field(min_length=1, examples=["vehicle_speed_kmh"])
    op: Name = Field(json_schema_extra={"enum": list(OPERATORS)})
    value: _Scalar | Many[_Scalar] | None = Field(
        default=None,
        description="As many as the operator takes; text is read as the tag's type.",
        examples=[30],
    )

    @model_validator(mode="after")
    def _shaped(self) -> "TagIs":
        operator = OPERATORS.get(self.op)
        if operator is None:
            raise ValueError(
                f"tag {self.tag}: unknown operator '{self.op}'; known: {', '.join(OPERATORS)}"
            )
        count = len(self.values)
        listed = isinstance(self.value, tuple)
        fits = {
            "none": self.value is None,
            "one": count == 1 and not listed,
            "two": count == 2,
            "many": count >= 1,
        }
        if not fits[operator.shape]:
            got = "a list" if listed and operator.shape == "one" else f"{count}"
            raise ValueError(
                f"tag {self.tag}: '{self.op}' takes {SHAPES[operator.shape]}, got {got}"
            )
        return self

    @property
    def values(self) -> tuple[bool | int | float | str, ...]:
        """The values, however many there are."""
        if isinstance(self.value, tuple):
            return self.value
        return () if self.value is None else (self.value,)


class Group(_Data):
    """All of these hold, any of them (one or more), or none of them."""

    kind: Literal["all", "any", "none"]
    of: tuple["Condition", ...] = Field(min_length=1, max_length=MAX_LEAVES, fail_fast=True)


Leaf = PixelRange | ShareRange | Has | Without | CameraIn | SceneIn | TimeRange | TagIs
Condition = Annotated[Leaf | Group, Field(discriminator="kind")]
Group.model_rebuild()


def leaves(conditions: Iterable["Leaf | Group"]) -> Iterator[Leaf]:
    """The leaves below, in order."""
    for condition in conditions:
        if isinstance(condition, Group):
            yield from leaves(condition.of)
        else:
            yield condition


def check_size(condition: Any) -> None:
    """Refuse what nobody would write, and what would be too deep for Db2's SQL.

    Args:
        condition: A condition, or the data that it is to be read from.

    Raises:
        ValueError: It is too deep or has too many leaves.
    """
    depth, count = 0, 0
    level: list[Any] = [condition]
    while level:
        groups = [members for member in level if (members := _members(member)) is not None]
        count += len(level) - len(groups)
        depth += bool(groups)
        if depth > MAX_DEPTH:
            raise ValueError(f"groups are {depth} deep or more, expected at most {MAX_DEPTH}")
        level = [member for members in groups for member in members]
    if count > MAX_LEAVES:
        raise ValueError(
            f"{count} conditions, expected at most {MAX_LEAVES}; take 'in' for many values"
        )


def _members(condition: Any) -> Sequence[Any] | None:
    """The members of a group; None where it is no group."""
    if isinstance(condition, Group):
        return condition.of
    of = condition.get("of") if isinstance(condition, dict) else None
    return of if isinstance(of, list | tuple) else None


def earliest(moment: str) -> datetime:
    """The first second of a moment such as "2018-08" or "2018-08-07T14:50".

    Raises:
        ValueError: It is none.
    """
    if _MOMENT.fullmatch(moment) is None:
        raise ValueError(
            f"time '{moment}': expected YYYY-MM-DDThh:mm:ss, or less of it from the left"
        )
    try:
        return datetime.fromisoformat(moment + "0000-01-01T00:00:00"[len(moment) :])
    except ValueError as error:
        raise ValueError(f"time '{moment}': {error}") from error


def latest(moment: str) -> datetime:
    """The last second of a moment."""
    first = earliest(moment)
    if len(moment) == len("2018-08"):
        moment += f"-{monthrange(first.year, first.month)[1]}"
    return datetime.fromisoformat(moment + "0000-12-31T23:59:59"[len(moment) :])
