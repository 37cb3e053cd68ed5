"""Statistics as people see them on the terminal."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from api.cli.tables.bars import bar, columns_of
from api.cli.tables.table import emit_table
from api.cli.terminal import heading, stdout
from query.statistics.class_report import (
    ClassGroup,
    ClassReport,
    ClassStatistics,
    Quantiles,
)
from query.statistics.correlations import Correlation
from query.statistics.facet_report import Facet, FacetReport
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Axis, Bin, Histogram

_WIDEST = 8
"""Cameras or scenes that stand side by side in a table; more of them have a table each."""

_YEAR_9999_S = 253_370_764_800


def emit_classes(classes: Iterable[ClassStatistics]) -> None:
    """Frames and share of every class."""
    rows = list(classes)
    largest = max((row.share for row in rows), default=0.0)
    emit_table(
        ("tag", "class", "frames", "share %", "share % where present", ""),
        [
            (
                row.tag,
                row.name,
                row.frames,
                _percent(row.share),
                _percent(row.share_where_present),
                bar(row.share, largest),
            )
            for row in rows
        ],
    )


def emit_report(report: ClassReport) -> None:
    """A report of the classes; groups side by side where there are few of them."""
    groups = report.groups or ()
    totals: tuple[ClassReport | ClassGroup, ...] = (report, *groups)
    with_quantiles = any(statistic.pixel_quantiles for statistic in report.classes)
    if groups and len(groups) <= _WIDEST and not with_quantiles:
        columns = ["all", *(group.value or "" for group in groups)]
        rows = [
            [statistic.tag, *(_percent(group.classes[index].share) for group in totals)]
            for index, statistic in enumerate(report.classes)
        ]
        frames = ["frames", *(f"{group.frames:,}" for group in totals)]
        emit_table(("share %", *columns), [*rows, frames])
        return
    titles = ("", *(group.value or "" for group in groups))
    for title, group in zip(titles, totals, strict=True):
        if title:
            heading(f"{title}: {group.frames:,} frames")
        if with_quantiles:
            _emit_quantiles(group.classes)
        else:
            emit_classes(group.classes)
    stdout.print(f"{report.frames:,} frames, snapshot {report.snapshot}")


def _emit_quantiles(classes: Sequence[ClassStatistics]) -> None:
    emit_table(
        ("pixels where present", "frames", *Quantiles.model_fields, "median share %"),
        [
            (
                row.tag,
                row.frames,
                *row.pixel_quantiles.model_dump().values(),
                _percent(row.share_quantiles.p50),
            )
            for row in classes
            if row.pixel_quantiles and row.share_quantiles
        ],
    )


def emit_histogram(histogram: Histogram) -> None:
    """One tag's bins with bars, or a table of two tags."""
    if len(histogram.axes) == 2:
        _emit_cross(histogram)
        return
    (axis,) = histogram.axes
    counts = [count for count in histogram.counts if isinstance(count, int)]
    bars = [
        (bin_, count)
        for bin_, count in zip(axis.bins, counts, strict=True)
        if count or bin_.kind == "range"
    ]
    largest = max((count for _, count in bars), default=0)
    emit_table(
        (axis.tag, "frames", "%", ""),
        [
            (
                _title(axis, bin_),
                count,
                f"{100 * count / histogram.frames:.1f}" if histogram.frames else "",
                bar(count, largest),
            )
            for bin_, count in bars
        ],
    )
    stdout.print(f"{histogram.frames:,} frames, snapshot {histogram.snapshot}")


def _emit_cross(histogram: Histogram) -> None:
    """A table of two tags: the first one's bins below each other."""
    first, second = histogram.axes
    counts = [list(row) for row in histogram.counts if isinstance(row, tuple)]
    across = [index for index in range(len(second.bins)) if any(row[index] for row in counts)]
    columns = [_title(second, second.bins[index]) for index in across]
    rows = [
        [_title(first, bin_), *(row[index] for index in across), sum(row)]
        for bin_, row in zip(first.bins, counts, strict=True)
        if any(row)
    ]
    emit_table((f"{first.tag} \\ {second.tag}", *columns, "all"), rows)
    stdout.print(f"{histogram.frames:,} frames, snapshot {histogram.snapshot}")


