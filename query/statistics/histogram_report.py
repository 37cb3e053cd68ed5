"""A histogram, as it is asked for and told."""

import math
from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from catalog.text.bounded import Few, Name

MOST_BINS = 1000
MOST_VALUES = 200

BinKind = Literal["null", "not_finite", "zero", "below", "range", "above", "value", "other"]


class AxisRequest(BaseModel):
    """A tag, and how its values are put into bins. Text and booleans have a bin for each value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tag: Name = Field(description="A tag, class name or column.", examples=["car"])
    bins: int = Field(default=20, ge=1, le=MOST_BINS, description="Bins of a number.")
    edges: Few[float] | None = Field(
        default=None, description="Edges of a number's bins, rising; in place of `bins`."
    )
    log: bool = Field(default=False, description="Bins of equal ratio instead of equal width.")
    zero: bool = Field(default=False, description="A bin for 0 alone; a logarithmic axis has one.")
    top: int = Field(
        default=20, ge=1, le=MOST_VALUES, description="Text: the most frequent values."
    )

    @model_validator(mode="after")
    def _usable_edges(self) -> "AxisRequest":
        edges = self.edges
        if edges is None:
            return self
        rising = all(low < high for low, high in pairwise(edges)) and all(map(math.isfinite, edges))
        if not 2 <= len(edges) <= MOST_BINS + 1 or not rising:
            excerpt = ", ".join(f"{edge:g}" for edge in edges[:10])
            raise ValueError(
                f"edges of {self.tag}: expected 2 to {MOST_BINS + 1} rising numbers, got {excerpt}"
            )
        if self.log:
            raise ValueError(f"edges of {self.tag}: give edges or a logarithmic scale, not both")
        return self


class Bin(BaseModel):
    """Values that are counted together."""

    model_config = ConfigDict(frozen=True)

    kind: BinKind = Field(
        description="range: from `low` on and below `high`, the last one `high` included. below, "
        "above: outside of the edges. not_finite: NaN and infinities. value: `value` alone. other: "
        "every value that has no bin of its own."
    )
    low: int | float | None = None
    high: int | float | None = None
    value: str | None = Field(default=None, description="Booleans: true and false.")


class Axis(BaseModel):
    """A tag's bins, in order."""

    model_config = ConfigDict(frozen=True)

    tag: str = Field(examples=["car"])
    type: str = Field(description="Its DuckDB type.", examples=["INTEGER"])
    scale: Literal["linear", "log", "edges", "time", "categories"] = Field(
        description="edges: as asked for. time: in seconds since 1970-01-01 00:00 UTC."
    )
    edges: tuple[int | float, ...] = Field(description="Of the bins of kind range, rising.")
    bins: tuple[Bin, ...]


class Histogram(BaseModel):
    """Frames in each bin of one tag, or in each pair of bins of two."""

    model_config = ConfigDict(frozen=True)

    snapshot: int = Field(description="The catalog snapshot.", examples=[12])
    frames: int = Field(description="Frames of the population: the sum of all counts.")
    axes: tuple[Axis, ...] = Field(description="One or two.")
    counts: tuple[int, ...] | tuple[tuple[int, ...], ...] = Field(
        description="Frames per bin of the axis; of two axes a row per bin of the first."
    )
