"""A dataset's targets against what it is: a bar for each target."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from api.schemas.datasets import DatasetBody
from api.schemas.unmet import off_by

_MOST = 60
"""Bars of a group; a match to a dataset compares every class."""

_FIRST = 10
"""Bars that are shown at once; the others are folded."""


@dataclass(frozen=True)
class Bar:
    """A target, and what was achieved of it."""

    name: str
    """A value, a demand, a split."""
    achieved: float
    """Length of the bar [per cent of the group's width]."""
    target: float | None
    """Place of the target's mark [per cent]; None where there was no target."""
    short: bool
    """Whether it misses its target."""
    label: str
    """The same in words."""


@dataclass(frozen=True)
class Group:
    """Bars of one scale."""

    title: str
    """What they show."""
    note: str
    """How near it is as a whole; empty where there is nothing to say."""
    all_bars: tuple[Bar, ...]
    """The bars, the worst misses before the largest targets."""
    more: int = 0
    """Bars left out."""
    met: bool = False
    """Whether it is a target that no value of it misses."""

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The first ones."""
        return self.all_bars[:_FIRST]

    @property
    def rest(self) -> tuple[Bar, ...]:
        """The others."""
        return self.all_bars[_FIRST:]


def groups_of(dataset: DatasetBody) -> list[Group]:
    """Everything that was wanted of a dataset beside what was achieved."""
    report = dataset.report
    return [*_whole(report), *_marginals(report), *_strata(report), *_demands(report)]


def splits_of(dataset: DatasetBody) -> Group:
    """The splits: their shares of the frames, and those that were wanted."""
    target_shares = {name: float(Fraction(share)) for name, share in _shares(dataset).items()}
    bars = []
    for name, frames in dataset.splits.items():
        share = frames / dataset.frames if dataset.frames else 0.0
        target = target_shares.get(name)
        label = f"{frames:,} frames, {_per_cent(share)}"
        if target is not None:
            label += f" of {_per_cent(target)} wanted"
        mark = None if target is None else 100 * target
        bars.append(Bar(name, 100 * share, mark, False, label))
    return Group("Splits", "", tuple(bars))


def leakage_of(report: Mapping[str, Any]) -> str:
    """The distance between the splits; empty where there is one."""
    leakage = report.get("leakage")
    if not leakage:
        return ""
    gap = leakage["smallest_gap_s"]
    shared = f"Splits share {leakage['shared_scenes']:,} scenes"
    if "shared_drives" in leakage:
        shared += f" and {leakage['shared_drives']:,} drives"
    near = "times are not known" if gap is None else f"their nearest frames are {gap:,.1f} s apart"
    return f"{shared}; {near}{'' if leakage['guard'] else ' (guard off)'}."


def _shares(dataset: DatasetBody) -> Mapping[str, str]:
    # A question of someone else's, of whose frames the caller sees some, is not told.
    shares: Mapping[str, str] = dataset.question.get("split") or {}
    return shares


def _whole(report: Mapping[str, Any]) -> Iterator[Group]:
    if "wanted" not in report:
        return
    targets, achieved = report["wanted"], report["achieved"]
    note = f"of {report['candidates']:,} that answer the question" if "candidates" in report else ""
    yield Group("Frames", note, (_counted("frames", targets, achieved, max(targets, achieved)),))


def _marginals(report: Mapping[str, Any]) -> Iterator[Group]:
    for marginal in report.get("marginals", ()):
        name = marginal["marginal"]
        missed = {one["value"]: one for one in report["unmet"] if one["marginal"] == name}
        values = [row for row in marginal["values"] if row["wanted"] or row["frames"]]
        values.sort(key=lambda row: (-off_by(missed.get(row["value"], {})), -row["wanted"]))
        largest = max((max(row["wanted"], row["achieved"]) for row in values), default=1) or 1
        bars = tuple(
            Bar(
                str(row["value"]), 100 * row["achieved"] / largest, 100 * row["wanted"] / largest,
                missed.get(row["value"], {}).get("short_by", 0) > 0,
                f"{_per_cent(row['achieved'])} of {_per_cent(row['wanted'])} wanted: "
                f"{row['frames']:,} frames, {row['available']:,} available",
            )
            for row in values[:_MOST]
        )  # fmt: skip
        note = (
            f"largest difference {marginal['largest_difference']:.4f}, total variation "
            f"{marginal['total_variation']:.4f}, Jensen-Shannon {marginal['jensen_shannon']:.4f}"
        )
        yield Group(str(name), note, bars, max(0, len(values) - _MOST), met=not missed)


def _strata(report: Mapping[str, Any]) -> Iterator[Group]:
    rows = report.get("largest_strata") or ()
    if not rows:
        return
    largest = max(row["available"] for row in rows) or 1
    bars = tuple(
        Bar(
            row["stratum"], 100 * row["frames"] / largest, 100 * row["available"] / largest, False,
            f"{row['frames']:,} frames of {row['available']:,} available",
        )
        for row in rows[:_MOST]
    )  # fmt: skip
    note = "the mark is how many there are"
    yield Group("Strata", note, bars, max(0, report["strata"] - len(bars)))


def _demands(report: Mapping[str, Any]) -> Iterator[Group]:
    rows = report.get("demands") or ()
    if not rows:
        return
    # An extended dataset had some of the frames before.
    achieved = [row["achieved"] if "achieved" in row else row["had"] + row["added"] for row in rows]
    largest = max(*(row["wanted"] for row in rows), *achieved)
    bars = tuple(
        _counted(row["demand"], row["wanted"], has, largest, row.get("available"))
        for row, has in zip(rows[:_MOST], achieved, strict=False)
    )
    bound = report.get("lower_bound")
    smaller = "addition" if report.get("method") == "extend" else "set"
    note = f"no {smaller} that achieves this is smaller than {bound:,} frames" if bound else ""
    yield Group("Demands", note, bars, max(0, len(rows) - _MOST))


def _counted(
    name: str, target: int, achieved: int, largest: int, available: int | None = None
) -> Bar:
    label = f"{achieved:,} of {target:,} wanted"
    if available is not None:
        label += f", {available:,} available"
    scale = 100 / (largest or 1)
    return Bar(name, scale * achieved, scale * target, achieved < target, label)


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