def emit_facets(report: FacetReport) -> None:
    """A row for each facet: its frames by bins, and the bin with the most of them."""
    emit_table(
        ("tag", "frames", "of them without a value", "most frequent", ""),
        [
            (
                facet.tag,
                sum(facet.counts),
                facet.counts[0],  # every axis begins with the bin of nulls
                _most_frequent(facet),
                columns_of(facet.counts),
            )
            for facet in report.facets
        ],
    )
    note = f"; {report.note}" if report.note else ""
    stdout.print(
        f"{report.matching:,} of {report.frames:,} frames, snapshot {report.snapshot}{note}"
    )


def _most_frequent(facet: Facet) -> str:
    count, bin_ = max(zip(facet.counts, facet.bins, strict=True), key=lambda pair: pair[0])
    return f"{_title(facet, bin_)}: {count:,}" if count else ""


def emit_correlation(correlation: Correlation) -> None:
    """Share and IoU of every class, and how they go together."""
    best = max((row.iou or 0.0 for row in correlation.classes), default=0.0)
    emit_table(
        ("tag", "frames", "share %", "IoU %", ""),
        [
            (
                row.tag,
                row.frames,
                _percent(row.share),
                "" if row.iou is None else f"{100 * row.iou:5.1f}",
                bar(row.iou or 0.0, best),
            )
            for row in correlation.classes
        ],
    )
    of = f"the catalog at snapshot {correlation.snapshot}"
    if correlation.dataset:
        of = (
            f"split {correlation.split} of {correlation.dataset}"
            if correlation.split
            else correlation.dataset
        )
    stdout.print(
        f"{correlation.validation}: IoU of {correlation.scored} classes against their share in "
        f"{of}: Pearson {_coefficient(correlation.pearson)}, "
        f"Spearman {_coefficient(correlation.spearman)}"
    )


def emit_gaps(report: GapReport) -> None:
    """Print the gaps and the commands that find frames for them."""
    where = f"split {report.split} of {report.dataset}" if report.split else report.dataset
    if report.not_compared:
        stdout.print(
            f"not compared, as the labels of {report.dataset} have no such class: "
            f"{', '.join(report.not_compared)}"
        )
    if not report.gaps:
        stdout.print(
            f"{where}: at least {report.at_least:,} frames of everything that was compared"
        )
        return
    emit_table(
        ("lacks", "frames", "in the catalog", "new", "find them by"),
        [
            (
                gap.name if gap.kind == "class" else f"{gap.kind} {gap.name}",
                gap.frames,
                gap.catalog_frames,
                gap.new_frames,
                gap.command or "",
            )
            for gap in report.gaps
        ],
    )
    stdout.print(
        f"{where}: {report.frames:,} frames; snapshot {report.snapshot}. New frames are in no "
        "split of the dataset; the commands find those that are, too."
    )


def _title(axis: Axis, bin_: Bin) -> str:
    """A bin for people."""
    if bin_.kind == "value":
        return bin_.value or "''"
    if bin_.kind == "range":
        if isinstance(bin_.low, int):  # a bin for each whole number
            return f"{bin_.low:,}"
        return f"{_edge(axis, bin_.low)} to {_edge(axis, bin_.high)}"
    outside = {"below": ("below", 0), "above": ("above", -1)}
    if bin_.kind in outside and axis.edges:
        word, index = outside[bin_.kind]
        return f"{word} {_edge(axis, axis.edges[index])}"
    return {"null": "no value", "not_finite": "not finite", "zero": "0"}.get(bin_.kind, bin_.kind)


def _edge(axis: Axis, edge: float | None) -> str:
    if edge is None:
        return ""
    if axis.type == "TIMESTAMP" and abs(edge) < _YEAR_9999_S:
        return datetime.fromtimestamp(edge, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if float(edge).is_integer() or abs(edge) >= 1000:
        return f"{edge:,.0f}"
    return f"{edge:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.4f}"


def _coefficient(value: float | None) -> str:
    return "none" if value is None else f"{value:+.2f}"
