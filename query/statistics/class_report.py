"""Frames, pixels and shares of the classes, as they are told."""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Grouping = Literal["camera", "scene"]


Number = TypeVar("Number", int, float)


class Quantiles(BaseModel, Generic[Number]):
    """Values that occur: the smallest that at least so many per cent of the frames do not exceed.

    `numpy.quantile` calls the method "inverted_cdf".
    """

    model_config = ConfigDict(frozen=True)

    min: Number
    p5: Number
    p25: Number
    p50: Number
    p75: Number
    p95: Number
    max: Number


class ClassStatistics(BaseModel):
    """One class in a population of frames."""

    model_config = ConfigDict(frozen=True)

    tag: str = Field(description="Tag name.", examples=["bicycle"])
    name: str = Field(description="Class name.", examples=["Bicycle"])
    frames: int = Field(description="Frames with a pixel of the class.", examples=[212])
    pixels: int = Field(description="Its pixels in all frames.", examples=[1_830_455])
    share: float = Field(
        description="Its part of all pixels of the frames whose data set has the class, 0 to 1.",
        examples=[0.0012],
    )
    share_where_present: float = Field(
        description="Its part of the pixels of the frames that contain it, 0 to 1.",
        examples=[0.0051],
    )
    presence: float | None = Field(
        default=None,
        description="Part of the frames whose data set has the class that contain it, 0 to 1.",
        examples=[0.24],
    )
    pixel_quantiles: Quantiles[int] | None = Field(
        default=None, description="Of its pixels in the frames that contain it."
    )
    share_quantiles: Quantiles[float] | None = Field(
        default=None, description="Of its part of a frame, 0 to 1, in the frames that contain it."
    )


class ClassTotals(BaseModel):
    """The classes in some frames."""

    model_config = ConfigDict(frozen=True)

    frames: int = Field(description="How many frames.", examples=[884])
    pixels: int = Field(description="Their pixels, those of no class included.")
    classes: tuple[ClassStatistics, ...] = Field(
        description="In catalog order; behind them class groups, whose pixels are their classes'."
    )


class ClassGroup(ClassTotals):
    """The classes in the frames of a camera or scene."""

    value: str | None = Field(description="The camera or scene.", examples=["front_center"])


class ClassesAnswer(BaseModel):
    """Classes in class order, then class groups.

    All but `classes` only where something else than all was asked.
    """

    model_config = ConfigDict(frozen=True)

    classes: tuple[ClassStatistics, ...]
    snapshot: int | None = Field(default=None, description="The catalog snapshot.", examples=[12])
    frames: int | None = Field(default=None, description="Frames they are of.", examples=[884])
    pixels: int | None = Field(default=None, description="Their pixels.")
    by: Grouping | None = Field(default=None, description="What the groups are.")
    groups: tuple[ClassGroup, ...] | None = Field(default=None, description="By name.")


class ClassReport(ClassesAnswer):
    """The classes in a population of frames."""

    snapshot: int
    frames: int
    pixels: int
