"""Statistics as JSON; histograms, correlations and gaps are query.statistics' models themselves."""

from pydantic import Field

from api.schemas.base import Schema
from query.statistics.class_report import ClassGroup, ClassStatistics, Grouping


class ClassesAnswer(Schema):
    """Classes in class order. All but `classes` only where something else than all was asked."""

    classes: tuple[ClassStatistics, ...]
    snapshot: int | None = Field(default=None, description="The catalog snapshot.", examples=[12])
    frames: int | None = Field(default=None, description="Frames they are of.", examples=[884])
    pixels: int | None = Field(default=None, description="Their pixels.")
    by: Grouping | None = Field(default=None, description="What the groups are.")
    groups: tuple[ClassGroup, ...] | None = Field(default=None, description="By name.")
