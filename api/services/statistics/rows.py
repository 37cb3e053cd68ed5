"""Statistics as rows, for formats that hold a table and nothing else."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from query.statistics.class_report import ClassStatistics, ClassTotals
from query.statistics.correlations import ShareIouCorrelation
from query.statistics.facet_report import FacetReport
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Histogram


def class_rows(classes: tuple[ClassStatistics, ...], groups: Mapping[str, ClassTotals]) -> pa.Table:
    """A row for each class, and for each class of each group, which `group` names.

    Args:
        classes: Of all frames; in their rows `group` is null.
    """
    of_all = [{"group": None, **_flat(statistic)} for statistic in classes]
    of_groups = [
        {"group": name, **_flat(statistic)}
        for name, group in groups.items()
        for statistic in group.classes
    ]
    rows = [*of_all, *of_groups]
    # By the first row alone Arrow would take null for the type of a group.
    named = [{"group": "", **_flat(statistic)} for statistic in classes[:1]]
    schema = pa.Table.from_pylist(named).schema if named else None
    return pa.Table.from_pylist(rows, schema)


def histogram_rows(histogram: Histogram) -> pa.Table:
    """A row for each bin, or pair of bins: what it is of each tag, and its frames."""
    kinds: dict[str, pa.DataType] = {}
    for axis in histogram.axes:
        kinds |= {
            f"{axis.tag}_kind": pa.string(),
            f"{axis.tag}_low": pa.float64(),
            f"{axis.tag}_high": pa.float64(),
            f"{axis.tag}_value": pa.string(),
        }
    return pa.Table.from_pylist(list(_bins(histogram)), pa.schema({**kinds, "frames": pa.int64()}))


_CORRELATION = pa.schema(
    {
        "tag": pa.string(),
        "name": pa.string(),
        "frames": pa.int64(),
        "share": pa.float64(),
        "iou": pa.float64(),
    }
)
_GAPS = pa.schema(
    {
        "kind": pa.string(),
        "value": pa.string(),
        "name": pa.string(),
        "frames": pa.int64(),
        "catalog_frames": pa.int64(),
        "new_frames": pa.int64(),
        "sentence": pa.string(),
        "question": pa.string(),
        "command": pa.string(),
    }
)


_FACETS = pa.schema(
    {
        "tag": pa.string(),
        "kind": pa.string(),
        "low": pa.float64(),
        "high": pa.float64(),
        "value": pa.string(),
        "of_all": pa.int64(),
        "frames": pa.int64(),
    }
)


def facet_rows(report: FacetReport) -> pa.Table:
    """A row for each bin of each facet: its frames, and those of all frames."""
    rows = [
        {"tag": facet.tag, **bin_.model_dump(), "of_all": of_all, "frames": frames}
        for facet in report.facets
        for bin_, of_all, frames in zip(facet.bins, facet.of_all, facet.counts, strict=True)
    ]
    return pa.Table.from_pylist(rows, _FACETS)


def correlation_rows(correlation: ShareIouCorrelation) -> pa.Table:
    """A row for each class, in the same order: the pairs that the coefficients are of."""
    return pa.Table.from_pylist([row.model_dump() for row in correlation.classes], _CORRELATION)


def gap_rows(report: GapReport) -> pa.Table:
    """A row for each gap; its question is JSON as text."""
    rows = [
        gap.model_dump() | {"question": None if gap.question is None else json.dumps(gap.question)}
        for gap in report.gaps
    ]
    return pa.Table.from_pylist(rows, _GAPS)


def _bins(histogram: Histogram) -> Iterator[dict[str, Any]]:
    counts: Sequence[Any] = histogram.counts
    for index, counted in enumerate(counts):
        row = _bin(histogram, 0, index)
        if len(histogram.axes) == 1:
            yield {**row, "frames": counted}
            continue
        for other, frames in enumerate(counted):
            yield {**row, **_bin(histogram, 1, other), "frames": frames}


def _bin(histogram: Histogram, axis: int, index: int) -> dict[str, Any]:
    of = histogram.axes[axis]
    return {f"{of.tag}_{name}": value for name, value in of.bins[index].model_dump().items()}


def _flat(statistic: ClassStatistics) -> dict[str, Any]:
    """One level deep; quantiles only where there are any."""
    row = statistic.model_dump(exclude={"pixel_quantiles", "share_quantiles"})
    for name, quantiles in (
        ("pixels", statistic.pixel_quantiles),
        ("share", statistic.share_quantiles),
    ):
        if quantiles is not None:
            row |= {
                f"{name}_{quantile}": value for quantile, value in quantiles.model_dump().items()
            }
    return row
