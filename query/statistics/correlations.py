"""Class share against IoU: a model may be worse at the classes that it saw less of."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from statistics import StatisticsError, correlation

from pydantic import BaseModel, ConfigDict, Field

from query.statistics.class_report import ClassStatistics


class ClassScore(BaseModel):
    """A class, how much of it there is, and how well a model finds it."""

    model_config = ConfigDict(frozen=True)

    tag: str = Field(examples=["bicycle"])
    name: str = Field(examples=["Bicycle"])
    frames: int = Field(description="Frames with a pixel of the class.", examples=[31])
    share: float = Field(description="Its part of all pixels of all frames.", examples=[0.0012])
    iou: float | None = Field(
        description="Intersection over union, 0 to 1; null where the class is in neither truth nor "
        "prediction, or was not scored.",
        examples=[0.41],
    )


class ShareIouCorrelation(BaseModel):
    """Class share against IoU, over the classes that have an IoU."""

    model_config = ConfigDict(frozen=True)

    scored: int = Field(description="Number of classes that have an IoU.", examples=[31])
    pearson: float | None = Field(
        description="Pearson's coefficient of share and IoU, -1 to 1; null with fewer than two "
        "classes, or where one of the two is the same for all.",
        examples=[0.38],
    )
    spearman: float | None = Field(
        description="Spearman's, of their ranks, ties with their average rank; null likewise. "
        "Shares differ by orders of magnitude, which this one minds less.",
        examples=[0.71],
    )
    classes: tuple[ClassScore, ...] = Field(
        description="Worst IoU first, of equals the one with fewer frames; those without one last."
    )


class Correlation(ShareIouCorrelation):
    """Class share against a model's IoU, and where both are from."""

    validation: str = Field(description="The validation job, or the file.", examples=["validate-1"])
    dataset: str | None = Field(
        description="The dataset the shares are of, as a rule the one the model was trained on; "
        "null where they are the whole catalog's.",
        examples=["city@1"],
    )
    split: str | None = Field(description="Its split.", examples=["train"])
    snapshot: int = Field(description="The catalog snapshot the shares are of.", examples=[12])


def correlate(
    classes: Iterable[ClassStatistics], iou: Mapping[str, float | None]
) -> ShareIouCorrelation:
    """Compare the classes' shares with the IoU of each.

    Args:
        iou: IoU by tag, 0 to 1; None or missing where a class was not scored.
    """
    scores = [
        ClassScore(
            tag=statistic.tag,
            name=statistic.name,
            frames=statistic.frames,
            share=statistic.share,
            iou=iou.get(statistic.tag),
        )
        for statistic in classes
    ]
    scores.sort(key=lambda s: (s.iou is None, s.iou or 0.0, s.frames, s.tag))
    pairs = [(score.share, score.iou) for score in scores if score.iou is not None]
    shares, ious = [share for share, _ in pairs], [value for _, value in pairs]
    return ShareIouCorrelation(
        scored=len(pairs),
        pearson=pearson(shares, ious),
        spearman=pearson(average_ranks(shares), average_ranks(ious)),
        classes=tuple(scores),
    )


def pearson(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's coefficient; None for fewer than two pairs, or where one side is constant."""
    try:
        return max(-1.0, min(1.0, correlation(first, second)))
    except StatisticsError:
        return None


def average_ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; equal values share the average of their ranks."""
    ordered = sorted(values)
    return [(bisect_left(ordered, one) + bisect_right(ordered, one) + 1) / 2 for one in values]
