"""A report's single frames, its calibration and the sizes of objects, as the job's page draws them.

Reports of other versions may lack any of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services.session import Session
from api.web.find.view import View
from api.web.run.differences import ends_of
from framesift.progress import count_of, list_of, number_of

_SIDE = 300
"""Of the calibration's square, in units of its drawing."""

_MOST_CLASSES = 40
"""Classes whose objects a page lists: those with most of them."""


@dataclass(frozen=True)
class ScoredFrames:
    """Frames that a report names, each with its scores, as far as the caller may see them."""

    title: str
    note: str
    frames: Sequence[Mapping[str, Any]]
    """fkey, scene, camera, frame_number, and miou, accuracy, uncertainty or None."""
    missing: int
    """Frames that the catalog lacks, or the caller may not see."""


@dataclass(frozen=True)
class CalibrationBar:
    """The pixels whose class the model gave a probability within a range."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Calibration:
    """A reliability diagram: probability across, share that is right upwards, 300 by 300."""

    bars: Sequence[CalibrationBar]
    error: float
    """Expected calibration error, 0 to 1."""
    verdict: str


@dataclass(frozen=True)
class SizeRow:
    """Objects of a class and size, and how many of them are found."""

    name: str
    size: str
    objects: int
    found: float | None
    """Share that is found, 0 to 1; None without objects."""
    recall: float | None
    """Share of their pixels that is found."""
    found_interval: tuple[float, float] | None
    """Of 95 %, over scenes, as of the other; None where nothing says it."""
    recall_interval: tuple[float, float] | None


def scored_frames(session: Session, report: Mapping[str, Any]) -> list[ScoredFrames]:
    """The worst and the most uncertain frames of a report, as far as it has any."""
    groups = (
        ("Worst frames", "By their own mean IoU, lowest first.", "worst_frames"),
        (
            "Most uncertain frames", "By the entropy of the prediction, highest first.",
            "most_uncertain_frames",
        ),
    )  # fmt: skip
    rows = {name: _rows(report, name) for _, _, name in groups}
    fkeys = {str(row["fkey"]) for of in rows.values() for row in of}
    known = session.jobs.known_frames(fkeys)
    shown = []
    for title, note, name in groups:
        frames = [_scored(row, known[row["fkey"]]) for row in rows[name] if row["fkey"] in known]
        if rows[name]:
            shown.append(ScoredFrames(title, note, frames, len(rows[name]) - len(frames)))
    return shown


def views_of(
    session: Session, job: str, model: str, groups: Sequence[ScoredFrames]
) -> dict[str, View]:
    """What lies over each of a report's frames, by fkey: the errors of its model, or its label."""
    fkeys = {str(frame["fkey"]) for group in groups for frame in group.frames}
    validated = session.pictures.validated(job, model, fkeys)
    layers = {fkey: validated.layer(fkey) for fkey in fkeys}
    return {fkey: View(over=f"errors:{of}" if of else "label") for fkey, of in layers.items()}


def _rows(report: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [
        row
        for row in list_of(report, name)
        if isinstance(row, Mapping) and isinstance(row.get("fkey"), str)
    ]


def _scored(row: Mapping[str, Any], frame: Mapping[str, Any]) -> dict[str, Any]:
    scores = {name: number_of(row, name) for name in ("miou", "accuracy", "uncertainty")}
    return {**frame, **scores}


def calibration_of(report: Mapping[str, Any]) -> Calibration | None:
    """The calibration as it is drawn; None where no probability is known."""
    calibration = report.get("calibration", {})
    error = number_of(calibration, "ece")
    bars, told, right, total = [], 0.0, 0.0, 0
    for row in list_of(calibration, "bins"):
        if not isinstance(row, Mapping):
            continue
        pixels = count_of(row, "pixels")
        numbers = [number_of(row, n) for n in ("above", "up_to", "confidence", "accuracy")]
        if not pixels or None in numbers:
            continue
        low, high, confidence, accuracy = (float(one or 0) for one in numbers)
        told, right, total = (
            told + pixels * confidence, right + pixels * accuracy, total + pixels,
        )  # fmt: skip
        ends = ends_of(row, "accuracy_interval")
        within = f" ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})" if ends else ""
        label = (
            f"says {100 * confidence:.1f} %, right {100 * accuracy:.1f} %{within}, {pixels:,} "
            "pixels"
        )
        bars.append(
            CalibrationBar(
                _SIDE * low + 1, _SIDE * (1 - accuracy), _SIDE * (high - low) - 2,
                _SIDE * accuracy, label,
            )
        )  # fmt: skip
    if error is None or not total:
        return None
    verdict = (
        f"It says {100 * told / total:.1f} % on average, and is right in "
        f"{100 * right / total:.1f} %."
    )
    return Calibration(bars, error, verdict)


def sizes_of(report: Mapping[str, Any]) -> list[SizeRow]:
    """The objects that are found by their size: of all classes, then of each."""
    named = [("all", list_of(report, "object_sizes"))]
    of_classes = [
        (str(row.get("class")), list_of(row, "object_sizes"))
        for row in list_of(report, "per_class")
    ]
    of_classes.sort(key=lambda one: -sum(_objects(row) for row in one[1]))
    return [
        SizeRow(
            name, str(row.get("size")), _objects(row), number_of(row, "found"),
            number_of(row, "recall"), ends_of(row, "found_interval"),
            ends_of(row, "recall_interval"),
        )
        for name, rows in [*named, *of_classes[:_MOST_CLASSES]]
        for row in rows
        if isinstance(row, Mapping)
    ]  # fmt: skip


def _objects(row: Any) -> int:
    return (count_of(row, "objects") or 0) if isinstance(row, Mapping) else 0
