"""The drawings of a validation's page, as SVG."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def reliability_diagram(calibration: Mapping[str, Any]) -> str:
    """The reliability diagram as HTML; nothing without a pixel.

    Args:
        calibration: As training.validation.metrics.calibration gives it.
    """
    bins = [row for row in calibration["bins"] if row["pixels"]]
    if not bins:
        return ""
    side, left, top = 300.0, 68.0, 12.0
    total = sum(row["pixels"] for row in bins)

    def across(share: float) -> float:
        return left + side * share

    def down(share: float) -> float:
        return top + side * (1 - share)

    bars = "".join(
        f'<rect x="{across(row["above"]) + 1:.1f}" y="{down(row["accuracy"]):.1f}" '
        f'width="{side * (row["up_to"] - row["above"]) - 2:.1f}" '
        f'height="{side * row["accuracy"]:.1f}" fill="var(--bar)">'
        f"<title>says {percent(row['confidence'])}, right {percent(row['accuracy'])}"
        f"{within(row['accuracy_interval'])}, "
        f"{percent(row['pixels'] / total)} of the pixels</title></rect>"
        for row in bins
    )
    ticks = "".join(
        f'<text x="{across(share):.1f}" y="{top + side + 18:.1f}" text-anchor="middle">'
        f"{100 * share:.0f} %</text>"
        f'<text x="{left - 6:.1f}" y="{down(share) + 4:.1f}" text-anchor="end">'
        f"{100 * share:.0f} %</text>"
        for share in (0.0, 0.5, 1.0)
    )
    confidence = sum(row["confidence"] * row["pixels"] for row in bins) / total
    right = sum(row["accuracy"] * row["pixels"] for row in bins) / total
    verdict = f"It says {percent(confidence)} on average, and is right in {percent(right)}."
    middle = top + side / 2
    return (
        "<h2>Does it know when it is wrong?</h2>\n"
        "<p>Pixels by the probability that the model gives its class, and how many of them are "
        f"right. Bars below the line: it is too sure; above: too careful. {verdict}</p>\n"
        f'<svg viewBox="0 0 {left + side + 24:.0f} {top + side + 40:.0f}" role="img" '
        f'style="max-width: 24rem" aria-label="Reliability diagram. {verdict}">'
        f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" '
        f'stroke="var(--line)"/>{bars}'
        f'<line x1="{left}" y1="{top + side}" x2="{left + side}" y2="{top}" '
        f'stroke="var(--mark)" stroke-width="1.5"/>{ticks}'
        f'<text x="{left + side / 2:.1f}" y="{top + side + 36:.1f}" text-anchor="middle">'
        "probability that it says</text>"
        f'<text transform="rotate(-90 12 {middle:.1f})" x="12" y="{middle:.1f}" '
        'text-anchor="middle">share that is right</text></svg>'
    )


def iou_by_share(report: Mapping[str, Any]) -> str:
    """Each class's IoU against its share of the pixels, as HTML; nothing for fewer than three.

    Args:
        report: As `training.validation.report.build_report` describes it.
    """
    rows = [row for row in report["per_class"] if row["truth_pixels"]]
    if len(rows) < 3:
        return ""
    width, height, left, top, bottom = 720.0, 320.0, 60.0, 12.0, 44.0
    right = 28.0  # half of "100 %" stands beyond the last tick
    total = sum(row["truth_pixels"] for row in rows)
    shares = [row["truth_pixels"] / total for row in rows]
    low = math.floor(math.log10(min(shares)))

    def across(share: float) -> float:
        return left + (width - left - right) * (math.log10(share) - low) / -low if low else left

    def down(iou: float) -> float:
        return top + (height - top - bottom) * (1 - iou)

    points = "".join(
        f'<circle cx="{across(share):.1f}" cy="{down(row["iou"]):.1f}" r="5"><title>'
        f"{escape(row['class'])}: IoU {percent(row['iou'])}, {percent(share)} of the pixels"
        "</title></circle>"
        for row, share in zip(rows, shares, strict=True)
    )
    ticks = "".join(
        f'<text x="{across(10.0**power):.1f}" y="{height - bottom + 18:.1f}" '
        f'text-anchor="middle">{100 * 10.0**power:g} %</text>'
        for power in range(low, 1)
    ) + "".join(
        f'<line x1="{left}" x2="{width - right}" y1="{down(iou):.1f}" y2="{down(iou):.1f}" '
        f'stroke="var(--line)"/><text x="{left - 6}" y="{down(iou) + 4:.1f}" '
        f'text-anchor="end">{100 * iou:.0f} %</text>'
        for iou in (0.0, 0.5, 1.0)
    )
    correlation = report["share_correlation"]
    trend = (
        "" if correlation is None
        else f" Spearman's correlation of the two is {correlation:+.2f}"
        + _of_ends(report["intervals"]["share_correlation"])
        + ": "
        + _of_correlation(correlation)
    )  # fmt: skip
    return (
        "<h2>Does more data of a class mean a better score?</h2>\n"
        f"<p>A point for each class with truth; its name appears under the pointer.{trend}</p>\n"
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'aria-label="IoU of each class against its share of the pixels">'
        f"{ticks}{points}"
        f'<text x="{left + (width - left) / 2:.1f}" y="{height - 6:.1f}" '
        'text-anchor="middle">share of the pixels (logarithmic)</text>'
        f'<text transform="rotate(-90 12 {height / 2:.1f})" x="12" y="{height / 2:.1f}" '
        'text-anchor="middle">IoU</text></svg>'
    )


def _of_ends(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:+.2f} to {interval[1]:+.2f})"


def _of_correlation(value: float) -> str:
    if value >= 0.3:
        return "classes with more pixels score better, so that frames of rare ones may help."
    if value <= -0.3:
        return "classes with fewer pixels score better."
    return "the share of pixels says little about the score."


def loss_curve(curve: Sequence[Mapping[str, Any]]) -> str:
    """The loss over the steps as HTML; nothing for fewer than two points.

    Args:
        curve: The lines of metrics.jsonl.
    """
    if len(curve) < 2:
        return ""
    width, height, left, bottom = 720.0, 240.0, 48.0, 28.0
    last, top = max(float(p["step"]) for p in curve), max(float(p["loss"]) for p in curve)
    if not (last > 0 and top > 0):
        return ""

    def across(step: float) -> float:
        return left + (width - left - 12) * step / last

    def down(loss: float) -> float:
        return 10 + (height - bottom - 10) * (1 - loss / top)

    points = " ".join(f"{across(float(p['step'])):.1f},{down(float(p['loss'])):.1f}" for p in curve)
    lines = "".join(
        f'<line x1="{left}" x2="{width - 12}" y1="{down(top * share):.1f}" '
        f'y2="{down(top * share):.1f}" stroke="var(--line)"/>'
        f'<text x="{left - 6}" y="{down(top * share) + 4:.1f}" text-anchor="end">'
        f"{top * share:.2f}</text>"
        for share in (0.0, 0.5, 1.0)
    )
    steps = "".join(
        f'<text x="{across(last * share):.1f}" y="{height - 8}" text-anchor="{anchor}">'
        f"{last * share:,.0f}</text>"
        for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    )
    first_loss, last_loss = float(curve[0]["loss"]), float(curve[-1]["loss"])
    return (
        "<h2>Training loss</h2>\n"
        f"<p>From {first_loss:.3f} to {last_loss:.3f} in {last:,.0f} steps, over all workers; "
        "pixels of rare classes count more in it.</p>\n"
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="Training loss by step, from {first_loss:.3f} to {last_loss:.3f}">{lines}'
        f'<polyline points="{points}" fill="none" stroke="var(--bar)" stroke-width="2"/>'
        f"{steps}</svg>"
    )


def percent(share: float | None) -> str:
    """A share as people read it, "12.3 %"; a dash (HTML) for none."""
    return "&ndash;" if share is None else f"{100 * share:.1f} %"


def scored(share: float | None, interval: Sequence[float] | None) -> str:
    """The cell of a table with a score, and below it its interval of 95 %, where it has one."""
    ends = "" if interval is None else f"<small>{_ends(interval)}</small>"
    return f"<td>{percent(share)}{ends}</td>"


def within(interval: Sequence[float] | None) -> str:
    """An interval in brackets behind its score; nothing for none."""
    return "" if interval is None else f" ({_ends(interval)})"


def _ends(interval: Sequence[float]) -> str:
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
