"""What jobs have measured, as pages show it: programs may have written anything under any name."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from api.schemas.comparisons import ComparisonBody
from api.schemas.jobs import JobBody
from api.web.run.scan_figures import SCANNED, scan_figures, size_of
from framesift.progress import Progress, Table, count_of, list_of, number_of, tables_of

_SCORES = (
    ("state", "state"), ("loss", "loss"), ("step", "steps"), ("epochs", "epochs"),
    ("images_per_s", "images a second"), ("miou", "mean IoU"),
    ("frequency_weighted_iou", "frequency-weighted IoU"), ("boundary_iou", "boundary IoU"),
    ("pixel_accuracy", "pixel accuracy"), ("frames", "frames"),
)  # fmt: skip

_FIGURES = {
    "step": "steps done", "max_steps": "steps in all", "epoch": "epochs done",
    "epochs": "epochs in all", "seconds_left": "seconds left", "frames_seen": "frames trained on",
    "first_loss": "loss of the first step", "images_per_s": "images a second",
    "prepared": "frames prepared before", "bad_frames": "frames that could not be read",
    "skipped_frames": "frames that could not be read", "miou": "mean IoU",
    "best_miou": "best mean IoU", "best_step": "step of the best mean IoU",
    "seconds_to_target": "seconds to the mean IoU that is timed",
    "miou_low": "mean IoU, at least", "miou_high": "mean IoU, at most",
    "frequency_weighted_iou": "frequency-weighted IoU", "boundary_iou": "boundary IoU",
    "ece": "calibration error", "uncertainty": "mean uncertainty",
    "baseline_miou": "mean IoU of always the most frequent class",
    "baseline_pixel_accuracy": "pixel accuracy of always the most frequent class",
    "trained_frames": "frames that the model was trained on",
    "absent_classes": "classes without a pixel", "compared_with": "compared with",
    "miou_difference": "difference of mean IoU",
    "miou_difference_low": "difference of mean IoU, at least",
    "miou_difference_high": "difference of mean IoU, at most",
    "regressions": "classes that are worse", "improvements": "classes that are better",
}  # fmt: skip
"""What people read for the names of metrics; others' names have blanks."""

_OF_REPORT = {
    f"{name}{end}"
    for name in (
        "ece", "miou", "frequency_weighted_iou", "boundary_iou", "pixel_accuracy", "uncertainty",
        "frames", "miou_difference", "baseline_miou", "baseline_pixel_accuracy",
    )
    for end in ("", "_low", "_high")
}  # fmt: skip
"""Metrics of a validation that its report has, with their intervals."""

_MOST_CHARACTERS = 200
"""Of a text that a page shows; REST has all of it."""

_MOST_WARNINGS = 20

_MOST_FILES = 200

_MOST_SLICES = 100
"""Slices of each kind, such as scenes, that a page lists."""


def progress_of(job: JobBody) -> Progress:
    """How far a job is."""
    return Progress.of(job.metrics)


def short_progress(job: JobBody) -> str:
    """How far a job is, or its score, in a few words; empty where it measures neither."""
    miou, progress = number_of(job.metrics, "miou"), progress_of(job)
    if miou is not None:
        return f"mIoU {miou:.3f}"
    if progress.total is None:
        return ""
    unit = "" if progress.unit == "step" else f" {progress.unit}"
    return f"{progress.done:,} of {progress.total:,}{unit}"


def figures_of(job: JobBody, *, has_report: bool = False) -> list[tuple[str, str]]:
    """The job's metrics that are one value each, by their names in words.

    Args:
        job: The job.
        has_report: Whether its report stands on the page, too: its figures are left out.
    """
    figures = scan_figures(job.metrics) if job.kind == "scan" else []
    left_out = SCANNED if job.kind == "scan" else _OF_REPORT if has_report else ()
    return figures + [
        (_FIGURES.get(name) or _cut(name.replace("_", " ")), _told(value))
        for name, value in job.metrics.items()
        if not isinstance(value, dict | list) and value not in (None, "") and name not in left_out
    ]


def warnings_of(job: JobBody) -> list[str]:
    """What a job's program warns of, or what it wrote that cannot be used."""
    return [_cut(str(warning)) for warning in list_of(job.metrics, "warnings")[:_MOST_WARNINGS]]


def slices_of(report: Mapping[str, Any]) -> dict[str, tuple[list[dict[str, Any]], int]]:
    """The slices of a report by kind, and how many more there are; of too many the worst."""
    shown = {}
    for by, slices in report.get("slices", {}).items():
        listed = list(slices)
        if len(listed) > _MOST_SLICES:
            listed.sort(key=lambda one: 2 if (miou := number_of(one, "miou")) is None else miou)
        shown[by] = listed[:_MOST_SLICES], len(listed[_MOST_SLICES:])
    return shown


def tables_shown(job: JobBody) -> list[Table]:
    """The job's tables, long cells cut."""
    return [
        Table(
            _cut(table.title),
            [_cut(cell) for cell in table.columns],
            [[_cut(cell) for cell in row] for row in table.rows],
        )
        for table in tables_of(job.metrics)
    ]


def checkpoints_of(job: JobBody) -> list[tuple[str, str, str]]:
    """Step, path and metrics of each checkpoint that a user's program names, the newest first."""
    rows = [row for row in list_of(job.metrics, "checkpoints") if isinstance(row, dict)]
    return [
        (
            f"{count_of(row, 'step') or 0:,}",
            _cut(str(row.get("path", ""))),
            _cut(", ".join(f"{name} {_told(value)}" for name, value in _dict(row, "metrics"))),
        )
        for row in reversed(rows)
    ]


def command_of(job: JobBody) -> str:
    """The command of a user's program; empty of other jobs, and where it is not shown."""
    return _cut(str(job.settings.get("command") or "")) if job.kind == "run" else ""


def files_of(sizes: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Path below the job's files, name and size of each file, as far as a page lists them."""
    return [
        (quote(name), _cut(name), size_of(size)) for name, size in list(sizes.items())[:_MOST_FILES]
    ]


def _dict(row: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    value = row.get(name)
    return value.items() if isinstance(value, dict) else ()


def compared_rows(
    compared: ComparisonBody, drawn: Collection[str] = ()
) -> list[tuple[str, list[str]]]:
    """A row for each score that one of the jobs has, and each setting in which they differ.

    Args:
        compared: The jobs.
        drawn: Names of metrics that stand beside the differences, and are left out.
    """
    measured = {**compared.metrics, "state": compared.job["state"]}
    rows = [
        (title, [_told(value) for value in measured[key]])
        for key, title in _SCORES
        if key not in drawn and any(value is not None for value in measured.get(key, ()))
    ]
    for key, values in sorted(compared.settings.items()):
        rows.append((key.replace("_", " "), [_told(value) for value in values]))
    return rows


def _told(value: Any) -> str:
    """A value for people; empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _cut(f"{value:.4g}" if isinstance(value, float) else str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
