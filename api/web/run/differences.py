"""Differences of two validations' scores as bars about a line: to the right what is better."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framesift.progress import list_of, number_of

_TITLES = {
    "miou": "mean IoU", "frequency_weighted_iou": "frequency-weighted IoU",
    "boundary_iou": "boundary IoU", "pixel_accuracy": "pixel accuracy",
}  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """A score of two validations."""

    name: str
    """The score, or the class whose IoU it is."""
    value: float
    """Of this validation, 0 to 1."""
    other: float
    """Of the other one."""
    interval: tuple[float, float] | None
    """Of the difference, 95 % over scenes; None where nothing says it."""
    verdict: str
    """What the interval says; empty where there is none."""

    @property
    def difference(self) -> float:
        """The value above the other one."""
        return self.value - self.other


@dataclass(frozen=True)
class Bar:
    """A difference as it is drawn, 0 to 100 from left to right; none is in the middle."""

    row: Difference
    left: float
    width: float
    """Of its bar."""
    ends: tuple[float, float] | None
    """Where its interval begins and ends."""


@dataclass(frozen=True)
class Differences:
    """Two validations' scores beside each other."""

    this: str
    other: str
    """The names of the two."""
    bars: list[Bar]
    metrics: frozenset[str]
    """Names of the jobs' metrics that stand here."""
    scale: float
    """The difference at the picture's right end."""


def of_comparison(report: Mapping[str, Any]) -> Differences | None:
    """The comparison of a validation's report; None where it has none."""
    comparison = report.get("comparison")
    if not isinstance(comparison, dict):
        return None
    classes = {one["tag"]: one["class"] for one in report["per_class"]}
    rows = []
    for row in list_of(comparison, "scores"):
        value, other = number_of(row, "value"), number_of(row, "other")
        if value is None or other is None:
            continue
        name = str(row.get("score"))
        title = _TITLES.get(name) or classes.get(name, name)
        verdict = str(row.get("verdict") or "")
        rows.append(Difference(title, value, other, ends_of(row, "interval"), verdict))
    return _drawn(_name_of(report, "this model"), _name_of(comparison, "another"), rows)


def of_reports(
    this: tuple[str, Mapping[str, Any]], other: tuple[str, Mapping[str, Any]]
) -> Differences | None:
    """Two jobs' names and reports beside each other; None where they share no score."""
    rows = [*_shared(this[1], other[1])]
    has_mean = any(row.name == _TITLES["miou"] for row in rows[:1])
    return _drawn(this[0], other[0], rows, {"miou"} if has_mean else ())


def _shared(this: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    """The scores that both reports have, the mean first, classes by this one's order."""
    its = {one["tag"]: one.get("iou") for one in other["per_class"]}
    pairs = [(_TITLES["miou"], this.get("miou"), other.get("miou"))]
    pairs += [(one["class"], one.get("iou"), its.get(one["tag"])) for one in this["per_class"]]
    for name, value, another in pairs:
        if value is not None and another is not None:
            yield Difference(name, value, another, None, "")


def _drawn(
    this: str, other: str, rows: list[Difference], metrics: Iterable[str] = ()
) -> Differences | None:
    if not rows:
        return None
    reached = [abs(end) for row in rows for end in (row.difference, *(row.interval or ()))]
    scale = max(max(reached), 0.01)

    def at(difference: float) -> float:
        return float(50 + 50 * difference / scale)

    bars = [
        Bar(
            row,
            max(0.0, min(at(row.difference), 50.0)),
            abs(at(row.difference) - 50),
            None if row.interval is None else (at(row.interval[0]), at(row.interval[1])),
        )
        for row in rows
    ]
    return Differences(this, other, bars, frozenset(metrics), scale)


def ends_of(row: Mapping[str, Any], name: str) -> tuple[float, float] | None:
    """The two ends of an interval; None where there is none."""
    ends = [end for end in list_of(row, name) if isinstance(end, int | float)]
    return (ends[0], ends[1]) if len(ends) == 2 else None


def _name_of(of_model: Mapping[str, Any], otherwise: str) -> str:
    model = of_model.get("model")
    return str(model.get("name") or otherwise) if isinstance(model, dict) else otherwise
