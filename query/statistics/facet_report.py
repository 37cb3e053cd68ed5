"""Facets of a question, as they are told."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from query.statistics.histogram_report import Axis


class Facet(Axis):
    """One tag's histogram twice: of all frames, and of those that the other conditions leave.

    A number has bins by its least and greatest value among all frames (a class bins of equal ratio
    and one for 0), so that they stay where they are while a question changes.
    """

    name: str = Field(description="The class's name; the tag else.", examples=["Car"])
    asked: bool = Field(
        description="The question has a condition on it: frames that fail nothing but that count."
    )
    of_all: tuple[int, ...] = Field(
        description="Per bin: frames without any condition.", examples=[[2, 0, 1, 21]]
    )
    counts: tuple[int, ...] = Field(
        description="Per bin: frames that fulfil every condition but those on this tag.",
        examples=[[0, 0, 1, 14]],
    )


class FacetReport(BaseModel):
    """Every tag's histogram under a question, and the number of frames that answer it."""

    model_config = ConfigDict(frozen=True)

    snapshot: int = Field(description="The catalog snapshot.", examples=[12])
    frames: int = Field(description="Frames without any condition.", examples=[24])
    matching: int = Field(description="Frames that fulfil every condition.", examples=[13])
    in_memory: bool = Field(description="Whether they were counted in memory, which is faster.")
    note: str = Field(
        default="",
        description="Why it was not in memory; else empty.",
        examples=["snapshot 3 is older than the one in memory"],
    )
    facets: tuple[Facet, ...] = Field(
        description="Camera and scene, the classes in class order and the class groups, then the "
        "other tags."
    )


@dataclass(frozen=True)
class FacetSteps:
    """The facets of a question at every position of one facet's slider.

    Frames are counted by the steps that they fulfil, so that those at position ``n`` are the sum of
    the rows from ``n`` on; the slider's own facet is the same at all, and in the last row.
    """

    report: FacetReport
    """At the open position, where the slider adds no condition."""
    matching: Sequence[int]
    """By position: frames that fulfil every condition."""
    counts: Sequence[Sequence[Sequence[int]]]
    """By facet, position and bin: frames as `Facet.counts` has them."""
